"""Positional and structural encodings of nodes: a new one is a file with a function, and a line in ENCODINGS.

What a store keeps of an encoding is the other half of its entry, in `gmn_pipeline.store.format.encodings`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import ConfigError
from gmn_pipeline.tables import Table, load_code

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_pipeline.store.format.manifest import Scalar
    from gmn_pipeline.types import Array
    from gmn_prep.tokenize_settings import TokenizeConfig

    Settings = dict[str, Scalar]

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class ComputedEncoding:
    """The arrays of one encoding as the store keeps them, and what the user should know."""

    arrays: "Mapping[str, Array]"
    notices: tuple[str, ...] = ()


def _seeded(k: int, config: "TokenizeConfig") -> "Settings":
    return {"k": k, "seed": config.seed}


def _random_walk_settings(k: int, config: "TokenizeConfig") -> "Settings":
    seed: Settings = {"seed": config.seed} if config.rwse_mode == "estimate" else {}
    return {"k": k, "mode": config.rwse_mode, **seed}


@dataclass(frozen=True)
class EncodingEntry:
    """One line of the table. A function may be given itself or by its place, as `package.module:name`."""

    name: str
    compute: str | Callable[..., Any]
    """(graph, settings, *, threads, on_progress) -> ComputedEncoding. on_progress(nodes done, all nodes)."""
    settle: str | Callable[..., Any] | None = None
    """(graph, settings, seed) -> settings: decides what depends on the graph, or refuses by ConfigError."""
    option: str | None = None
    """The setting of `gmn-prep tokenize` with the number of columns; `--encoding NAME=K` serves all."""
    share: str | Callable[..., Any] | None = None
    """(graph, settings, workers) -> arrays that every row needs; of an encoding whose rows can be computed apart."""
    fill: str | Callable[..., Any] | None = None
    """(graph, shared, settings, lo, hi, out): fills each array of `out` with its rows lo .. hi."""
    settings: "Callable[[int, TokenizeConfig], Settings]" = _seeded
    """What was asked, as the manifest keeps it: `k`, the number of columns, and what else decides the content."""


ENCODINGS: Table[EncodingEntry] = Table(
    "encoding",
    [
        EncodingEntry(
            "laplacian",
            "gmn_prep.encodings.laplacian.encoding:compute_laplacian",
            "gmn_prep.encodings.laplacian.encoding:settle_laplacian",
            option="lap_pe",
        ),
        EncodingEntry(
            "random_walk",
            "gmn_prep.encodings.random_walk.encoding:compute_random_walk",
            "gmn_prep.encodings.random_walk.encoding:settle_random_walk",
            share="gmn_prep.encodings.random_walk.rows:share_random_walk",
            fill="gmn_prep.encodings.random_walk.rows:fill_random_walk",
            option="rwse",
            settings=_random_walk_settings,
        ),
    ],
)


def asked_encodings(config: "TokenizeConfig") -> "dict[str, Settings]":
    """The settings of every encoding that was asked for. Raises ConfigError for an unknown name."""
    columns = {e.name: getattr(config, e.option) for e in ENCODINGS.values() if e.option}
    for text in config.encoding:
        name, _, k = text.partition("=")
        if not k.isdigit():
            raise ConfigError(f"--encoding takes NAME=K, such as laplacian=8; found '{text}'")
        columns[ENCODINGS.find(name).name] = int(k)
    return {e.name: e.settings(columns[e.name], config) for e in ENCODINGS.values() if columns.get(e.name)}


def settle_encodings(graph: "Graph", asked: "dict[str, Settings]", seed: int) -> "dict[str, Settings]":
    """The same settings, with what only the graph decides."""
    settles = {name: ENCODINGS[name].settle for name in asked}
    return {n: load_code(settle)(graph, asked[n], seed) if (settle := settles[n]) else asked[n] for n in asked}


def compute_encoding(
    graph: "Graph", name: str, settings: "Settings", *, threads: int = 1, on_progress: OnProgress | None = None
) -> ComputedEncoding:
    """Compute one encoding with the settings that the manifest keeps. The same for any number of threads."""
    compute = load_code(ENCODINGS.find(name).compute)
    computed: ComputedEncoding = compute(graph, settings, threads=threads, on_progress=on_progress)
    return computed


def join_rows(shared: "Mapping[str, Array]", out: "Mapping[str, Array]") -> "dict[str, Array]":
    """Rows by node: row i of `out` is that of node shared["order"][i], or of node i where there is no such order."""
    import numpy as np

    order = shared.get("order")
    if order is None:
        return dict(out)
    joined = {name: np.empty_like(rows) for name, rows in out.items()}
    for name, rows in out.items():
        joined[name][order] = rows
    return joined
