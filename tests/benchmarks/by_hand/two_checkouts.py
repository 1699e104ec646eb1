"""Are the plain commands as fast as in another checkout? CPU seconds of the same commands, taken in turn, best of some.

python -m tests.benchmarks.by_hand.two_checkouts OTHER/.venv/bin .venv/bin --rounds 3

Each checkout has an environment of its own. A training epoch is what a run of 41 epochs takes beyond a run of one, so
that starting and compiling do not count. Both train with the same settings, all of them given by the first's
config.toml. CPU seconds are those of all threads, the system's included.
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.timing import data_root

OPEN = """
import sys, time
from gmn_pipeline import TokenStore
store = TokenStore.open(sys.argv[1])
store.graph
begun = time.process_time()
for _ in range(200):
    TokenStore.open(sys.argv[1]).graph
print((time.process_time() - begun) / 200)
"""
SETTINGS = ("--recipe", "none", "--threads", "1", "--set", "eval_every=100", "--set", "model.node_layers=2")


def cpu_seconds(*command: object) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Checkout:
    """The commands of one checkout."""

    def __init__(self, bin_folder: Path, folder: Path) -> None:
        self.bin, self.folder = bin_folder.absolute(), folder

    def tokenize(self, dataset: str, *sizes: int) -> float:
        out = self.folder / f"{dataset}.zarr"
        shutil.rmtree(out, ignore_errors=True)
        named = [word for pair in zip(("--m", "--M", "--s"), sizes, strict=True) for word in pair]
        return cpu_seconds(
            self.bin / "gmn-prep", "tokenize", "--dataset", dataset, *named, "--lap-pe", 0, "--rwse", 0,
            "--threads", 1, "--out", out, "--quiet",
        )  # fmt: skip

    def open(self) -> float:
        store = self.folder / "minesweeper.zarr"
        told = subprocess.run([self.bin / "python", "-c", OPEN, store], check=True, capture_output=True, text=True)
        return float(told.stdout)

    def epoch(self, config: Path | None) -> float:
        def run(epochs: int) -> float:
            place = self.folder / f"run-{epochs}"
            shutil.rmtree(place, ignore_errors=True)
            how = SETTINGS if config is None else ("--config", config, "--set", "average=0.0")  # an average is new
            store = self.folder / "minesweeper.zarr"
            return cpu_seconds(
                self.bin / "gmn-train", "run", "--store", store, *how, "--epochs", epochs, "--run-dir", place, "--quiet"
            )

        run(1)  # compiles
        first = run(1)
        return (run(41) - first) / 40


def main(folders: list[Path], rounds: int, only: str) -> None:
    if data_root() is None:
        raise SystemExit("error: GMN_DATA_ROOT must name the folder of the raw data")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        sides = [Checkout(folder, Path(place) / str(i)) for i, folder in enumerate(folders)]
        for side in sides:
            side.folder.mkdir()
        config = sides[0].folder / "run-41" / "config.toml"
        works = {
            "tokenize minesweeper, 2/8/1": lambda side: side.tokenize("minesweeper", 2, 8, 1),
            "tokenize ogbn-arxiv, 8/4/2": lambda side: side.tokenize("ogbn-arxiv", 8, 4, 2),
            "open the store of minesweeper": lambda side: side.open(),
            "a training epoch, minesweeper": lambda side: side.epoch(None if side is sides[0] else config),
        }
        print("| command | before, CPU s | after, CPU s | after / before |\n|---|---:|---:|---:|", flush=True)
        for name, work in works.items():
            if only not in name and "minesweeper, 2" not in name:  # whose store the others read
                continue
            taken = [[work(side) for side in sides] for _ in range(rounds)]
            before, after = (min(column) for column in zip(*taken, strict=True))
            print(f"| {name} | {before:.3g} | {after:.3g} | {after / before:.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs=2, type=Path, help="the `bin` of each checkout's environment: before, after")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="a word in the names of the works to do")
    main(**vars(parser.parse_args()))
