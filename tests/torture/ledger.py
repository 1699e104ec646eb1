"""What was tried, what held, what failed: counted while the campaigns run, printed as one table."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Campaign:
    """A kind of trial. Cases are data made from a seed, so that any one can be tried again."""

    name: str
    what: str
    make_cases: Callable[[int, int], list[Any]]
    """(seed, count) to cases."""
    try_case: Callable[[Any, Any, Path], tuple[int, str | None]]
    """(case, world, an empty folder) to (trials it stands for, what is wrong or None)."""
    batch: int
    """Cases of one round."""
    mark: int
    """Trials that a whole campaign makes."""


@dataclass(frozen=True)
class Entry:
    campaign: str
    case: str
    trials: int
    fault: str | None


class Ledger:
    """A file of lines that several processes append to, in one sitting or in many."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def add(self, entry: Entry) -> None:
        with self.file.open("a") as stream:
            stream.write(json.dumps(vars(entry)) + "\n")

    def entries(self) -> list[Entry]:
        """What was tried; of a case that was tried again, the last time."""
        entries = [Entry(**json.loads(line)) for line in self.file.read_text().splitlines()]
        return list({entry.case: entry for entry in entries}.values())


def make_table(entries: list[Entry], campaigns: list[Campaign]) -> list[str]:
    """Markdown: one row per campaign."""
    rows = ["| campaign | tried | held | failed | what holds |", "|---|---:|---:|---:|---|"]
    for campaign in campaigns:
        own = [entry for entry in entries if entry.campaign == campaign.name]
        tried, failed = sum(e.trials for e in own), sum(e.fault is not None for e in own)
        rows.append(f"| {campaign.name} | {tried:,} | {tried - failed:,} | {failed:,} | {campaign.what} |")
    return rows


def list_failures(entries: list[Entry]) -> list[str]:
    """One line per failed case, with the option that repeats it."""
    return [f"--repeat '{entry.case}'  {entry.fault}" for entry in entries if entry.fault is not None]
