"""Mapped files that someone changes or cuts off while they are read: one error, and the process lives."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from tests.forgery import chunk_of
from tests.stores import ring_graph, write_store

ROOT = Path(__file__).parents[3]
FORGED = textwrap.dedent(
    """
    import sys
    import numpy as np
    from gmn_pipeline import TokenStore
    from gmn_pipeline.errors import StoreCorruptError
    from gmn_pipeline.store.reading import view
    count = view.count_tokens
    def count_then_forge(*arguments):
        fault = count(*arguments)
        with open(sys.argv[2], "r+b") as file:
            file.write(np.full(40, 2**31 - 1, np.int32).tobytes())
        return fault
    view.count_tokens = count_then_forge
    try:
        TokenStore.open(sys.argv[1]).view().gather(np.arange(40))
    except StoreCorruptError as error:
        print(error)
    """
)
CUT = textwrap.dedent(
    """
    import os, sys
    import numpy as np
    from gmn_pipeline import TokenStore
    from gmn_pipeline.errors import StoreCorruptError
    store = TokenStore.open(sys.argv[1])
    graph = store.graph
    os.truncate(sys.argv[2], 0)
    try:
        store.view().gather(np.arange(40))
    except StoreCorruptError as error:
        print(error)
    """
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    graph = ring_graph(edge_features=True)
    return write_store(tmp_path / "s.zarr", graph, TokenSettings(2, 2, 1), block_size=40, orderings=()).path


def said(script: str, store: Path, array: str) -> str:
    words = [sys.executable, "-c", script, str(store), str(chunk_of(store / array))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("array", ["node_ptr", "edge_ptr"])
def test_a_pointer_that_changes_after_it_was_checked(store: Path, array: str) -> None:
    assert f"{array}: a pointer goes down or beyond" in said(FORGED, store, f"tokens/b00000/{array}")


@pytest.mark.parametrize("array", ["graph/indices", "graph/x", "tokens/index/block_ptr"])
def test_what_is_mapped_for_good_is_cut_off(store: Path, array: str) -> None:
    assert f"{array} was cut off while it was read" in said(CUT, store, array)
