"""What tests of public datasets share: comparing graphs, and looking at folders of raw files."""

import contextlib
from pathlib import Path

import numpy as np


def assert_same(one, other):
    assert (one.task, one.directed, one.x_categories) == (other.task, other.directed, other.x_categories)
    assert one.arrays().keys() == other.arrays().keys()
    for name, array in one.arrays().items():
        assert np.array_equal(array, other.arrays()[name]), name


def files_below(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextlib.contextmanager
def read_only(folder: Path):
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o755)
