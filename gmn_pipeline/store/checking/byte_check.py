"""Checksums of a store's arrays: compared at once, or beside a reader when its parts are first used."""

import threading
from collections import deque
from collections.abc import Callable, Mapping

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.array_files import REMEDY, array_checksum, read_checksums
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.array_spec import ArraySpec
from gmn_pipeline.store.format.words import Codec

Part = int | str
"""A block by its number, another group by its name."""


def check_group_bytes(storage: Storage, group: str, specs: Mapping[str, ArraySpec], codec: Codec) -> None:
    """Compare every array of a group with its checksum. StoreCorruptError names the one that was changed."""
    for name, wanted in read_checksums(storage, group, specs).items():
        array = f"{group}/{name}"
        if array_checksum(storage, array, specs[name], codec) != wanted:
            raise StoreCorruptError(f"{storage}/{array} was changed since it was written; {REMEDY}")


class ByteCheck:
    """Checks each part once, on a thread of its own, after `first_use` has told of it. Safe from several threads."""

    def __init__(self) -> None:
        self._seen: set[Part] = set()
        self._waiting: deque[Part] = deque()
        self._fault: Exception | None = None
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    def first_use(self, part: Part, check_part: Callable[[Part], None]) -> None:
        """Have a part checked if it is new. Raises the fault of an earlier one, if there was any."""
        if self._fault is not None:
            raise self._fault
        if part in self._seen:
            return
        with self._guard:
            if self._thread is None:  # first: where it cannot be started, the part still counts as new
                thread = threading.Thread(target=self._run, args=(check_part,))
                thread.start()
                self._thread = thread
            if part not in self._seen:
                self._seen.add(part)
                self._waiting.append(part)

    def finish(self) -> None:
        """Wait until every part used so far is checked; raises the first fault."""
        thread = self._thread
        if thread is not None:
            thread.join()
        if self._fault is not None:
            raise self._fault

    def _run(self, check_part: Callable[[Part], None]) -> None:
        """Work until nothing waits, then end: an idle thread would keep the store open.

        When the program ends, the rest is left. The program waits for the part at hand: Python's own end fails if a
        thread still imports or loads kernels.
        """
        while True:
            with self._guard:
                if not self._waiting or self._fault is not None or not threading.main_thread().is_alive():
                    self._thread = None
                    return
                part = self._waiting.popleft()
            try:
                check_part(part)
            except Exception as error:  # whatever keeps a part from being checked must not pass for a good part
                self._fault = error
