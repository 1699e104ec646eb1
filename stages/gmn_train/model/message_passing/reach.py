"""A branch's messages to the rows at hand, from wherever they come."""

from torch import Tensor, nn

from gmn_train.data.inputs.record import Neighbourhood
from gmn_train.data.inputs.slices import RowNeighbourhood
from gmn_train.grains.grain import row_grain_here
from gmn_train.grains.rows import gather_rows
from gmn_train.model.message_passing.edge_states import EdgeStates


def pass_messages(
    branch: nn.Module, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None, *more: nn.Linear
) -> Tensor:
    """What the branch gives for h (S, d). Of a graph that is cut over grains, the neighbours' states are gathered.

    more: a linear map whose result is added, of a branch that `adds_skip`.
    """
    grain = row_grain_here()
    if grain is None:
        out: Tensor = branch(h, near, edge_states, *more)
        return out
    assert isinstance(near, RowNeighbourhood)
    read = gather_rows(h, grain).index_select(0, near.read)  # (rows, d), the own ones first
    out = branch(read, near, edge_states, *more)
    return out[: near.own]
