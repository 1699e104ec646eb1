"""Many writers and readers of one store at once, one of them replacing it by force."""

import os
import random
from pathlib import Path
from typing import NamedTuple

from tests.torture.attacks.kills import VARIANTS
from tests.torture.children import left_behind, start
from tests.torture.world import World, tree

WRITERS, READERS = 6, 10


class Crowd(NamedTuple):
    seed: int
    force: bool


def make_cases(seed: int, count: int) -> list[Crowd]:
    chance = random.Random(seed)
    return [Crowd(chance.randrange(2**32), chance.random() < 0.5) for _ in range(count)]


def try_case(case: Crowd, world: World, folder: Path) -> tuple[int, str | None]:
    """Writers end with a whole store; a reader sees one whole store, or is told that it was replaced."""
    from tests.torture.attacks.kills import _honest_store

    here = world.copy("raw", folder / "here")
    chance = random.Random(case.seed)
    plain, forced = VARIANTS["raw"].split(), VARIANTS["by force"].split()
    old = tree(world.root / "raw" / "s.zarr")
    new = world.remember("store by force", lambda: _honest_store(forced, here, folder / "honest"))
    children = [("writer", start("gmn-prep", forced if case.force else plain, here)) for _ in range(WRITERS)]
    for number in range(READERS):
        streams = folder / f"streams {number}"
        streams.mkdir()
        command = ["verify", "s.zarr"] if chance.random() < 0.7 else ["inspect", "s.zarr", "--node", "39"]
        children.append((str(streams), start("gmn-prep", command, here, streams=streams)))
    fault = None
    for who, pid in children:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if who == "writer":
            fault = fault or (None if code == 0 else f"a writer ended with {code}")
        elif code != 0:
            said = (Path(who) / "err").read_text()
            if not (code == 2 and case.force and "replaced" in said):
                fault = fault or f"a reader ended with {code}: {said[-150:]}"
    if fault is None and tree(here / "s.zarr") != (new if case.force else old):
        fault = "other bytes than one writer leaves"
    return WRITERS + READERS, fault or left_behind(here)
