"""Runs a table's rows. Each run is a separate process, so memory is measured per run and a crash harms no other."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import StoreError, TrainError
from gmn_pipeline.store.files.manifest_file import read_manifest
from gmn_train.runs.folder import RunFolder, default_run_dir
from gmn_train.settings.request import parse_numbers, read_request
from gmn_train.tables.spec import RowSpec, TableSpec

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One run of a row, in the folder that `gmn-train run` would give it: tables share what they have in common."""

    row: RowSpec
    seed: int
    split: int
    path: Path

    @property
    def name(self) -> str:
        return f"{self.row.name}, seed {self.seed}, split {self.split}"

    @property
    def arguments(self) -> list[str]:
        """Of `gmn-train`. The same arguments continue an interrupted run."""
        return [
            "run", "--store", str(self.row.store_path), "--model", self.row.model, "--seed", str(self.seed), "--split",
            str(self.split), *[part for text in self.row.assignments for part in ("--set", text)],
        ]  # fmt: skip

    @property
    def is_done(self) -> bool:
        return RunFolder(self.path).summary() is not None


@dataclass
class RowResult:
    """The results of a row's runs."""

    row: RowSpec
    runs: list[RunFolder] = field(default_factory=list)
    """Those that are finished."""
    failures: list[str] = field(default_factory=list)
    pending: int = 0

    @property
    def summaries(self) -> list[dict[str, Any]]:
        return [summary for run in self.runs if (summary := run.summary()) is not None]


def plan_jobs(spec: TableSpec) -> list[Job]:
    """Every run of a table, split by split, so that an unfinished table compares its rows on the same splits.

    Rows without a store have none yet.
    """
    jobs = []
    for number, row in enumerate(spec.row):
        given = {"store": row.store_path, "model.name": row.model}
        for split in parse_numbers(row.splits, "splits"):
            try:  # at this split: defaults follow from its training labels
                config = read_request({**given, "split": split}, None, row.assignments).config
            except StoreError:
                break
            for seed in parse_numbers(row.seeds, "seeds"):
                path = default_run_dir(replace(config, seed=seed))
                jobs.append((split, seed, number, Job(row, seed, split, path)))
    return [job for _, _, _, job in sorted(jobs, key=lambda item: item[:3])]


def make_stores(rows: Sequence[RowSpec], say: Say) -> None:
    """Tokenize, by the command of stage one, what is not there yet."""
    for row in {str(row.store_path): row for row in rows}.values():
        try:
            read_manifest(row.store_path)
        except StoreError:
            say(f"making {row.store_path}")
            command = ["tokenize", "--dataset", row.dataset, "--out", str(row.store_path), *row.tokenize, "--quiet"]
            done = _call("gmn_prep", command)
            if done.returncode:
                raise TrainError(f"{row.store_path} could not be made: {_last_line(done)}") from None


def run_jobs(jobs: Sequence[Job], *, workers: int, threads: int | None, say: Say) -> dict[Path, str]:
    """Run what is not done yet, `workers` at a time; returns, by run, why it failed."""
    open_jobs = list({job.path: job for job in jobs if not job.is_done}.values())
    done = sum(job.is_done for job in jobs)
    if done:
        say(f"{done} of {len(jobs)} runs are already finished")
    failed: dict[Path, str] = {}
    lock, stopping = threading.Lock(), threading.Event()

    def run(job: Job) -> None:
        if stopping.is_set():
            return
        done = _call("gmn_train", [*job.arguments, "--quiet", *(["--threads", str(threads)] if threads else [])])
        with lock:
            summary = RunFolder(job.path).summary()
            if done.returncode or summary is None:
                failed[job.path] = _last_line(done)
                say(f"{job.name}: failed: {failed[job.path]}")
            else:
                say(f"{job.name}: test {summary['test']:.4f}, {summary['seconds']:.0f} s")

    with ThreadPoolExecutor(workers) as pool:
        try:
            list(pool.map(run, open_jobs))
        except KeyboardInterrupt:
            stopping.set()
            raise
    return failed


def collect(spec: TableSpec, jobs: Sequence[Job], failed: dict[Path, str]) -> list[RowResult]:
    """By row, what is finished, what failed and what is still to do."""
    results = []
    for row in spec.row:
        mine = [job for job in jobs if job.row is row]
        results.append(
            RowResult(
                row,
                runs=[RunFolder(job.path) for job in mine if job.is_done],
                failures=[failed[job.path] for job in mine if job.path in failed],
                pending=row.runs - sum(job.is_done or job.path in failed for job in mine),
            )
        )
    return results


def _call(module: str, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """One of our commands in a separate process."""
    code = f"from {module}.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, check=False, env=os.environ
    )


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    return lines[-1].removeprefix("error: ") if lines else f"exit code {done.returncode}"
