"""An encoding and an ordering added from outside the package, by the documented calls."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import TokenStore
from gmn_pipeline.errors import ConfigError, StoreError
from gmn_pipeline.store.format import encodings as formats
from gmn_pipeline.store.format.array_spec import array_spec
from gmn_pipeline.store.format.encodings import EncodingFormat
from gmn_prep import encodings, orderings
from gmn_prep.encodings import ComputedEncoding, EncodingEntry
from gmn_prep.orderings import OrderingEntry
from gmn_prep.phases import Phases
from gmn_prep.tokenize import tokenize
from gmn_prep.tokenize_settings import TokenizeConfig

CONFIG = TokenizeConfig(dataset="minesweeper-grid", nodes=100, m=1, M=1, s=1)


pytestmark = pytest.mark.usefixtures("tables_as_before")


def add_degree_powers() -> None:
    """A third encoding: log degree to the powers 1..k."""

    def compute(graph, settings, **_):
        logs = np.log1p(np.diff(graph.indptr)).astype(np.float32)
        return ComputedEncoding({"powers": logs[:, None] ** np.arange(1, settings["k"] + 1, dtype=np.float32)})

    formats.ENCODINGS.add(
        EncodingFormat(
            "degree_powers",
            lambda graph, settings: {"powers": array_spec(np.float32, graph.nodes, settings["k"])},
            columns="powers",
        )
    )
    encodings.ENCODINGS.add(EncodingEntry("degree_powers", compute))


def test_an_encoding(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, encoding=("degree_powers=3",), lap_pe=2, out=tmp_path / "s.zarr")
    with pytest.raises(ConfigError, match="no encoding 'degree_powers'"):
        tokenize(config, Phases())
    add_degree_powers()
    assert tokenize(config, Phases()).made
    store = TokenStore.open(tmp_path / "s.zarr")
    assert store.manifest.encodings["degree_powers"] == {"k": 3, "seed": 0}
    powers = store.encoding("degree_powers")[formats.ENCODINGS["degree_powers"].columns]
    assert powers.shape == (100, 3)
    store.verify()
    assert not tokenize(dataclasses.replace(config, encoding=("degree_powers=2",)), Phases()).made
    with pytest.raises(ConfigError, match="already"):
        encodings.ENCODINGS.add(encodings.ENCODINGS["degree_powers"])
    del formats.ENCODINGS._entries["degree_powers"]
    with pytest.raises(StoreError, match="import the package that adds it"):
        store.encoding("degree_powers")


def test_an_ordering(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, ordering=("by-number",), out=tmp_path / "s.zarr")
    orderings.ORDERINGS.add(OrderingEntry("by-number", lambda graph, _threads: np.arange(graph.num_nodes)))
    tokenize(config, Phases())
    assert TokenStore.open(tmp_path / "s.zarr").ordering("by-number")["permutation"].tolist() == list(range(100))


@pytest.mark.parametrize("text", ["laplacian", "laplacian=x", "laplacan=3"])
def test_an_encoding_asked_wrongly(text: str) -> None:
    with pytest.raises(ConfigError, match=r"NAME=K|did you mean 'laplacian'"):
        tokenize(dataclasses.replace(CONFIG, encoding=(text,)), Phases())
