"""Writes the edges of a large power-law graph to Parquet, a few million at a time.

python -m tests.benchmarks.by_hand.power_law_edges edges.parquet --nodes 50000000 --edges 225000000

Both ends of an edge are drawn with probability falling as rank^-0.6, which gives degrees a tail of exponent 2.7. Ranks
are scattered over the ids, so neighbours do not lie near each other.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

BATCH = 4_000_000
FALL = 0.6


def write_edges(path: Path, nodes: int, edges: int, seed: int = 0) -> None:
    step = next(k for k in range(int(nodes * 0.618) | 1, 2 * nodes, 2) if math.gcd(k, nodes) == 1)
    kind = pa.int32() if nodes <= 2**31 else pa.int64()
    with parquet.ParquetWriter(path, pa.schema([("src", kind), ("dst", kind)]), compression="none") as writer:
        for number, first in enumerate(range(0, edges, BATCH)):
            draws = np.random.Generator(np.random.Philox(key=[seed, number])).random((2, min(BATCH, edges - first)))
            ranks = (nodes * draws ** (1 / (1 - FALL))).astype(np.int64)
            src, dst = (ranks * step + 12_345) % nodes
            writer.write_table(pa.table({"src": pa.array(src, kind), "dst": pa.array(dst, kind)}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--nodes", type=int, default=50_000_000)
    parser.add_argument("--edges", type=int, default=225_000_000)
    parser.add_argument("--seed", type=int, default=0)
    write_edges(**vars(parser.parse_args()))
