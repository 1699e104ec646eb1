"""Runs a command under a hard memory limit of the system and says what it took. Needs root and Linux control groups.

python -m tests.benchmarks.by_hand.memory_limit 1.6 -- gmn-prep tokenize --dataset edges.parquet --m 4 --memory 1.2

The group's memory counts everything: the processes' own, mapped files, and files the system keeps after they were read
or written. The last kind is given back when the limit is reached, so the group's peak is usually the limit itself. A
process that needs more of its own is killed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

UNIFIED, MEMORY = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
SECONDS = 0.5


class Group:
    """A control group with a memory limit, of version 2 if the system has it, else of version 1."""

    def __init__(self, limit: int) -> None:
        new = (UNIFIED / "cgroup.subtree_control").exists()
        self.folder = (UNIFIED if new else MEMORY) / f"gmn-limit-{os.getpid()}"
        self.names = (
            ("memory.max", "memory.peak", "anon", "file")
            if new
            else ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "total_rss", "total_cache")
        )
        self.folder.mkdir()
        (self.folder / self.names[0]).write_text(str(limit))
        if new:
            (self.folder / "memory.swap.max").write_text("0")

    def enter(self) -> None:
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def own_bytes(self) -> int:
        """Memory that is no file's, of all processes in the group."""
        lines = (self.folder / "memory.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)[self.names[2]])

    def peak_bytes(self) -> int:
        return int((self.folder / self.names[1]).read_text())

    def remove(self) -> None:
        self.folder.rmdir()


def run_limited(limit: int, command: list[str]) -> dict[str, float | int]:
    group, own, begun = Group(limit), 0, time.monotonic()
    try:
        process = subprocess.Popen(command, preexec_fn=group.enter)
        while process.poll() is None:
            own = max(own, group.own_bytes())
            time.sleep(SECONDS)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "exit": process.returncode,
            "limit_gb": limit / 1e9,
            "group_peak_gb": round(group.peak_bytes() / 1e9, 3),
            "own_peak_gb": round(own / 1e9, 3),
            "resident_peak_gb": round(used.ru_maxrss * 1024 / 1e9, 3),
            "wall_s": round(time.monotonic() - begun, 1),
            "user_s": round(used.ru_utime, 1),
            "system_s": round(used.ru_stime, 1),
            "read_gb": round(used.ru_inblock * 512 / 1e9, 1),
            "written_gb": round(used.ru_oublock * 512 / 1e9, 1),
        }
    finally:
        group.remove()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gigabytes", type=float)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    outcome = run_limited(int(given.gigabytes * 1e9), given.command)
    print(json.dumps(outcome))
    sys.exit(int(outcome["exit"]))
