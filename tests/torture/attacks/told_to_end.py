"""Ctrl-C and SIGTERM at random moments, once or twice: one line, the right exit code, and nothing is lost."""

import random
import signal
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.torture.attacks.failing_disks import _arguments, _result, make_ready
from tests.torture.attacks.kills import RUNS, VARIANTS
from tests.torture.children import Ended, explain, kill_after, left_behind, run, start
from tests.torture.world import World, tree

COMMANDS = [*(f"store {name}" for name in VARIANTS), *(f"run {name}" for name in RUNS if name != "by force")]
CODES = {signal.SIGINT: (0, 130), signal.SIGTERM: (0, 143, -signal.SIGTERM)}


class Told(NamedTuple):
    command: str
    how: signal.Signals
    seconds: float
    """Of CPU time, before the signal."""


def make_cases(seed: int, count: int) -> list[Told]:
    chance = random.Random(seed)
    return [
        Told(chance.choice(COMMANDS), chance.choice(list(CODES)), chance.uniform(0, 0.6)) for _ in range(count)
    ]  # fmt: skip


def try_case(case: Told, world: World, folder: Path) -> tuple[int, str | None]:
    here = world.copy("raw", folder / "here")
    program, arguments = _arguments(case.command)
    old, wanted = make_ready(case.command, world, here, folder / "honest")
    with tempfile.TemporaryDirectory() as streams:
        code = kill_after(case.seconds, start(program, arguments, here, streams=Path(streams)), case.how)
        files = [Path(streams) / name for name in ("out", "err")]  # none where it was ended before it began
        out, err = (file.read_text(errors="replace") if file.exists() else "" for file in files)
    fault = None if code == -case.how == -signal.SIGTERM else explain(Ended(code, out, err, 0), 1, CODES[case.how])
    if fault is None and old is not None and tree(here / "s.zarr") not in (old, wanted):
        fault = "neither the old store nor the new one is whole"
    fault = fault or explain(run(program, arguments, here), 1 << 40, codes=(0,)) or left_behind(here)
    if fault is None and _result(case.command, here) != wanted:
        fault = "other results than undisturbed"
    return 1, fault
