"""Tokenizes a graph of more than 2**31 slots and checks tokens whose neighbours are known by a rule.

python -m tests.benchmarks.by_hand.many_slots FOLDER --nodes 3100000 --half 360

Nodes lie on a circle and each is linked to the `half` nearest on both sides: 2.23 billion slots, 8.9 GB. The graph is
written by the store's own verbs; `gmn-prep part`, `finish` and `verify` do the rest. Takes 20 GB of disk for a while.
"""

import argparse
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from gmn_pipeline import Graph, TokenSettings, TokenStore
from gmn_pipeline.counter_random import Purpose, key_path
from gmn_pipeline.graph.pairs import linked_pairs
from gmn_pipeline.store.writing.verbs import create_store, plan_manifest
from gmn_prep.parts.shared_arrays import parts_folder, write_shared
from tests.reference.counter_random import bounded

SETTINGS = TokenSettings(2, 2, 1)
CHECKED = 2000
"""Nodes at the end of the graph, whose slots lie beyond 2**31, and as many at its beginning."""


@njit
def fill_rows(first, last, nodes, half, indices):  # type: ignore[no-untyped-def]
    """The neighbours of nodes first..last-1, ascending: those on the circle within `half`."""
    at = first * 2 * half
    for v in range(first, last):
        for w in range(v + half - nodes + 1):  # beyond the end, which is the beginning
            indices[at] = w
            at += 1
        for w in range(max(0, v - half), min(nodes, v + half + 1)):
            if w != v:
                indices[at] = w
                at += 1
        for w in range(nodes + v - half, nodes):
            indices[at] = w
            at += 1


def neighbours(v: int, nodes: int, half: int) -> list[int]:
    return sorted((v + step) % nodes for step in range(-half, half + 1) if step)


def expected(v: int, level: int, nodes: int, half: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The nodes and edges of the token (v, level), by the rule alone."""
    members = [v]
    for number in range(SETTINGS.M if level else 0):
        here = v
        for step in range(level):
            choices = neighbours(here, nodes, half)
            bits = int(key_path(SETTINGS.seed, Purpose.WALK, v, level, 0, number, step))
            here = choices[bounded(bits, len(choices))]
            members.append(here)
    members = list(dict.fromkeys(members))
    apart = {(a, b): (members[a] - members[b]) % nodes for a, b in combinations(range(len(members)), 2)}
    edges = [pair for pair, d in apart.items() if min(d, nodes - d) <= half]
    return members, sorted(edges, key=lambda pair: (pair[1], pair[0]))


def build(store: Path, nodes: int, half: int) -> None:
    scratch = store.with_name("indices.bin")
    indices: Any = np.memmap(scratch, np.int32, "w+", shape=(nodes * 2 * half,))
    for first in range(0, nodes, 100_000):
        fill_rows(first, min(first + 100_000, nodes), nodes, half, indices)
    indices.flush()
    graph = Graph(np.arange(nodes + 1, dtype=np.int64) * (2 * half), np.memmap(scratch, np.int32, "r"))
    assert graph.num_slots > 2**31
    create_store(store, plan_manifest(graph, SETTINGS, block_size=1 << 17), graph)
    del graph, indices
    scratch.unlink()
    print(f"written: {nodes:,} nodes", flush=True)

    def make(size: int, dtype: Any) -> Any:
        return np.memmap(scratch.with_suffix(f".{np.dtype(dtype).name}"), dtype, "w+", shape=(size,)) if size else []

    written = TokenStore.open(store, unfinished=True)
    pairs = linked_pairs(written.graph, with_slots=False, make=make)
    write_shared(parts_folder(store, written.manifest) / "pairs", vars(pairs))
    for file in store.parent.glob("indices.*"):
        file.unlink()


def check(store: TokenStore, nodes: int, half: int) -> int:
    """Compare tokens with the rule; returns how many."""
    count = 0
    for number in (0, store.manifest.blocks - 1):
        block = store.block(number)
        length, facts = SETTINGS.sequence_length, block.facts
        begin = 0 if number == 0 else facts.nodes - CHECKED
        for row in range(begin, begin + CHECKED):
            for position in range(length):
                token = row * length + position
                members, edges = expected(facts.first_node + row, SETTINGS.m - position, nodes, half)
                a, b = block["node_ptr"][token : token + 2]
                assert block["nodes"][a:b].tolist() == members, (facts.first_node + row, position)
                a, b = block["edge_ptr"][token : token + 2]
                assert [tuple(edge) for edge in block["edges"][a:b].tolist()] == edges, (row, position)
                count += 1
    return count


def main(folder: Path, nodes: int, half: int) -> None:
    store = folder / "circle.zarr"
    build(store, nodes, half)
    command = Path(sys.executable).with_name("gmn-prep")
    for words in (["part", store, "0", "--of", "1", "--threads", "1"], ["finish", store], ["verify", store]):
        subprocess.run([command, *words], check=True)
    done = TokenStore.open(store)
    print(f"{done.graph.num_slots:,} slots, the last node's from {done.graph.indptr[-2]:,}")
    print(f"{check(done, nodes, half):,} tokens are those of the rule")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=3_100_000)
    parser.add_argument("--half", type=int, default=360)
    main(**vars(parser.parse_args()))
