"""Arrays (.npz) and PyG files (.pt) of one's own; cases as in `table_cases`. Content may be a function."""

from typing import Any

import numpy as np

from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader
from tests.prep.datasets.user.table_cases import DRAWN, Case

with quiet_loader(downloading=False):
    import torch
    from torch_geometric.data import Batch, Data, HeteroData
    from torch_geometric.transforms import ToSparseTensor, ToUndirected

RING = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
INDEX = torch.from_numpy(RING)


def npz(**arrays: Any) -> dict[str, Any]:
    return {"g.npz": {"edge_index": RING, **arrays}}


def pt(**values: Any) -> dict[str, Any]:
    return {"g.pt": Data(edge_index=INDEX, **values)}


def hetero() -> HeteroData:
    data = HeteroData()
    data["paper"].x = torch.rand(3, 2)
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    return data


ARRAYS: list[Case] = [
    ("plain", npz(x=np.ones((4, 2)), y=[0, 1, 0, 1]), {}, ["4 nodes, 4 edges", "2 classes", "node: 2 numbers", DRAWN]),
    ("names and ids", npz(x=np.ones((4, 2)), y=[0, 1, 0, 1], x_names=["a", "b"], class_names=["no", "yes"],
                          node_ids=["p", "q", "r", "s"]), {}, ["called 'p'", "(a, b)", "2 classes (no, yes)"]),
    ("too few names", npz(x=np.ones((4, 2)), x_names=["a"]), {}, ["error: g.npz: 1 names of x for 2; give one each"]),
    ("too few ids", npz(node_ids=["p"]), {}, ["error: g.npz: 1 node_ids for 4 nodes; give one each"]),
    ("over-long names", npz(x=np.ones((4, 1)), x_names=["a" * 2000]), {}, ["error: at most 1,000 characters"]),
    ("text labels", npz(y=["a", "b", "", "b"]), {}, ["2 classes (a, b)", "3 of 4 nodes labelled"]),
    ("-1 and 1", npz(y=[-1, 1, -1, 1]), {}, ["2 classes (-1, 1)"]),
    ("whole with NaN", npz(y=[0.0, 1.0, np.nan, 2.0]), {}, ["3 classes", "read as classes"]),
    ("labels around 10^9", npz(y=[10**9, 10**9 + 1, 10**9, 10**9]), {}, ["2 classes (1000000000, 1000000001)"]),
    ("booleans for a regression", npz(y=[True, False, True, True]), {"task": "regression"}, ["regression, 1 targets"]),
    ("labels of 64 bits without sign", npz(y=np.array([2**64 - 1, 0, 1, 0], dtype=np.uint64)), {},
     ["error: labels hold 1.84467e+19, too large for classes"]),
    ("one-hot labels", npz(y=np.eye(4, dtype=int)), {"task": "multiclass"}, ["multiclass, 4 classes"]),
    ("0 and 1 with a point", npz(y=[[0.0, 1.0], [1, 1], [0, np.nan], [1, 0]]), {}, ["multilabel, 2 labels"]),
    ("infinite labels", npz(y=[0.5, np.inf, 1, 2]), {}, ["error: labels hold infinite values"]),
    ("only train_mask", npz(y=[0, 1, 0, 1], train_mask=[True, True, False, False]), {},
     ["2 train, 1 validation, 1 test"]),
    ("only train_mask, all of it", npz(y=[0, 1, 0, 1], train_mask=[True] * 4), {}, ["error: none are left to test on"]),
    ("only train_mask, several splits",
     npz(y=[0, 1, 0, 1], train_mask=np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)), {},
     ["2; the first has 2 train, 1 validation, 1 test", "drew validation and test from the other 2"]),
    ("no edges", {"g.npz": {"x": np.ones((4, 1))}}, {}, ["error: there are no edges; give edges as edge_index"]),
    ("one-hot labels, not told", npz(y=np.eye(4)), {}, ["multiclass, 4 classes", "has one 1: read as classes"]),
    ("one node", {"g.npz": {"edges": np.zeros((0, 2), int), "num_nodes": 1}}, {}, ["1 nodes, 0 edges"]),
    ("categories", npz(x=np.array([[0], [1], [2], [1]])), {}, ["node: 1 categories"]),
    ("numbers around 10^9", npz(x=np.array([[10**9], [1], [2], [3]])), {},
     ["node: 1 numbers", "x holds whole numbers from 1 to 1,000,000,000: read as numbers, not as categories"]),
    ("numbers beyond 32 bits", npz(x=np.array([[1e300], [1], [2], [3]])), {}, ["error: 1 values that are NaN"]),
    ("negative numbers", npz(x=np.array([[-5], [1], [2], [3]])), {}, ["node: 1 numbers", "from -5 to 3"]),
    ("unsigned 64 bits", npz(x=np.array([[2**63], [1], [2], [3]], dtype=np.uint64)), {}, ["node: 1 numbers"]),
    ("wrapping indptr", {"g.npz": {"indptr": [0, 2**62, -(2**62), 2], "indices": [1, 0]}}, {},
     ["error: indptr goes down"]),
    ("wrapping graph_ptr", npz(graph_ptr=[0, 2**63 - 1, -2, 4]), {}, ["error: graph_ptr goes down at entry 2"]),
    ("10^12 nodes", npz(num_nodes=10**12), {}, ["error: 1,000,000,000,000 nodes with only 4 edges"]),
    ("10^12 nodes, beside x", npz(num_nodes=10**12, x=np.ones((4, 1))), {}, ["error: g.npz: "]),
    ("many graphs with ids", {"g.npz": {"edges": [[0, 1], [2, 3]], "graph_ptr": [0, 2, 4], "y": [0.5, 1.5],
                                        "graph_ids": ["m1", "m2"]}}, {}, ["2 graphs, 4 nodes", "graph regression"]),
    ("pairs", npz(pairs=[[0, 2], [1, 3], [0, 1]], y=[0, 0, 1]), {}, ["link binary, 2 classes, roc_auc"]),
    ("an object array", npz(y=np.array([{}], dtype=object)), {}, ["error: not an .npz file of plain arrays"]),
    ("an unknown key", npz(labels=[0, 1, 0, 1]), {}, ["error: key 'labels' is not known"]),
    ("no numbers", npz(x=np.array([["a"]] * 4)), {}, ["error: x is of type <U1; it must hold numbers"]),
]  # fmt: skip

