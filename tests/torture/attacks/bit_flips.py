"""Bit flips over all files of a store: verify finds every one."""

import os
import random
from pathlib import Path
from typing import Any

from tests.torture.world import World

FLIPS = 50
"""In one child, one after another; each is undone before the next."""


def make_cases(seed: int, count: int) -> list[tuple[str, int]]:
    chance = random.Random(seed)
    return [(chance.choice(["raw", "zstd", "many"]), chance.randrange(2**32)) for _ in range(count)]


def try_case(case: tuple[str, int], world: World, folder: Path) -> tuple[int, str | None]:
    kind, seed = case
    world.copy(kind, folder / "f")
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            (folder / "missed").write_text(_flip(folder / "f" / "s.zarr", random.Random(seed)))
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    missed = (folder / "missed").read_text() if status == 0 else f"ended with {status}"
    return FLIPS, missed or None


def _flip(store: Path, chance: random.Random) -> str:
    """Where a flip was missed; empty if all were found."""
    from gmn_pipeline import TokenStore
    from gmn_pipeline.errors import StoreError

    files: list[Any] = sorted(p for p in store.rglob("*") if p.is_file() and p.stat().st_size)
    for _ in range(FLIPS):
        file = chance.choice(files)
        content = bytearray(file.read_bytes())
        place, bit = chance.randrange(len(content)), chance.randrange(8)
        content[place] ^= 1 << bit
        file.write_bytes(content)
        try:
            TokenStore.open(store).verify()
            return f"bit {bit} of byte {place} of {file.relative_to(store)} was missed"
        except StoreError:
            pass
        except Exception as error:
            return f"bit {bit} of byte {place} of {file.relative_to(store)}: {type(error).__name__}: {error}"
        content[place] ^= 1 << bit
        file.write_bytes(content)
    return ""
