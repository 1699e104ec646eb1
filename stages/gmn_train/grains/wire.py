"""How processes hand tensors to each other. Here: a process that is alone; `gmn_train.ranks.join` has the other."""

from collections.abc import Mapping, Sequence

from torch import Tensor

Parcels = Mapping[int, Sequence[Tensor]]
"""By rank, tensors that go there, or buffers for what comes from there."""


class Wire:
    """Rank `rank` of `size` processes. `sent` counts the bytes that left this one."""

    rank, size = 0, 1

    def __init__(self) -> None:
        self.sent = 0

    def swap(self, outgoing: Parcels, incoming: Parcels) -> None:
        """Send `outgoing` and fill `incoming`; returns when both are done. Tensors are contiguous."""
        assert not outgoing
        assert not incoming
