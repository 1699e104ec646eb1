"""A file system that fills up while a command writes, for real: a tmpfs of some kilobytes. Needs the right to mount."""

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.torture.attacks.failing_disks import COMMANDS, _arguments, _result, make_ready
from tests.torture.children import explain, left_behind, run
from tests.torture.world import World, tree

LARGE = 64 << 20
TOLD = ("No space left", "but its disk has")
"""How a full disk is told: when a write fails, or before any work."""


class Small(NamedTuple):
    command: str
    share: float
    """Of what the command needs in the end."""


def make_cases(seed: int, count: int) -> list[Small]:
    chance = random.Random(seed)
    return [Small(chance.choice(COMMANDS), chance.uniform(0.0, 1.1)) for _ in range(count)]


def try_case(case: Small, world: World, folder: Path) -> tuple[int, str | None]:
    """A disk that is full is told in one line; with more room the same command does its work, to the same bytes."""
    here = folder / "here"
    here.mkdir()
    if not _mount(here, LARGE):
        return 0, None  # not allowed here; the table then shows none tried
    try:
        return 1, _try(case, world, folder, here)
    finally:
        subprocess.run(["umount", "-l", here], check=True)


def _try(case: Small, world: World, folder: Path, here: Path) -> str | None:
    shutil.copytree(world.root / "raw", here, dirs_exist_ok=True)
    program, arguments = _arguments(case.command)
    old, wanted = make_ready(case.command, world, here, folder / "honest")
    needs = world.remember(f"room of {case.command}", lambda: _measure_room(case.command, here))
    assert _mount(here, _used(here) + int(case.share * needs), again=True)
    ended = run(program, arguments, here)
    fault = explain(ended, 1 << 40)
    if fault is None and ended.code == 2 and not any(words in ended.err for words in TOLD):
        fault = f"a full disk, told as: {ended.err.strip()[-150:]}"
    if fault is None and old is not None and tree(here / "s.zarr") not in (old, wanted):
        fault = "after a failed --force neither the old store nor the new one is whole"
    assert _mount(here, LARGE, again=True)
    if case.command == "run by force" and ended.code != 0 and "seed = 3" in (here / "r" / "config.toml").read_text():
        arguments.remove("--force")
    again = run(program, arguments, here)
    fault = fault or explain(again, 1 << 40, codes=(0,)) or left_behind(here)
    if fault is None and _result(case.command, here) != wanted:
        fault = "other results than with enough room"
    return fault


def _mount(place: Path, size: int, *, again: bool = False) -> bool:
    how = f"remount,size={size}" if again else f"size={size}"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", how, "tmpfs", place], capture_output=True, check=False)
    return done.returncode == 0


def _used(place: Path) -> int:
    room = os.statvfs(place)
    return (room.f_blocks - room.f_bfree) * room.f_frsize


def _measure_room(command: str, here: Path) -> int:
    """Bytes that a command adds, on a copy within the same file system."""
    shutil.copytree(here, here / "copy")
    try:
        before = _used(here)
        program, arguments = _arguments(command)
        ended = run(program, arguments, here / "copy")
        assert ended.code == 0, ended
        return max(_used(here) - before, 1 << 16)
    finally:
        shutil.rmtree(here / "copy")
