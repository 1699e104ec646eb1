"""The branches give what PyG's layers, or a plain loop, give with their weights; loops and lone rows too."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_train.data.inputs.record import Neighbourhood
from gmn_train.model.encoders.gatedgcn import gated_messages
from gmn_train.model.encoders.gine import gine_messages
from gmn_train.model.message_passing.branches import make_branch
from gmn_train.model.message_passing.edge_states import EdgeStates
from gmn_train.settings.model_settings import ModelConfig
from tests.train.model.scan.scan_inputs import TOLERANCE, assert_close, with_gradients


def edge_gcn(project, x, edge_index, edges):
    """Slow twin of gcn-edges: edge by edge."""
    h = project(x)
    out = [0 * row for row in h]
    for e, (source, target) in enumerate(edge_index.T.tolist()):
        out[target] = out[target] + torch.relu(h[source] if edges is None else h[source] + edges[e])
    return torch.stack(out)


PEERS = {"gatedgcn": gated_messages, "gine": gine_messages, "gcn-edges": edge_gcn}


@pytest.mark.parametrize("name", PEERS)
@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(1, 9),
    edges=st.integers(0, 30),
    width=st.sampled_from([1, 7, 16, 96]),
    kinds=st.sampled_from([None, 0, 3, 70]),
    seed=st.integers(0, 5),
)
def test_equals_pyg(name, rows, edges, width, kinds, seed):
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    branch = make_branch(ModelConfig(mpnn=name, width=width), kinds is not None).double()
    x = torch.randn(rows, width, dtype=torch.float64, generator=rng, requires_grad=True)
    near = Neighbourhood(torch.randint(rows, (2, edges), generator=rng), rows, False)
    states, given_rows = None, None
    inputs = [x, *branch.parameters()]
    if kinds is not None:
        values = torch.randn(kinds or edges, width, dtype=torch.float64, generator=rng, requires_grad=True)
        given_rows = torch.randint(kinds, (edges,), generator=rng) if kinds else None
        states = EdgeStates(values, given_rows)
        inputs.append(values)
    more = []
    if name == "gatedgcn" and seed % 2:  # a map of the rows themselves, as a node layer hands it over
        more = [torch.nn.Linear(width, width, dtype=torch.float64)]
        inputs += more[0].parameters()
    ours = with_gradients(branch(x, near, states, *more), inputs)
    weights = branch.project if name == "gcn-edges" else branch.convolution
    theirs = PEERS[name](weights, x, near.edge_index, None if states is None else states.of_all())
    theirs = theirs + sum(skip(x) for skip in more)
    names = [str(i) for i in range(len(ours))]
    assert_close(ours, with_gradients(theirs, inputs), 100 * TOLERANCE[torch.float64], names)