PYG: list[Case] = [
    ("plain", pt(x=torch.rand(4, 2), y=torch.tensor([0, 1, 0, 1])), {}, ["4 nodes, 4 edges", "node: 2 numbers"]),
    ("edge_weight", pt(edge_weight=torch.rand(4)), {}, ["edge: 1 numbers (edge_weight)"]),
    ("edge_weight and edge_attr", pt(edge_weight=torch.rand(4), edge_attr=torch.rand(4, 2)), {}, ["edge: 3 numbers"]),
    ("edge_weight of other length", pt(edge_weight=torch.rand(3)), {}, ["error: edge_weight has 3 values for 4 edges"]),
    ("adj_t", {"g.pt": lambda: ToSparseTensor()(Data(edge_index=INDEX, x=torch.rand(4, 1))).to_dict()}, {},
     ["4 nodes, 4 edges", "node: 1 numbers"]),
    ("adj_t as PyG leaves it", {"g.pt": lambda: ToSparseTensor()(Data(edge_index=INDEX, x=torch.rand(4, 1)))}, {},
     ["4 nodes, 4 edges", "node: 1 numbers"]),
    ("after a transform", {"g.pt": lambda: ToUndirected()(Data(edge_index=INDEX, x=torch.rand(4, 1)))}, {},
     ["4 nodes, 4 edges", "node: 1 numbers"]),
    ("adj_t with weights", {"g.pt": lambda: {"adj_t": torch.diag(torch.tensor([2.0, 3, 4]), 1).to_sparse_csr()}}, {},
     ["4 nodes, 3 edges", "edge: 1 numbers (edge_weight)"]),
    ("sparse x", {"g.pt": lambda: Data(edge_index=INDEX, x=torch.eye(4).to_sparse())}, {}, ["node: 4 numbers"]),
    ("sparse x in rows", {"g.pt": lambda: Data(edge_index=INDEX, x=torch.eye(4).to_sparse_csr())}, {},
     ["node: 4 numbers"]),
    ("sparse x, huge",
     {"g.pt": lambda: Data(edge_index=INDEX, x=torch.sparse_coo_tensor([[0], [0]], [1.0], (4, 10**12)))}, {},
     ["error: too large to be made dense"]),
    ("bf16", pt(x=torch.rand(4, 2).bfloat16()), {}, ["node: 2 numbers"]),
    ("half", pt(x=torch.rand(4, 2).half()), {}, ["node: 2 numbers"]),
    ("meta", pt(x=torch.rand(4, 2, device="meta")), {}, ["error: g.pt: x is on the meta device"]),
    ("complex", pt(x=torch.rand(4, 2).to(torch.complex64)), {}, ["error: g.pt: x is complex"]),
    ("repeated bytes", pt(x=torch.ones(1).expand(4, 10**10)), {}, ["error: x has shape (4, 10000000000) on 4 bytes"]),
    ("other attributes", pt(y=torch.tensor([0, 1, 0, 1]), name="mine"), {}, ["g.pt: left aside name"]),
    ("a dict", {"g.pt": {"edge_index": INDEX, "y": torch.tensor([0, 1, 0, 1])}}, {}, ["2 classes"]),
    ("a list", {"g.pt": [Data(edge_index=INDEX, num_nodes=4, y=0.5), Data(edge_index=INDEX, num_nodes=5, y=1.5)]}, {},
     ["2 graphs, 9 nodes", "graph regression"]),
    ("a dataset's file",
     {"g.pt": lambda: collated([Data(edge_index=INDEX, x=torch.rand(4, 2), y=i) for i in (0, 1, 0)])},
     {}, ["3 graphs, 12 nodes", "graph multiclass, 2 classes"]),
    ("a dataset's file without x", {"g.pt": lambda: collated([Data(edge_index=INDEX, num_nodes=n) for n in (4, 6)])},
     {},
     ["2 graphs, 10 nodes"]),
    ("HeteroData", {"g.pt": hetero}, {}, ["error: g.pt holds a HeteroData; save data.to_homogeneous().to_dict()"]),
    ("a Batch", {"g.pt": lambda: Batch.from_data_list([Data(edge_index=INDEX, num_nodes=4)] * 2)}, {},
     ["error: g.pt holds a Batch; save batch.to_data_list() instead"]),
    ("wrapping graph_ptr", pt(graph_ptr=torch.tensor([0, 2**62, -(2**62), 4])), {}, ["error: graph_ptr goes down"]),
    ("huge ids in a list", {"g.pt": [{"edge_index": torch.tensor([[0], [2**62]])}] * 3}, {},
     ["error: ids must be numbers from 0"]),
    ("only train_mask", pt(y=torch.tensor([0, 1, 0, 1]), train_mask=torch.tensor([True, True, False, False])), {},
     ["only training items given", "2 train, 1 validation, 1 test"]),
    ("pairs as PyG calls them", pt(x=torch.rand(4, 1), edge_label_index=torch.tensor([[0, 1, 2], [2, 3, 0]]),
                                   edge_label=torch.tensor([1.0, 0, 0])), {}, ["link binary, 2 classes"]),
    ("pairs beside labels of nodes", pt(y=torch.tensor([0, 1, 0, 1]), edge_label_index=INDEX), {},
     ["node multiclass", "left aside edge_label_index"]),
    ("no graph", {"g.pt": torch.ones(3)}, {}, ["error: g.pt holds Tensor; it must hold a PyG Data"]),
    ("no torch file", {"g.pt": b"hello"}, {}, ["error: g.pt is not a file saved by torch"]),
]  # fmt: skip


def collated(items: list[Data]) -> Any:
    """What `InMemoryDataset.save` writes."""
    from torch_geometric.data import InMemoryDataset

    data, slices = InMemoryDataset.collate(items)
    return data.to_dict(), slices, type(data)
