"""SIGTERM, which Slurm and docker send some seconds before they kill: the run saves itself and ends."""

import signal
import threading
from types import FrameType, TracebackType

from gmn_pipeline.errors import StoppedError


class Termination:
    """Inside `with`, SIGTERM is remembered instead of obeyed; a second one ends the process at once.

    Weights change in the middle of a step, so a run asks between steps. Threads other than the main one hear nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None
        self._installed = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Termination":
        if self._installed:
            self._before = signal.signal(signal.SIGTERM, self._remember)
        return self

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

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
