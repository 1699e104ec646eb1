"""A step cut into grains is the same step: same gradients as in one piece, and sums that no cut changes."""

import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.errors import TrainError
from gmn_train.data.steps import Step
from gmn_train.grains.grain import Grain
from gmn_train.grains.lockstep import Lockstep, share_of
from gmn_train.grains.tree_sum import Node, TreeSum, cover
from gmn_train.grains.wire import Wire
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.split_scan import scan_own_rows
from gmn_train.train import Training, _differentiate
from tests.train.grains.ladder import ladder
from tests.train.model_stores import model_store
from tests.train.small_runs import SMALL, many_graphs, prepare, settings_for

pytestmark = pytest.mark.usefixtures("one_thread")


@given(count=st.integers(1, 40), cuts=st.lists(st.integers(0, 40), max_size=6), seed=st.integers(0, 99))
def test_a_sum_has_the_same_bits_however_its_leaves_are_cut(count: int, cuts: list[int], seed: int) -> None:
    leaves = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    whole = TreeSum()
    for number in range(count):
        whole.add_leaf(number, leaves[number])
    borders = sorted({0, count, *(cut for cut in cuts if cut < count)})
    joined = TreeSum()
    for lo, hi in pairwise(borders):
        part = TreeSum()
        for number in range(lo, hi):
            part.add_leaf(number, leaves[number])
        assert [(node.height, node.index) for node in part.nodes] == cover(lo, hi)
        for node in part.nodes:
            joined.add(Node(node.height, node.index, node.value.clone(), True))
    assert torch.equal(joined.total(), whole.total())
    torch.testing.assert_close(whole.total(), leaves.double().sum(0).float(), rtol=1e-4, atol=1e-5)


def scanned(layer: BiMamba, x: Tensor, grad: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    out = layer(x, torch.tensor([0, len(x)])) - x
    return [out.detach(), *torch.autograd.grad(out, [x, *layer.parameters()], grad)]


def scanned_in_pieces(layer: BiMamba, x: Tensor, grad: Tensor, pieces: int) -> list[Tensor]:
    shares = [slice(*share_of(i, pieces, len(x))) for i in range(pieces)]

    def work(grain: Grain) -> list[Tensor]:
        own = x[shares[grain.number]].clone().requires_grad_()
        out = scan_own_rows(layer, own, grain)
        return [out.detach(), *torch.autograd.grad(out, [own, *layer.parameters()], grad[shares[grain.number]])]

    outputs, inputs, *weights = zip(*Lockstep(Wire(), pieces).run(work), strict=True)
    return [torch.cat(outputs), torch.cat(inputs), *(torch.stack(parts).sum(0) for parts in weights)]


@settings(max_examples=6)
@given(
    rows=st.integers(20, 150), pieces=st.integers(1, 6), taps=st.integers(1, 4), states=st.sampled_from([3, 4]),
    both=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
def test_a_scan_in_pieces_is_the_scan(rows: int, pieces: int, taps: int, states: int, both: bool, seed: int) -> None:
    torch.manual_seed(seed)
    layer = BiMamba(10, states=states, conv_width=taps, bidirectional=both)
    x, grad = torch.randn(2, rows, 10).unbind()
    exact_layer = copy.deepcopy(layer).double()
    exact_layer.backend = "reference"
    exact = scanned(exact_layer, x.double(), grad.double())
    for found in (scanned_in_pieces(layer, x, grad, pieces), scanned(layer, x, grad)):
        for one, other in zip(found, exact, strict=True):
            assert float((one - other).abs().max()) <= 3e-6 * max(float(other.abs().max()), 1e-3)


def gradients(training: Training, grains: int | None, step: Step) -> tuple[float, list[Tensor], list[Tensor]]:
    """Loss, gradients and running statistics of one training step."""
    training.model.train()
    training.optimizer.zero_grad()
    if grains is None:
        loss, _ = _differentiate(training, training.sampler.load(step, 0), (0, 0))
    else:
        assert training.team is not None
        loss, _ = training.team.differentiate(training, training.team.load(step, 0), (0, 0))
    parameters = training.model.parameters()
    return loss, [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters], [*training.model.buffers()]


def assert_same_step(path: Path, graph: Graph, grains: int, model: dict[str, object], **given: object) -> None:
    model_store(path, graph, TokenSettings(2, 2, 1), orderings=("degree",), laplacian=2)
    plain = replace(SMALL, dropout=0.0, token_dropout=0.0, feature_mask=0.0, **model)  # type: ignore[arg-type]
    config = settings_for(path, model=plain, **given)
    whole, cut = prepare(config), prepare(replace(config, grains=grains))
    step = whole.sampler.training_steps(0)[-1]
    expected, found = gradients(whole, None, step), gradients(cut, grains, step)
    assert found[0] == pytest.approx(expected[0], rel=1e-5)
    scale = max(float(g.abs().max()) for g in expected[1])
    for one, other in zip(found[1], expected[1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-5 * scale)
    for one, other in zip(found[2], expected[2], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("item", "edges", "model"),
    [
        ("node", False, {"mpnn": "gcn", "token_blocks": "between", "ffn": 1.0}),
        ("node", True, {"mpnn": "gine", "encoder": "gine", "token_blocks": "input"}),
        ("link", False, {"mpnn": "gatedgcn", "mpnn_form": "literal", "token_blocks": "input"}),
    ],
)
def test_a_graph_cut_into_rows_has_the_gradients_of_the_whole(
    tmp_path: Path, item: str, edges: bool, model: dict[str, object]
) -> None:
    assert_same_step(tmp_path / "s.zarr", ladder(item, edges), 3, model, mode="full")


def test_graphs_in_grains_have_the_gradients_of_the_batch(tmp_path: Path) -> None:
    """Also where graphs do not divide evenly: the last step has two."""
    assert_same_step(tmp_path / "s.zarr", many_graphs(), 5, {}, batch_size=5)


def test_what_cannot_be_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    model_store(path, ladder(), TokenSettings(1, 2, 1), orderings=("degree",))
    gps = replace(SMALL, name="gps", norm="batch", encodings="none")
    with pytest.raises(TrainError, match="needs all nodes at once"):
        prepare(settings_for(path, model=gps, mode="full", grains=2))
    with pytest.raises(TrainError, match="BatchNorms of its own"):
        prepare(settings_for(path, model=gps, mode="batch", grains=2))
