"""Two that follow one run: the display, and a logger of the user's own."""

from typing import TYPE_CHECKING, Any

from gmn_train.runs.watching.display import RunHeader, Watcher

if TYPE_CHECKING:
    from gmn_train.runs.watching.estimate import RunCost


class Together(Watcher):
    """Tells every watcher, in order."""

    def __init__(self, *watchers: Watcher) -> None:
        self.watchers = watchers
        self.wants_estimate = any(watcher.wants_estimate for watcher in watchers)

    def start(self, header: RunHeader) -> None:
        for watcher in self.watchers:
            watcher.start(header)

    def estimated(self, estimate: "RunCost") -> None:
        for watcher in self.watchers:
            watcher.estimated(estimate)

    def step(self, epoch: int, step: int, steps: int) -> None:
        for watcher in self.watchers:
            watcher.step(epoch, step, steps)

    def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:
        for watcher in self.watchers:
            watcher.epoch(row, best, best_epoch)

    def say(self, message: str) -> None:
        for watcher in self.watchers:
            watcher.say(message)

    def stop(self) -> None:
        for watcher in self.watchers:
            watcher.stop()
