"""Processes that train the runs of a test, one run after the other: `python -m tests.train.ranks.worker FOLDER`.

They are forked from one that has imported everything and computed nothing: importing torch takes longer than the runs.
"""

import os
import sys
import traceback
from pathlib import Path

import torch

from gmn_train.ranks.environment import LAUNCHED
from gmn_train.runs.start import start_runs
from gmn_train.runs.watching.display import Watcher
from tests.train.ranks.runs import configs

SIZES = (2, 3)


def train_all(folder: Path, size: int) -> None:
    torch.set_num_threads(1)
    for name, config in configs(folder).items():
        start_runs(config, Watcher(), run_dir=folder / f"{name}-{size}")


def fork_one(folder: Path, rank: int, size: int) -> int:
    """The number of a process that is one of `size`."""
    child = os.fork()
    if child:
        return child
    os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(size), LAUNCHED: str(folder / f"meeting{size}")})
    try:
        train_all(folder, size)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    children = [fork_one(Path(sys.argv[1]), rank, size) for size in SIZES for rank in range(size)]
    codes = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(any(codes))
