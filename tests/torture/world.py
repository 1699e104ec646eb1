"""The honest things that cases start from: a file of one graph and one of many, their stores, a finished run."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.children import Ended, call, run

TOKENS = "--m 2 --M 2 --s 1 --block-size 16 --lap-pe 2 --rwse 3 --ordering degree,pagerank --threads 1"
SMALL = (
    "--set model.width=8 --set model.states=2 --set model.node_layers=1 --threads 1 --device cpu --precision float32 "
    "--set checkpoint_seconds=0"
)
STORES = {"raw": "g.npz --codec raw", "zstd": "g.npz --codec zstd", "many": "many.npz --codec raw"}
ON_STORE = {
    "verify": "gmn-prep verify s.zarr",
    "inspect": "gmn-prep inspect s.zarr",
    "inspect a node": "gmn-prep inspect s.zarr --node 3 --json",
    "repair": "gmn-prep repair s.zarr",
    "tokenize": f"gmn-prep tokenize --dataset {{data}} {TOKENS} --out s.zarr",
    "tokenize by force": f"gmn-prep tokenize --dataset {{data}} {TOKENS} --out s.zarr --force",
    "part": "gmn-prep part s.zarr 0 --threads 1",
    "finish": "gmn-prep finish s.zarr",
    "run": f"gmn-train run --store s.zarr --run-dir new --epochs 1 {SMALL}",
    "run in batches": f"gmn-train run --store s.zarr --run-dir new --epochs 1 {SMALL} --mode batch --batch-nodes 8",
    "run with all checks": f"gmn-train run --store s.zarr --run-dir new --epochs 1 {SMALL} --check full",
    "dry run": f"gmn-train run --store s.zarr --run-dir new --epochs 1 {SMALL} --dry-run",
    "settings": "gmn-train settings --store s.zarr",
    "evaluate": "gmn-train evaluate r",
    "predict": "gmn-train predict r --out p.parquet",
    "resume": "gmn-train resume r",
    "resume longer": "gmn-train resume r --epochs 3",
    "report": "gmn-train report r",
    "list runs": "gmn-train runs .",
}


@dataclass
class World:
    """Folders of honest files, and what each honest command needs."""

    root: Path
    peaks: dict[tuple[str, str], int] = field(default_factory=dict)
    remembered: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def make(cls, root: Path) -> "World":
        """Write the files by the commands themselves, in this process: so it has loaded whatever they load."""
        import os

        world, here = cls(root), Path.cwd()
        for kind, data in STORES.items():
            folder = root / kind
            folder.mkdir(parents=True)
            write_data(folder)
            os.chdir(folder)
            try:
                for line in (
                    f"gmn-prep tokenize --dataset {data} {TOKENS} --out s.zarr --quiet",
                    f"gmn-train run --store s.zarr --run-dir r --epochs 2 {SMALL} --quiet",
                    "gmn-train predict r --out p.parquet",
                    "gmn-prep verify s.zarr --quiet",
                ):
                    program, *arguments = line.split()
                    assert call(program, arguments) == 0, line
                (folder / "p.parquet").unlink()
            finally:
                os.chdir(here)
        return world

    def copy(self, kind: str, folder: Path) -> Path:
        """A folder of one's own, with data, store and run."""
        shutil.copytree(self.root / kind, folder)
        return folder

    def command(self, name: str, kind: str) -> tuple[str, list[str]]:
        program, *arguments = ON_STORE[name].format(data=STORES[kind]).split()
        return program, arguments

    def run(self, name: str, kind: str, folder: Path) -> Ended:
        program, arguments = self.command(name, kind)
        return run(program, arguments, folder)

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returned when it was first asked for under this name."""
        if name not in self.remembered:
            self.remembered[name] = make()
        return self.remembered[name]

    def honest_peak(self, name: str, kind: str) -> int:
        """The memory that a command takes on the honest files."""
        if (name, kind) not in self.peaks:
            with tempfile.TemporaryDirectory() as folder:
                ended = self.run(name, kind, self.copy(kind, Path(folder) / "honest"))
            assert ended.code in (0, 2), (name, kind, ended)
            self.peaks[name, kind] = ended.peak
        return self.peaks[name, kind]


def write_data(folder: Path, n: int = 40) -> None:
    """g.npz: a ring with chords and everything a graph may have. many.npz: eight rings and paths, one label each."""
    rng = np.random.default_rng(7)
    ring = np.concatenate([np.stack([np.arange(n), (np.arange(n) + 1) % n], 1), rng.integers(0, n, (30, 2))])
    np.savez(
        folder / "g.npz",
        edges=ring,
        edge_attr=rng.normal(size=(len(ring), 2)).astype(np.float32),
        x=rng.normal(size=(n, 3)).astype(np.float32),
        y=np.arange(n) % 3,
        node_ids=np.array([f"node {v}" for v in range(n)]),
    )
    edges = [[5 * g + i, 5 * g + (i + 1) % 5] for g in range(8) for i in range(4 + g % 2)]
    np.savez(
        folder / "many.npz",
        edges=np.array(edges),
        x=rng.normal(size=(40, 2)).astype(np.float32),
        graph_ptr=np.arange(0, 41, 5),
        y=np.arange(8) % 2,
        level="graph",
    )


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
