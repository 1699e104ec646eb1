"""SIGTERM, which Slurm and docker send some seconds before they kill: the run saves itself and ends."""

import os
import signal
import threading
import time
from types import FrameType, TracebackType

from gmn_pipeline.errors import StoppedError
from gmn_train.ranks.environment import is_started

SAME_SECONDS = 2.0


class Termination:
    """Inside `with`, SIGTERM is remembered instead of obeyed; a second one ends the process at once.

    One of several processes often gets the same SIGTERM twice, from the system and from who started it: within
    SAME_SECONDS it counts once.

    Weights change in the middle of a step, so a run asks between steps. Threads other than the main one hear nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None
        self._ignored_until = 0.0
        self._installed = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Termination":
        if self._installed:
            self._before = signal.signal(signal.SIGTERM, self._remember)
        return self

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked and time.monotonic() >= self._ignored_until:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        elif not self.asked:
            self.asked = True
            self._ignored_until = time.monotonic() + (SAME_SECONDS if is_started() else 0.0)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)  # type: ignore[arg-type]


def stopped(run: object, epoch: int, step: int) -> StoppedError:
    """What a terminated run says."""
    return StoppedError(
        f"stopped by SIGTERM; saved after {epoch} epochs and {step} steps: continue with gmn-train resume {run}"
    )
