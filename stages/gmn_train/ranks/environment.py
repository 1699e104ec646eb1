"""What the environment says about the processes of a run: torchrun's variables, which our launcher sets too. No torch.

A process that was started alone finds none of them.
"""

import os
from dataclasses import dataclass

LAUNCHED = "GMN_LAUNCHED"
"""Set to the file where processes of `--procs` find each other."""
TORCHRUN = "TORCHELASTIC_RUN_ID"
"""What torchrun sets for every process, also for one that is alone."""
FEWEST_GRAINS = 8
"""Default grains of a run in processes: enough to share out evenly on 2, 4 and 8 of them."""


@dataclass(frozen=True)
class Place:
    """Process `rank` of `size`."""

    rank: int
    size: int

    @property
    def leads(self) -> bool:
        """Whether it is the one that writes and speaks."""
        return self.rank == 0


ALONE = Place(0, 1)


def find_place() -> Place:
    """This process's place."""
    return Place(_number("RANK", 0), _number("WORLD_SIZE", 1))


def is_started() -> bool:
    """Whether something has started this process as one of several; torchrun's may be the only one."""
    return _number("WORLD_SIZE", 1) > 1 or TORCHRUN in os.environ


def processes_here(procs: int) -> int:
    """How many of `procs` processes run on this machine."""
    return max(1, _number("LOCAL_WORLD_SIZE", procs))


def default_grains(procs: int) -> int:
    """A power of two that is the same for 1 to 8 processes."""
    return max(FEWEST_GRAINS, 1 << (procs - 1).bit_length())


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default
