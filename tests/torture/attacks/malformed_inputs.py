"""Input files that are broken, hostile or strange: tables, .npz, .pt, Parquet, and raw files with a pickle in them."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.torture.cases import BORDERS, REAL, TEXT, draw_cases
from tests.torture.children import explain, left_behind, run
from tests.torture.world import World, write_data

PLACE = st.integers(0, 100_000)
FIELD = st.one_of(
    st.integers(-2, 12).map(str), st.sampled_from([str(b) for b in BORDERS]), REAL.map(str), TEXT,
    st.sampled_from(["a", "b", "c", '"', '""', '"a', "NA", "1.0", "2024-01-01", "train", "test", "True"]),
)  # fmt: skip
HEADER = st.lists(
    st.sampled_from(
        ["src", "dst", "id", "label", "y", "split", "x", "w", "graph", "source", "target", "SRC", "", "train_mask"]
    ),
    max_size=5,
)
TABLE = st.tuples(
    HEADER, st.lists(st.lists(FIELD, max_size=5), max_size=8), st.sampled_from(",;\t| "),
    st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-8-sig"]), st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
)  # fmt: skip
KEYS = [
    "edges", "edge_index", "indptr", "indices", "x", "edge_attr", "y", "graph_ptr", "splits", "pairs", "num_nodes",
    "level", "kind", "classes", "metric", "node_ids", "directed", "train_mask", "time", "task", "nonsense",
]  # fmt: skip
DTYPES = ["i8", "i4", "u1", "f4", "f8", "f2", "?", "U3", "S3", "c16", "O", "M8[s]", ">i8", "u8"]
ARRAY = st.tuples(
    st.sampled_from(KEYS), st.sampled_from(DTYPES), st.lists(st.sampled_from([0, 1, 2, 3, 8, 40]), max_size=3),
    st.lists(st.sampled_from(BORDERS) | st.integers(0, 8), min_size=1, max_size=6),
)  # fmt: skip
CHANGE = st.tuples(st.sampled_from(["flip", "cut", "insert", "header"]), PLACE, st.integers(1, 255))
KINDS = ["g.npz", "many.npz", "g.pt", "edges.csv", "edges.parquet"]
CASE = st.one_of(
    st.tuples(st.just("tables"), TABLE, TABLE, st.booleans()),
    st.tuples(st.just("tables"), TABLE, TABLE, st.booleans()),
    st.tuples(
        st.just("arrays"), st.booleans(), st.lists(ARRAY, min_size=1, max_size=4), st.sampled_from(["npz", "pt"])
    ),
    st.tuples(
        st.just("arrays"), st.booleans(), st.lists(ARRAY, min_size=1, max_size=4), st.sampled_from(["npz", "pt"])
    ),
    st.tuples(st.just("changed"), st.sampled_from(KINDS), st.lists(CHANGE, min_size=1, max_size=3), st.none()),
    st.tuples(
        st.just("hostile"),
        st.sampled_from(["npz", "pt", "zip pt", "npy header", "bomb", "many entries"]),
        PLACE,
        st.none(),
    ),
)
TOKENIZE = "tokenize --m 1 --M 1 --s 1 --lap-pe 1 --threads 1 --out new.zarr --dataset"


class Touch:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("open('proof', 'w').close()",)


def make_cases(seed: int, count: int) -> list[Any]:
    return draw_cases(CASE, seed, count)


def try_case(case: Any, world: World, folder: Path) -> tuple[int, str | None]:
    here, honest = folder / "here", folder / "honest"
    for place in (here, honest):
        place.mkdir()
        write_data(place)
    peak = world.remember("peak of input", lambda: run("gmn-prep", [*TOKENIZE.split(), "g.npz"], honest).peak)
    try:
        file = _write(here, *case)
    except (ValueError, TypeError, OverflowError, UnicodeError, RuntimeError):
        return 0, None  # there is no such file
    ended = run("gmn-prep", [*TOKENIZE.split(), file], here)
    fault = explain(ended, peak) or left_behind(here)
    if (here / "proof").exists():
        fault = "ran code of the file"
    return 1, fault


def _write(here: Path, what: str, first: Any, second: Any, third: Any) -> str:
    if what == "tables":
        for name, (header, rows, separator, encoding, end) in (("edges", first), ("nodes", second)):
            lines = [separator.join(row) for row in [header, *rows]]
            if name == "edges" or third:
                (here / f"{name}.csv").write_bytes(end.join(lines).encode(encoding, errors="replace"))
        return "edges.csv"
    if what == "arrays":
        return _write_arrays(here, first, second, third)
    if what == "changed":
        return _write_changed(here, first, second)
    return _write_hostile(here, first, second)


def _make(dtype: str, shape: list[int], values: list[int]) -> Any:
    size = int(np.prod(shape)) if shape else 1
    if dtype == "O":
        return np.array([Touch() for _ in range(size)], dtype=object).reshape(shape)
    if np.dtype(dtype).kind in "US":
        return np.resize(np.array([str(v) for v in values], dtype=dtype), size).reshape(shape)
    with np.errstate(all="ignore"):
        return np.resize(np.array(values, dtype=object).astype(np.float64), size).astype(dtype).reshape(shape)


def _write_arrays(here: Path, honest: bool, arrays: list[Any], kind: str) -> str:
    content: dict[str, Any] = {}
    if honest:
        with np.load(here / "g.npz") as file:
            content |= {name: file[name] for name in file.files}
    for key, dtype, shape, values in arrays:
        content[key] = _make(dtype, shape, values)
    if kind == "npz":
        np.savez(here / "new.npz", **content)
        return "new.npz"
    import torch

    data = {
        k: torch.from_numpy(v) if v.dtype.kind in "iufb" and v.dtype.isnative else v.tolist()
        for k, v in content.items()
    }
    if (
        "edges" in data
        and "edge_index" not in data
        and isinstance(data["edges"], torch.Tensor)
        and data["edges"].ndim == 2
    ):
        data["edge_index"] = data.pop("edges").T
    torch.save(data, here / "new.pt")
    return "new.pt"


def _write_changed(here: Path, name: str, changes: list[Any]) -> str:
    if name == "g.pt":
        _write_arrays(here, True, [], "pt")
        name = "new.pt"
    elif name.startswith("edges"):
        import pyarrow as pa
        from pyarrow import csv, parquet

        table = pa.table({"src": [0, 1, 2, 3], "dst": [1, 2, 3, 0], "w": [0.5, 1.5, 2.5, 3.5]})
        csv.write_csv(table, here / name) if name.endswith("csv") else parquet.write_table(table, here / name)
    content = bytearray((here / name).read_bytes())
    for how, place, value in changes:
        at = place * 7919 % max(len(content), 1)
        if how == "flip" and content:
            content[at] ^= value
        elif how == "cut":
            del content[at:]
        elif how == "insert":
            content[at:at] = bytes([value]) * (place % 9)
        elif how == "header":
            content[: place % 64] = bytes(place % 64)
    (here / name).write_bytes(content)
    return name


def _write_hostile(here: Path, kind: str, place: int) -> str:
    if kind == "npz":
        np.savez(here / "h.npz", edges=np.array([[0, 1]]), x=np.array([Touch()], dtype=object))
        return "h.npz"
    if kind == "pt":
        (here / "h.pt").write_bytes(pickle.dumps(Touch(), place % 5))
        return "h.pt"
    if kind == "zip pt":
        with zipfile.ZipFile(here / "h.pt", "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps({"edge_index": Touch()}, 2))
            archive.writestr("archive/version", "3\n")
        return "h.pt"
    shape = (10 ** (place % 14), 2)
    with zipfile.ZipFile(here / "h.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": shape})
        zeros = bytes(1 << 20) * (400 if kind == "bomb" else 0)
        for number in range(2000 if kind == "many entries" else 1):
            archive.writestr("edges.npy" if number == 0 else f"e{number}.npy", header.getvalue() + zeros)
    return "h.npz"
