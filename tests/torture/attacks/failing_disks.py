"""Disks that are full or broken, too few open files, closed streams, little memory: one clear line, nothing lost."""

import ctypes
import errno
import os
import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.torture.attacks.kills import RUNS, VARIANTS, run_content
from tests.torture.children import explain, left_behind, run
from tests.torture.world import SMALL, World, tree

OPERATIONS = {
    "write": 1,
    "create": 2,
    "sync": 4,
    "rename": 8,
    "mkdir": 16,
    "read": 32,
    "open": 64,
    "anything written": 31,
}
ERRORS = [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT, errno.EMFILE, errno.EACCES]


class Fault(NamedTuple):
    """What fails, and in which command."""

    command: str
    how: str
    seed: int


COMMANDS = [*(f"store {name}" for name in VARIANTS), *(f"run {name}" for name in RUNS), "predict", "report"]
HOW = [
    "call", "call", "call", "lasting", "lasting", "file size", "open files", "stdout closed", "stderr closed",
    "both closed", "stdout full", "stderr full", "addresses",
]  # fmt: skip


def make_cases(seed: int, count: int) -> list[Fault]:
    chance = random.Random(seed)
    return [Fault(chance.choice(COMMANDS), chance.choice(HOW), chance.randrange(2**32)) for _ in range(count)]


def make_ready(command: str, world: World, here: Path, honest: Path) -> tuple[object, object]:
    """Take away what a command makes. Returns the store that it may leave as it is, and its undisturbed result."""
    if command == "store repair":
        shutil.rmtree(here / "s.zarr" / "tokens" / "b00001")
    elif command in ("store raw", "store zstd"):
        shutil.rmtree(here / "s.zarr")
    old = tree(here / "s.zarr") if command == "store by force" else None
    return old, world.remember(f"after {command}", lambda: _outcome(command, here, honest))


def try_case(case: Fault, world: World, folder: Path) -> tuple[int, str | None]:
    """The fault ends in one clear line, or does not matter; the same command then does its work, to the same bytes."""
    here = world.copy("raw", folder / "here")
    program, arguments = _arguments(case.command)
    old, wanted = make_ready(case.command, world, here, folder / "honest")
    ended = run(program, arguments, here, _cause(case, here))
    silent = "closed" in case.how or "full" in case.how or case.how == "file size"  # nothing may be printed
    fault = None if silent and ended.code in (0, 2) else explain(ended, 1 << 40)
    if fault is None and "Traceback" in ended.err:
        fault = "traceback"
    if old is not None and fault is None and tree(here / "s.zarr") not in (old, wanted):
        fault = "after a failed --force neither the old store nor the new one is whole"
    settings = here / "r" / "config.toml"  # --force may have taken the old run away before the fault
    if case.command == "run by force" and ended.code != 0 and settings.exists() and "seed = 3" in settings.read_text():
        arguments.remove("--force")
    if fault is None and case.how in ("call", "addresses", "open files", "file size"):
        fault = left_behind(here) if case.command.startswith("store") and ended.code == 0 else None
    again = run(program, arguments, here)
    if fault is None:
        fault = explain(again, 1 << 40, codes=(0,)) or left_behind(here)
    if fault is None and _result(case.command, here) != wanted:
        fault = "other results than without the fault"
    return 1, fault


def _arguments(command: str) -> tuple[str, list[str]]:
    kind, _, name = command.partition(" ")
    if kind == "store":
        return "gmn-prep", VARIANTS[name].split()
    if kind == "run":
        return "gmn-train", f"run --store s.zarr --epochs 3 {SMALL} {RUNS[name][0]}".split()
    return "gmn-train", {"predict": ["predict", "r", "--out", "p.csv"], "report": ["report", "r", "--csv", "m.csv"]}[
        kind
    ]


def _outcome(command: str, here: Path, folder: Path) -> object:
    shutil.copytree(here, folder)
    program, arguments = _arguments(command)
    ended = run(program, arguments, folder)
    assert ended.code == 0, ended
    return _result(command, folder)


def _result(command: str, here: Path) -> object:
    kind, _, name = command.partition(" ")
    if kind == "store":
        return tree(here / "s.zarr")
    if kind == "run":
        return run_content(here / RUNS[name][1])
    return (here / ("p.csv" if kind == "predict" else "m.csv")).read_bytes()


def _cause(case: Fault, here: Path) -> Callable[[], None]:
    chance = random.Random(case.seed)
    operation = chance.choice(list(OPERATIONS.values()))
    error, count = chance.choice(ERRORS), int(chance.expovariate(1 / 25))
    size, files = chance.choice([0, 100, 1000, 5000]), chance.randrange(6, 40)
    spare = chance.choice([1, 8, 32, 128, 256]) << 20

    def cause() -> None:
        if case.how in ("call", "lasting"):
            shim = ctypes.CDLL(os.environ["GMN_TORTURE_SHIM"])
            shim.torture_arm(os.fsencode(here), operation, error, ctypes.c_long(count), int(case.how == "lasting"))
        elif case.how == "file size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        elif case.how == "open files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        elif case.how == "addresses":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + spare
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        else:
            for number, name in ((1, "stdout"), (2, "stderr")):
                if "closed" in case.how and (name in case.how or "both" in case.how):
                    os.close(number)
                elif name in case.how:
                    os.dup2(os.open("/dev/full", os.O_WRONLY), number)

    return cause
