"""Raw files of public datasets: where they lie, what they hold, and a scratch copy to read them from.

Nothing is read in the data root itself, but in a scratch folder with links to the raw files: a read-only root will
do, a failed download leaves nothing behind, and a library's second copy of the data (`processed/`) does not stay. An
archive is unpacked there.
"""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path

import xxhash

from gmn_pipeline.disk.atomic_file import write_aside
from gmn_pipeline.errors import DatasetError, one_line
from gmn_prep.datasets.file_sizes import check_holes
from gmn_prep.datasets.public.raw.download import download, unpack


@dataclass(frozen=True)
class RawFiles:
    """What a loader needs of one dataset, and where."""

    folder: str
    """Below the data root, as `ogb/ogbn_arxiv`; its parent is the root the loader is given."""
    files: tuple[str, ...]
    """Below `folder`."""
    url: str
    """Where they are published."""
    parts: tuple[str, ...] | None = None
    """What to fetch, in this order, if not `url` alone; nothing where the library downloads by itself."""
    markers: tuple[str, ...] = ()
    """Files that a loader looks for, whatever they hold."""

    archive: str | None = None
    """Below the data root: a tar file that unpacks beside itself to `folder`. It serves where `files` are not."""
    listing: Callable[[Path], list[str]] | None = None
    """Names of further files, read from `files` below the folder given."""
    listed: str = ""
    """What those are called where the listing itself is missing."""

    def names(self, root: Path) -> list[str]:
        """All files of the dataset, below `folder`; those that are listed only if the listing is there."""
        folder = root / self.folder
        if self.listing is None or not all((folder / name).is_file() for name in self.files):
            return list(self.files)
        return [*self.files, *self.listing(folder)]

    def missing(self, root: Path) -> list[str]:
        """Files that are not there, below `folder`."""
        return [name for name in self.names(root) if not (root / self.folder / name).is_file()]

    def has_archive(self, root: Path) -> bool:
        return self.archive is not None and (root / self.archive).is_file()

    def find(self, data_root: Path) -> Path | None:
        """The root that has all files: the data root, or the user's cache if they were downloaded there."""
        roots = (data_root, user_cache() / "raw")
        return next((root for root in roots if not self.missing(root) or self.has_archive(root)), None)

    def digest(self, root: Path) -> str:
        """xxh3_128 of names and bytes. Reading costs far less than any use: 45 MB in 20 ms."""
        if self.archive is not None and self.missing(root):
            return digest_files([(self.archive, root / self.archive)])
        return digest_files((name, root / self.folder / name) for name in self.names(root))


def digest_files(named: Iterable[tuple[str, Path]]) -> str:
    """xxh3_128 over the (name, bytes) of all files, in hexadecimal. DatasetError for one that is mostly holes."""
    digest = xxhash.xxh3_128()
    for name, path in named:
        check_holes(path)
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 22):
                digest.update(chunk)
    return digest.hexdigest()


def user_cache() -> Path:
    """Our folder for what cannot be kept in the data root."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "gmn-pipeline"


def is_writable(folder: Path) -> bool:
    """Whether `folder`, or the nearest folder above it that exists, may be written to.

    A folder whose write permissions were taken away is meant to stay as it is, even where we are the
    superuser.
    """
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)


@contextmanager
def scratch_root(raw: RawFiles, root: Path | None) -> Iterator[Path]:
    """A temporary root for the loader: with links to the raw files below `root`, or to download into."""
    with tempfile.TemporaryDirectory(prefix="gmn-prep-") as name:
        scratch = Path(name)
        if root is not None:
            if raw.missing(root):
                unpack_archive(raw, root, scratch)
            else:
                link_files(raw, root, scratch)
            for file in raw.markers:
                (scratch / raw.folder / file).touch()
        yield scratch


def link_files(raw: RawFiles, root: Path, scratch: Path) -> None:
    for file in raw.names(root):
        link = scratch / raw.folder / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to((root / raw.folder / file).absolute())


def unpack_archive(raw: RawFiles, root: Path, scratch: Path) -> None:
    """Unpack what is wanted of the archive below `root` into the same place below `scratch`. Raises DatasetError."""
    assert raw.archive is not None
    path = root / raw.archive
    try:
        unpack(path, {f"{Path(raw.folder).name}/{file}": scratch / raw.folder / file for file in raw.files})
    except (tarfile.TarError, OSError, EOFError, ValueError, LZMAError) as error:
        raise DatasetError(f"{path} cannot be unpacked ({one_line(error)}); replace it") from error
    lost = raw.missing(scratch)
    if lost:
        raise DatasetError(f"{path} holds no {few(lost)} in {Path(raw.folder).name}")


def download_files(raw: RawFiles, scratch: Path) -> None:
    """Fetch what is published into its place below `scratch`. A listing is fetched before the files it names."""
    for url in (raw.url,) if raw.parts is None else raw.parts:
        wanted = {name.removeprefix("raw/"): scratch / raw.folder / name for name in raw.names(scratch)}
        download(url, wanted)


def few(names: list[str], most: int = 12) -> str:
    """Names for a message of one line."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def keep_downloads(raw: RawFiles, scratch: Path, data_root: Path) -> Path:
    """Move downloaded files to the data root, or to the user's cache if that is read-only; returns the root.

    Each file is copied aside and renamed when whole.
    """
    root = data_root if is_writable(data_root / raw.folder) else user_cache() / "raw"
    lost = raw.missing(scratch)
    if lost:
        raise DatasetError(f"{raw.url} was downloaded but holds no {few(lost)}")
    for file in (*raw.names(scratch), *raw.markers):
        source, target = scratch / raw.folder / file, root / raw.folder / file
        if source.is_file() and not target.is_file():
            with write_aside(target) as aside:
                shutil.copyfile(source, aside)
    return root
