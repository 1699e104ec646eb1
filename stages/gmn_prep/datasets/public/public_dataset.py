"""Read a public dataset from its published files once, and from our cache ever after."""

from collections.abc import Callable
from pathlib import Path

from gmn_pipeline.errors import DatasetError, GmnError, one_line
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset, DatasetOptions
from gmn_prep.datasets.public.raw.graph_cache import cache_name, read_cache, write_cache
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader, unreachable
from gmn_prep.datasets.public.raw.raw_files import (
    RawFiles,
    download_files,
    few,
    is_writable,
    keep_downloads,
    scratch_root,
    user_cache,
)


def public_dataset(
    name: str,
    convert: Callable[[Path, bool], Graph],
    predicts: Task,
    *,
    size: str,
    source: str,
    raw: RawFiles,
    directed: bool = False,
) -> Dataset:
    """A line of the table. directed: whether --directed makes another graph of it.

    convert: makes a checked Graph of the folder with the raw files in place and of whether directions are kept. It runs
    nothing that the files hold.
    """

    def load(options: DatasetOptions) -> Graph:
        return _load(name, raw, options, convert, directed=directed and options.directed)

    takes = {"directed": False} if directed else {}
    return Dataset(name, load, predicts, size=size, source=source, takes=takes, raw=raw)


def _load(
    name: str, raw: RawFiles, options: DatasetOptions, convert: Callable[[Path, bool], Graph], *, directed: bool
) -> Graph:
    """Read the cache, or convert the raw files. Raises DatasetError naming the files that are missing."""
    root = raw.find(options.data_root)
    if root is not None:
        digest = raw.digest(root)
        folders = _cache_folders(raw, root, digest, directed)
        for folder in folders:
            graph = read_cache(folder, digest)
            if graph is not None:
                return graph
    else:
        _require_network(name, raw, options.data_root)

    with scratch_root(raw, root) as scratch:
        try:
            with quiet_loader(downloading=root is None):
                if root is None:
                    download_files(raw, scratch)
                graph = convert(scratch / raw.folder, directed)
        except GmnError as error:
            raise DatasetError(f"{name}: {one_line(error)}") from error
        # Files can be wrong in as many ways as they have bytes; SystemExit is ogb's, when a download is refused.
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            if root is None:
                raise DatasetError(_missing_message(name, raw, options.data_root, reason)) from error
            place = root / (raw.archive if raw.archive and raw.missing(root) else raw.folder)
            raise DatasetError(
                f"{name}: the raw files in {place} cannot be read ({reason}); replace them with those of {raw.url}"
            ) from error
        if root is None:
            root = keep_downloads(raw, scratch, options.data_root)
            digest = raw.digest(root)
            folders = _cache_folders(raw, root, digest, directed)
    for folder in folders:
        if is_writable(folder) and write_cache(folder, digest, graph):
            return read_cache(folder, digest) or graph  # mapped, so the copy in memory can go
    return graph


def _cache_folders(raw: RawFiles, root: Path, digest: str, directed: bool) -> list[Path]:
    """Beside the raw files, and for a read-only root in the user's cache."""
    name = cache_name(directed)
    return [root / raw.folder / name, user_cache() / "graphs" / digest / name]


def _require_network(name: str, raw: RawFiles, data_root: Path) -> None:
    reason = unreachable(raw.url)
    if reason is not None:
        raise DatasetError(_missing_message(name, raw, data_root, reason))


def _missing_message(name: str, raw: RawFiles, data_root: Path, reason: str) -> str:
    absent = raw.missing(data_root)
    if raw.listed and absent[0] in raw.files:
        absent.append(raw.listed)
    archive = ""
    if raw.archive is not None:
        path = data_root / raw.archive
        archive = f", or {path.name} into {path.parent}"
    return (
        f"{name} needs files that are not there, and downloading {raw.url} failed ({reason}); "
        f"put {few(absent)} into {data_root / raw.folder}{archive}"
    )
