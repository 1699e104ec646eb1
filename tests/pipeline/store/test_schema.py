"""The format's tables: rules of types, and that the documentation tells the same."""

import re
from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.store.format.blocks import default_block_size, plan_blocks
from gmn_pipeline.store.format.schema import BlockFacts, block_specs, fixed_groups
from gmn_pipeline.store.format.token_settings import smallest_unsigned
from gmn_pipeline.store.writing.writer import plan_manifest
from tests.stores import ring_graph

DOCUMENT = Path(__file__).parents[3] / "docs" / "store-format.md"


def test_the_document_lists_exactly_the_arrays_of_the_schema() -> None:
    graph = ring_graph(edge_features=True)
    graph = graph.replace(graph_ptr=np.array([0, 40]), pairs=np.zeros((2, 2), int)).with_ids(range(40), ["ring"])
    manifest = plan_manifest(
        graph,
        TokenSettings(2, 2, 1),
        block_size=8,
        encodings={"laplacian": {"k": 2}, "random_walk": {"k": 2, "mode": "estimate"}},
        orderings={"degree": {}},
    )
    known = {f"{group}/{name}" for group, specs in fixed_groups(manifest).items() for name in specs}
    known |= {f"tokens/*/{name}" for name in block_specs(manifest, BlockFacts(0, 8, 10, 4))}
    known = {name.replace("orderings/degree", "orderings/*") for name in known}
    documented = set(re.findall(r"^\| `((?:graph|encodings|orderings|tokens)/[^`]+)`", DOCUMENT.read_text(), re.M))
    assert documented == known


def test_type_rules() -> None:
    assert [smallest_unsigned(v) for v in (255, 256, 65535, 65536)] == [np.uint8, np.uint16, np.uint16, np.uint32]
    assert TokenSettings(8, 4, 2).local_dtype == np.uint8
    assert TokenSettings(64, 4, 1).local_dtype == np.uint16  # 1 + 256 does not fit a byte


def test_wide_slots_for_more_than_two_billion_edges() -> None:
    """Of a graph too large to make here, only its counts: the rule alone decides."""
    from dataclasses import replace

    manifest = plan_manifest(ring_graph(edge_features=True), TokenSettings(2, 2, 1), block_size=8)
    huge = replace(manifest, graph=replace(manifest.graph, slots=2**31 + 10))
    assert block_specs(huge, BlockFacts(0, 8, 10, 4))["edge_slots"].dtype == np.int64
    huge = replace(manifest, graph=replace(manifest.graph, nodes=2**31 + 10))
    assert block_specs(huge, BlockFacts(0, 8, 10, 4))["nodes"].dtype == np.int64
    assert block_specs(manifest, BlockFacts(0, 8, 2**31, 4))["node_ptr"].dtype == np.int64


def test_node_tokens_have_one_form() -> None:
    assert TokenSettings(0, 4, 2) == TokenSettings(5, 4, 0) == TokenSettings(0, 0, 0)
    assert TokenSettings(0, 4, 2).sequence_length == 1
    assert TokenSettings(3, 1, 2).levels.tolist() == [3, 3, 2, 2, 1, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": -1, "M": 1, "s": 1}, "m is -1"),
        ({"m": 1, "M": 0, "s": 1}, "M >= 1, or m = 0"),
        ({"m": 1, "M": 1, "s": 1, "walk": "unifrm"}, "did you mean 'uniform'"),
        ({"m": 1, "M": 1, "s": 1, "seed": -1}, "seed"),
        ({"m": 1000, "M": 100, "s": 1}, "at most"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TokenSettings(**arguments)


def test_blocks_end_at_graph_borders() -> None:
    assert plan_blocks(10, 4, None).tolist() == [0, 4, 8, 10]
    assert plan_blocks(0, 4, None).tolist() == [0]
    assert plan_blocks(17, 6, np.array([0, 3, 5, 5, 14, 15, 17])).tolist() == [0, 5, 14, 17]
    assert plan_blocks(3, 2, np.array([0, 3, 3])).tolist() == [0, 3]


def test_default_block_size_is_a_power_of_two_of_sensible_bytes() -> None:
    for settings in (TokenSettings(0, 0, 0), TokenSettings(8, 4, 2), TokenSettings(60, 8, 8)):
        size = default_block_size(settings)
        assert size & (size - 1) == 0
        assert 1024 <= size <= 2**18
