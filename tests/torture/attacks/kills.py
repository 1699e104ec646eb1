"""SIGKILL at random moments and before file events, in both stages; what is made in the end has the same bytes."""

import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import torch

from tests.torture.children import count_events, die_at_event, explain, kill_after, left_behind, run, start
from tests.torture.world import SMALL, TOKENS, World, tree

MOST_KILLS = 8
"""Of one command; then it is left to finish."""


class Kill(NamedTuple):
    """How one command is made to end, again and again."""

    variant: str
    seed: int
    event: int | None = None
    """The one file event to die at, counted beyond the last from the first again; several at random unless given."""


TOKENIZE = f"tokenize --dataset g.npz {TOKENS} --out s.zarr"
VARIANTS = {
    "raw": TOKENIZE,
    "zstd": f"{TOKENIZE} --codec zstd",
    "by force": f"{TOKENIZE} --seed 1 --force",
    "repair": "repair s.zarr",
}
RUNS = {
    "full": ("--run-dir r2", "r2"),
    "batches": ("--run-dir r2 --mode batch --batch-nodes 8", "r2"),
    "named": ("--name mine", "data/runs/mine"),
    "by force": ("--run-dir r --force --seed 3", "r"),
}


def make_store_kills(seed: int, count: int) -> list[Kill]:
    chance = random.Random(seed)
    return [Kill(chance.choice(list(VARIANTS)), chance.randrange(2**32)) for _ in range(count)]


def make_run_kills(seed: int, count: int) -> list[Kill]:
    chance = random.Random(seed)
    return [Kill(chance.choice(list(RUNS)), chance.randrange(2**32)) for _ in range(count)]


def make_event_kills(seed: int, count: int) -> list[Kill]:
    """One event after another, of all variants in turn: later seeds go on where earlier ones end."""
    names = [*(f"store {name}" for name in VARIANTS), *(f"run {name}" for name in RUNS)]
    numbers = range(seed * count, (seed + 1) * count)
    return [Kill(names[n % len(names)], n, n // len(names)) for n in numbers]


def try_event_kill(case: Kill, world: World, folder: Path) -> tuple[int, str | None]:
    """As the others, killed once, at a file event that is given."""
    kind, _, variant = case.variant.partition(" ")
    return (try_store_kill if kind == "store" else try_run_kill)(case._replace(variant=variant), world, folder)


def _kill_once(
    program: str, arguments: list[str], folder: Path, chance: random.Random, seconds: float, event: int | None
) -> bool:
    """Whether the command was killed before its end; half of the kills fall just before a file event."""
    if event is not None:
        return kill_after(60, start(program, arguments, folder, die_at_event(event, folder))) == -9
    if chance.random() < 0.5:
        before = die_at_event(int(chance.expovariate(1 / 60)), folder)
        code = kill_after(60, start(program, arguments, folder, before))
    else:
        code = kill_after(chance.uniform(0, seconds), start(program, arguments, folder))
    return code == -9


def try_store_kill(case: Kill, world: World, folder: Path) -> tuple[int, str | None]:
    """A killed `tokenize`, started again until it ends, leaves the bytes of one that was never killed."""
    chance, kills = random.Random(case.seed), 0
    arguments, name = VARIANTS[case.variant].split(), "s.zarr"
    world.copy("raw", folder / "here")
    here = folder / "here"
    if case.variant == "repair":
        for block in chance.sample(["b00000", "b00001", "b00002"], 2):
            shutil.rmtree(here / name / "tokens" / block)
    elif case.variant != "by force":
        shutil.rmtree(here / name)
    old = tree(world.root / "raw" / name) if case.variant == "by force" else None
    new = world.remember(f"store {case.variant}", lambda: _honest_store(arguments, here, folder / "honest"))
    event = _event(case, world, f"store {case.variant}", "gmn-prep", arguments, here, folder / "counted")
    for _ in range(MOST_KILLS if event is None else 1):
        if not _kill_once("gmn-prep", arguments, here, chance, 0.6, event):
            break
        kills += 1
        if old is not None and tree(here / name) not in (old, new):
            return kills, "after a kill of --force neither the old store nor the new one is whole"
    ended = run("gmn-prep", arguments, here)
    fault = explain(ended, 1 << 40, codes=(0,)) or left_behind(here)
    if fault is None and tree(here / name) != new:
        fault = "other bytes than without kills"
    return kills, fault


def _event(
    case: Kill, world: World, name: str, program: str, arguments: list[str], here: Path, folder: Path
) -> int | None:
    """The event to die at, if the case names one."""
    if case.event is None:
        return None

    def count() -> int:
        return count_events(program, arguments, Path(shutil.copytree(here, folder)))

    return case.event % int(world.remember(f"events of {name}", count))


def _honest_store(arguments: list[str], here: Path, folder: Path) -> dict[str, bytes]:
    shutil.copytree(here, folder)
    assert run("gmn-prep", arguments, folder).code == 0
    return tree(folder / "s.zarr")


def try_run_kill(case: Kill, world: World, folder: Path) -> tuple[int, str | None]:
    """A killed run, resumed until it ends, has the weights and scores of one that was never killed."""
    chance, kills = random.Random(case.seed), 0
    options, name = RUNS[case.variant]
    here = world.copy("raw", folder / "here")
    arguments = ["run", "--store", "s.zarr", "--epochs", "4", *SMALL.split(), *options.split()]
    wanted = world.remember(f"run {case.variant}", lambda: _honest_run(arguments, here, folder / "honest", name))
    event = _event(case, world, f"run {case.variant}", "gmn-train", arguments, here, folder / "counted")
    for _ in range(MOST_KILLS if event is None else 1):
        if not _kill_once("gmn-train", arguments, here, chance, 0.5, event):
            break
        kills += 1
        if "--force" in arguments and _is_new(here / name, 3):
            arguments.remove("--force")  # it would begin again; go on instead
    ended = run("gmn-train", arguments, here)
    fault = explain(ended, 1 << 40, codes=(0,)) or left_behind(here)
    if fault is None and run_content(here / name) != wanted:
        fault = "other weights or scores than without kills"
    return kills, fault


def _honest_run(arguments: list[str], here: Path, folder: Path, name: str) -> dict[str, object]:
    shutil.copytree(here, folder)
    assert run("gmn-train", arguments, folder).code == 0
    return run_content(folder / name)


def _is_new(folder: Path, seed: int) -> bool:
    file = folder / "config.toml"
    return file.exists() and f"\nseed = {seed}\n" in file.read_text()


def run_content(folder: Path) -> dict[str, object]:
    """Weights and measurements of a run, without its times."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    kept = ("epoch", "loss", "lr", "train", "val", "test", "best")
    summary = json.loads((folder / "summary.json").read_text())
    weights = torch.load(folder / "checkpoints" / "last.pt", weights_only=True)["model"]
    return {
        "last": {name: tensor.numpy().tobytes() for name, tensor in weights.items()},
        "best": (folder / "checkpoints" / "best.safetensors").read_bytes(),
        "metrics": [{key: repr(row.get(key)) for key in kept} for row in rows],
        "summary": {key: repr(summary.get(key)) for key in ("seed", "split", "val", "test", "best_epoch")},
    }
