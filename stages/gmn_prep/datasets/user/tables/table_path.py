"""The files that a path of the user's own tables stands for, and what they are called."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gmn_pipeline.errors import DatasetError, nearest

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES))
ARRAY_SUFFIXES = (".npz", ".pt", ".pth")
SUFFIXES = (*ARRAY_SUFFIXES, *TABLE_SUFFIXES)


def ending(path: Path) -> str:
    """What a file is read as, by its name: `.csv` of `A.CSV`, `.csv.gz` of `a.csv.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    both = "".join(suffixes)
    return both if both in TABLE_SUFFIXES else suffixes[-1] if suffixes else ""


def stem(path: Path) -> str:
    """The name of a file without its ending."""
    return path.name[: len(path.name) - len(ending(path))] if ending(path) else path.name


def list_files(path: Path) -> list[Path]:
    """The files a path stands for: itself, those of a pattern as `edges-*.csv`, or those of a list with commas."""
    if path.is_file():
        return [path]
    if any(sign in path.name for sign in "*?["):
        return sorted(path.parent.glob(path.name))
    return [Path(part.strip()) for part in str(path).split(",")] if "," in str(path) else [path]


def name_files(path: Path) -> str:
    """What a path's content is called: the stem of the file, of the first of a list, or of a pattern without signs."""
    if path.is_dir():
        return path.resolve().name or "tables"
    first = Path(str(path).split(",")[0]) if not path.is_file() else path
    return re.sub(r"[*?\[\]]", "", stem(first)).strip("-_. ") or "tables"


def find_beside(path: Path, stems: Iterable[str]) -> Path | None:
    """A table beside `path` under one of these names, in capitals or not; of several endings, that of `path` first."""
    with suppress(OSError):
        there = {file.name.lower(): file for file in path.parent.iterdir() if file.is_file()}
        wanted = (name.lower() + suffix for name in stems for suffix in (ending(path), *TABLE_SUFFIXES))
        return next((there[name] for name in wanted if name in there), None)
    return None


def find_in_folder(folder: Path) -> Path:
    """The dataset of a folder: its `edges`, or the one file that can be one. Raises DatasetError."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and ending(file) in SUFFIXES)
    edges = [file for file in files if stem(file).lower() == "edges"] or files
    if len(edges) == 1:
        return edges[0]
    some = ", ".join(file.name for file in edges[:3]) + (", ..." if len(edges) > 3 else "")
    what = f"of {some}; name one of them, or several of one table as '{folder / '*.csv'}'"
    if not edges:
        what = f"without a dataset; one of your own is one of {', '.join(SUFFIXES)}"
    raise DatasetError(f"{folder} is a folder {what}")


def say_missing(file: Path) -> str:
    """That a file does not exist, and which one may be meant."""
    with suppress(OSError):
        return f"{file} does not exist{nearest(file.name, tuple(other.name for other in file.parent.iterdir()))}"
    return f"{file} does not exist"
