"""Many processes at once: writers and readers of one store, some replacing it by force; several of one run."""

import os
import random
from pathlib import Path
from typing import NamedTuple

from tests.torture.attacks.kills import RUNS, VARIANTS, _honest_run, run_content
from tests.torture.children import explain, kill_after, left_behind, run, start
from tests.torture.world import SMALL, World, tree

WRITERS, READERS, RUNNERS = 6, 10, 5


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


class Rivals(NamedTuple):
    variant: str
    seed: int


def make_rivals(seed: int, count: int) -> list[Rivals]:
    chance = random.Random(seed)
    return [Rivals(chance.choice(["full", "batches", "named"]), chance.randrange(2**32)) for _ in range(count)]


def try_rivals(case: Rivals, world: World, folder: Path) -> tuple[int, str | None]:
    """Several processes are asked for one run, one of them is killed: each does it, reports it, or is told who does."""
    here, chance = world.copy("raw", folder / "here"), random.Random(case.seed)
    options, name = RUNS[case.variant]
    arguments = ["run", "--store", "s.zarr", "--epochs", "4", *SMALL.split(), *options.split()]
    wanted = world.remember(f"run {case.variant}", lambda: _honest_run(arguments, here, folder / "honest", name))
    children, fault = [], None
    for number in range(RUNNERS):
        streams = folder / f"streams {number}"
        streams.mkdir()
        children.append((streams, start("gmn-train", arguments, here, streams=streams)))
    killed = chance.randrange(RUNNERS)
    kill_after(chance.uniform(0, 0.5), children[killed][1])
    for number, (streams, pid) in enumerate(children):
        if number == killed:
            continue
        code, said = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), (streams / "err").read_text()
        if code != 0 and not (code == 2 and "another process" in said):
            fault = fault or f"a run ended with {code}: {said.strip()[-150:]}"
    fault = fault or explain(run("gmn-train", arguments, here), 1 << 40, codes=(0,)) or left_behind(here)
    if fault is None and run_content(here / name) != wanted:
        fault = "other weights or scores than of one process alone"
    return RUNNERS, fault
