"""Running a table's rows: each run is a process of its own, so that memory is its own and a crash harms no other."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import StoreError, TrainError
from gmn_pipeline.store.reader import TokenStore
from gmn_train.request import read_request
from gmn_train.run_folder import RunFolder
from gmn_train.runs import parse_numbers, same_content
from gmn_train.tables.spec import RowSpec, TableSpec
from gmn_train.train_config import TrainConfig

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One run of a row."""

    row: RowSpec
    seed: int
    split: int
    path: Path

    @property
    def arguments(self) -> list[str]:
        """Of `gmn-train`; where it is interrupted, the same again goes on."""
        return [
            "run", "--store", str(self.row.store_path), "--model", self.row.model, "--seed", str(self.seed), "--split",
            str(self.split), *[part for text in self.row.assignments for part in ("--set", text)],
        ]  # fmt: skip

    def config(self) -> TrainConfig:
        """What the command would train with."""
        given = {"store": self.row.store_path, "seed": self.seed, "split": self.split}
        return read_request(given, None, self.row.assignments, model=self.row.model)


@dataclass
class RowResult:
    """What the runs of a row found."""

    row: RowSpec
    runs: list[RunFolder] = field(default_factory=list)
    """Those that are finished."""
    failures: list[str] = field(default_factory=list)
    pending: int = 0

    @property
    def summaries(self) -> list[dict[str, Any]]:
        return [summary for run in self.runs if (summary := run.summary()) is not None]


def plan_jobs(spec: TableSpec, out: Path) -> list[Job]:
    """Every run of a table, split by split, so that an unfinished table compares its rows on the same splits."""
    jobs = [
        (split, seed, number, Job(row, seed, split, out / "runs" / row.folder / f"seed{seed}-split{split}"))
        for number, row in enumerate(spec.row)
        for seed in parse_numbers(row.seeds, "seeds")
        for split in parse_numbers(row.splits, "splits")
    ]
    return [job for _, _, _, job in sorted(jobs, key=lambda item: item[:3])]


def make_stores(rows: Sequence[RowSpec], say: Say) -> None:
    """Tokenize, by the command of stage one, what is not there yet."""
    for row in {str(row.store_path): row for row in rows}.values():
        try:
            TokenStore.open(row.store_path)
        except StoreError:
            say(f"making {row.store_path}")
            command = ["tokenize", "--dataset", row.dataset, "--out", str(row.store_path), *row.tokenize, "--quiet"]
            done = _call("gmn_prep", command)
            if done.returncode:
                raise TrainError(f"{row.store_path} could not be made: {_last_line(done)}") from None


def run_jobs(jobs: Sequence[Job], *, workers: int, threads: int | None, say: Say) -> dict[Path, str]:
    """Run what is not done yet, `workers` at a time; returns, by run, why it failed."""
    open_jobs = [job for job in jobs if not is_done(job)]
    if len(open_jobs) < len(jobs):
        say(f"{len(jobs) - len(open_jobs)} of {len(jobs)} runs are there already")
    failed: dict[Path, str] = {}
    lock = threading.Lock()
    stopping = threading.Event()

    def run(job: Job) -> None:
        if stopping.is_set():
            return
        extra = ["--run-dir", str(job.path), "--quiet"] + (["--threads", str(threads)] if threads else [])
        done = _call("gmn_train", [*job.arguments, *extra])
        with lock:
            summary = RunFolder(job.path).summary()
            if done.returncode or summary is None:
                failed[job.path] = _last_line(done)
                say(f"{job.row.name}, seed {job.seed}, split {job.split}: failed: {failed[job.path]}")
            else:
                say(
                    f"{job.row.name}, seed {job.seed}, split {job.split}: test {summary['test']:.4f}, "
                    f"{summary['seconds']:.0f} s"
                )

    with ThreadPoolExecutor(workers) as pool:
        try:
            list(pool.map(run, open_jobs))
        except KeyboardInterrupt:
            stopping.set()
            raise
    return failed


def is_done(job: Job) -> bool:
    """Whether the run is finished; TrainError where its folder holds a run with other settings."""
    folder = RunFolder(job.path)
    if not (job.path / "config.toml").exists():
        return False
    if not same_content(folder.config(), job.config()):
        raise TrainError(f"{job.path} is a run with other settings; remove it, or choose another --out or label")
    return folder.summary() is not None


def collect(spec: TableSpec, jobs: Sequence[Job], failed: dict[Path, str]) -> list[RowResult]:
    """By row, what is finished, what failed and what is still to do."""
    results = {row.folder: RowResult(row) for row in spec.row}
    for job in jobs:
        result, folder = results[job.row.folder], RunFolder(job.path)
        if job.path in failed:
            result.failures.append(failed[job.path])
        elif folder.summary() is not None:
            result.runs.append(folder)
        else:
            result.pending += 1
    return list(results.values())


def _call(module: str, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """A command of the house in a process of its own."""
    code = f"from {module}.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, check=False, env=os.environ
    )


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    return lines[-1].removeprefix("error: ") if lines else f"exit code {done.returncode}"
