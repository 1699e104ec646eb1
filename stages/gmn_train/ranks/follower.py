"""The run folder of a process that only reads: the first one writes for all."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gmn_train.grains.wire import Wire
from gmn_train.runs.folder import RunFolder


class FollowerFolder(RunFolder):
    """Reads as a RunFolder does, and writes nothing."""

    writes = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        yield

    def create(self, config: Any) -> None:
        pass

    def extend(self, config: Any) -> None:
        pass

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        pass

    def keep_metrics_before(self, epoch: int) -> None:
        pass

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        pass


def folder_for(wire: Wire, folder: RunFolder) -> RunFolder:
    """The folder as this process may use it."""
    return folder if wire.rank == 0 else FollowerFolder(folder.path)
