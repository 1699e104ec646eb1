"""Every error a user can cause, in one family.

A message is one line and answers three questions: what was found, what is allowed, what to do. The commands print it
and exit with `exit_code`; a traceback appears only with `--debug`.
"""

from difflib import get_close_matches
from typing import ClassVar


class GmnError(Exception):
    """Base of the family: a mistake in the input or the surroundings, not in this program."""

    exit_code: ClassVar[int] = 2


class ConfigError(GmnError):
    """A setting is unknown, out of range, or clashes with another."""


class GraphError(GmnError):
    """A graph's arrays do not describe a graph."""


class DatasetError(GmnError):
    """A dataset is unknown, incomplete or cannot be read."""


class StoreError(GmnError):
    """A token store cannot be written or read."""


class StoreCorruptError(StoreError):
    """A store's bytes are not what was written."""


class StoreUnfinishedError(StoreError):
    """A store's writing was interrupted and not yet resumed."""


class StoreBusyError(StoreError):
    """Another process is writing the store."""


class StoreClashError(StoreError):
    """A store of other content stands under the same name."""


class ModelError(GmnError):
    """A model's inputs have shapes, types or values it cannot take."""


class NotFiniteError(ModelError):
    """A tensor holds NaN or infinity."""


class TrainError(GmnError):
    """Training cannot start or go on."""


class StoppedError(GmnError):
    """A run was asked to end (SIGTERM) and has saved itself; not a mistake."""

    exit_code: ClassVar[int] = 143


class WriteError(GmnError):
    """A file that the user asked for cannot be written."""


def one_line(error: object) -> str:
    """What an error of another library says, without its line breaks."""
    return " ".join(str(error).split())


def nearest(name: str, allowed: list[str] | tuple[str, ...]) -> str:
    """Return `"; did you mean 'X'?"` for a mistyped name, or an empty string where nothing is near."""
    near = get_close_matches(name, allowed, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""
