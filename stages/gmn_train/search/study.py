"""The study: what was tried, kept in Optuna's storage, and shared by every process that opens it."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmn_pipeline.counter_random import Purpose, key_path
from gmn_pipeline.disk.lock import release_lock, take_lock
from gmn_pipeline.errors import TrainError
from gmn_train.search.proposal import Proposals

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

WAIT, POLL = 120.0, 0.2
"""Seconds to wait for another process that begins the study or writes to it, and between two looks."""
STARTUP = 10
"""Trials, the starts among them, before the sampler follows what it has seen."""
REDUCTION = 3
"""Of the trials that reach a rung, one in three goes on."""
RUNGS = 2
"""At a ninth and a third of the epochs."""


def import_optuna() -> Any:
    """Optuna, quiet; TrainError where it is not installed."""
    try:
        import optuna
    except ImportError:
        raise TrainError("a search needs Optuna; install it with pip install optuna") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@contextmanager
def storage_errors(storage: str) -> Iterator[None]:
    """Turn what databases raise into one line."""
    optuna = import_optuna()
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError, StorageError) as error:
        reason = str(error).strip().splitlines()[0]
        raise TrainError(f"the study's storage {storage} fails: {reason}; check --storage, and its driver") from error


class StorageError(Exception):
    """A storage cannot be opened."""


class SearchStudy:
    """A study on a task: trials with their settings and validation, and the repeats of the best."""

    def __init__(self, study: "optuna.Study", proposals: Proposals, seed: int) -> None:
        self.optuna, self.study, self.proposals, self.seed = import_optuna(), study, proposals, seed

    @classmethod
    def open(
        cls,
        folder: Path,
        storage: str | None,
        proposals: Proposals,
        *,
        digest: str,
        higher: bool,
        seed: int,
        plan_epochs: Callable[[], int],
    ) -> "SearchStudy":
        """Open or begin the study of a folder. storage: a URL instead of its study.db. digest: of all that must agree.

        plan_epochs: says how many epochs a trial has, where the study is new. Raises TrainError where it is another
        study, or the storage fails.
        """
        optuna = import_optuna()
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_lock(folder / "study", wait=WAIT)  # two processes cannot make the tables of one database at once
        try:
            at = _make_storage(optuna, storage or f"sqlite:///{folder / 'study.db'}")
            try:
                study = optuna.create_study(
                    storage=at, study_name=folder.name, direction="maximize" if higher else "minimize"
                )
                study.set_user_attr("begun by", _this_process())
                is_new = True
            except optuna.exceptions.DuplicatedStudyError:  # one process alone begins a study, wherever it runs
                study, is_new = optuna.load_study(storage=at, study_name=folder.name), False
        finally:
            release_lock(lock)
        self = cls(study, proposals, seed)
        if is_new or not self._wait_until_begun():
            study.set_user_attr("settings", digest)
            study.set_user_attr("epochs", plan_epochs())
            for start, params in proposals.starts():
                self.enqueue(params, start.name)
            study.set_user_attr("begun", True)
        if study.user_attrs["settings"] != digest:
            raise TrainError(
                f"the study {folder.name} was made with other settings; use the same ones, or another --name"
            )
        study.pruner = optuna.pruners.SuccessiveHalvingPruner(self.first_rung, REDUCTION)
        self._adopt_orphans()
        return self

    @classmethod
    def load(cls, folder: Path, proposals: Proposals, storage: str | None = None, seed: int = 0) -> "SearchStudy":
        """A study that was begun, to look at."""
        at = _make_storage(import_optuna(), storage or f"sqlite:///{folder / 'study.db'}")
        return cls(import_optuna().load_study(storage=at, study_name=folder.name), proposals, seed)

    def _wait_until_begun(self) -> bool:
        """Whether the process that begins the study has done so; False where it is no more."""
        for _ in range(int(WAIT / POLL)):
            facts = self.study.user_attrs
            if facts.get("begun"):
                return True
            if _is_gone(facts.get("begun by", "")):
                return False
            time.sleep(POLL)
        return False

    @property
    def higher(self) -> bool:
        return bool(self.study.direction == self.optuna.study.StudyDirection.MAXIMIZE)

    @property
    def epochs(self) -> int:
        """Of every trial."""
        return int(self.study.user_attrs["epochs"])

    @property
    def first_rung(self) -> int:
        return max(self.epochs // REDUCTION**RUNGS, 1)

    def ask(self) -> "optuna.Trial":
        """A new trial. What it proposes depends on the seed, its number and the study so far, not on the process."""
        trial = self.study.ask()
        trial.set_user_attr("process", _this_process())
        self.study.sampler = self.optuna.samplers.TPESampler(
            seed=int(key_path(self.seed, Purpose.SEARCH, trial.number)) % 2**32,
            n_startup_trials=STARTUP,
            multivariate=False,
        )
        return trial

    def enqueue(self, params: dict[str, Any], start: str | None) -> None:
        """Have these parameters tried next. start: its name, where it must not be cut short."""
        self.study.enqueue_trial(params, user_attrs={"start": start} if start else {})

    def end(self, trial: "optuna.Trial", value: float | None, *, pruned: str | None = None) -> None:
        """Record how a trial ended: with a value, cut short for a reason, or (neither) failed."""
        states = self.optuna.trial.TrialState
        if pruned is not None:
            trial.set_user_attr("ended", pruned)
            self.study.tell(trial, state=states.PRUNED)
        elif value is None:
            self.study.tell(trial, state=states.FAIL)
        else:
            self.study.tell(trial, value)

    def give_back(self, trial: "optuna.Trial | FrozenTrial") -> None:
        """End a trial that was interrupted; the next process, or sitting, continues it."""
        self.study.tell(trial.number, state=self.optuna.trial.TrialState.FAIL)
        self.enqueue(trial.params, trial.user_attrs.get("start"))

    def _adopt_orphans(self) -> None:
        """Trials of processes of this machine that are no more."""
        for trial in self.trials("RUNNING"):
            if _is_gone(trial.user_attrs.get("process", "")):
                self.give_back(trial)

    def trials(self, *states: str) -> "Sequence[FrozenTrial]":
        """Trials in these states, by number."""
        wanted = tuple(getattr(self.optuna.trial.TrialState, state) for state in states)
        return list(self.study.get_trials(deepcopy=False, states=wanted))

    def best_first(self) -> "list[FrozenTrial]":
        """Complete trials, the best first."""
        sign = -1 if self.higher else 1
        return sorted(self.trials("COMPLETE"), key=lambda t: (sign * (t.value or 0.0), t.number))

    def settings_of(self, trial: "FrozenTrial") -> dict[str, Any]:
        """What a trial tried, by dotted key."""
        return self.proposals.draw(self.optuna.trial.FixedTrial(trial.params))

    def add_repeat(self, number: int, seed: int, value: float) -> None:
        """The validation of a trial's settings with another seed. Each has a key of its own, so processes may race."""
        self.study.set_user_attr(f"repeat {number} {seed}", value)

    def repeats(self, number: int) -> dict[int, float]:
        """By seed."""
        start = f"repeat {number} "
        return {int(k.removeprefix(start)): v for k, v in self.study.user_attrs.items() if k.startswith(start)}


def _make_storage(optuna: Any, url: str) -> Any:
    """`journal:PATH` is a file that grows, for folders shared by NFS; anything else a database, by SQLAlchemy's URL."""
    options = {"connect_args": {"timeout": WAIT}} if url.startswith("sqlite:") else {}
    try:
        if url.startswith("journal:"):
            backend = optuna.storages.journal.JournalFileBackend(url.removeprefix("journal:"))
            return optuna.storages.JournalStorage(backend)
        storage = optuna.storages.RDBStorage(url, engine_kwargs=options)
    except (OSError, ImportError) as error:
        raise StorageError(str(error)) from error
    if url.startswith("sqlite:"):
        _ease_sqlite(storage.engine)
    return storage


def _ease_sqlite(engine: Any) -> None:
    """Readers and a writer side by side, and no flush to disk for each of the hundreds of notes of a study."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def ease(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    engine.dispose()  # connections made before


def _this_process() -> str:
    return f"{platform.node()}:{os.getpid()}"


def _is_gone(process: str) -> bool:
    """Whether it was a process of this machine, and is no more."""
    host, _, number = process.rpartition(":")
    if host != platform.node():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
