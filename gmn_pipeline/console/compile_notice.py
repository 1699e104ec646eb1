"""Says, once, that kernels are being compiled: the first use on a machine takes a minute, and later ones do not."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gmn_pipeline.console.interrupt import hold_interrupts, raise_if_interrupted, release_interrupts

NOTICE = "compiling kernels for this machine, once: this may take a minute or two"
PATIENCE = 1.0
"""Seconds of compilation that are not worth a word: some small functions are compiled in every process."""


@contextmanager
def tell_compilation(say: Callable[[str], None], patience: float = PATIENCE) -> Iterator[None]:
    """Inside `with`, say so when kernels have been compiled, not read from the cache on disk, for some time."""
    from numba.core import event

    listener = _make_listener(event.Listener, lambda: say(NOTICE), patience)
    with event.install_listener("numba:compile", listener):
        yield


def _make_listener(base: Any, tell: Callable[[], None], patience: float) -> Any:
    class Listener(base):  # type: ignore[misc]
        """Counts the seconds of compilation; compilations nest."""

        def __init__(self) -> None:
            self.left, self.depth, self.begun = patience, 0, 0.0
            self.timer: threading.Timer | None = None
            self.noticed = False

        def on_start(self, _event: Any) -> None:
            hold_interrupts()
            self.depth += 1
            raise_if_interrupted()
            if self.depth == 1 and not self.noticed:
                self.begun = time.monotonic()
                self.timer = threading.Timer(max(self.left, 0.0), self._tell)
                self.timer.daemon = True
                self.timer.start()

        def on_end(self, _event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.timer is not None:
                self.timer.cancel()
                self.timer = None
                self.left -= time.monotonic() - self.begun
            release_interrupts()

        def _tell(self) -> None:
            if not self.noticed:
                self.noticed = True
                tell()

    return Listener()
