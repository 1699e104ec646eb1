"""Raw files of public datasets: where they lie, what they hold, and a scratch copy for a loader to work in.

A loader never works in the data root itself. It gets a scratch folder with links to the raw files, so a
read-only root will do, a failed download leaves nothing behind, and no second copy of the data (`processed/`)
stays.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import xxhash

from gmn_pipeline.errors import DatasetError


@dataclass(frozen=True)
class RawFiles:
    """What a loader needs of one dataset, and where."""

    folder: str
    """Below the data root, as `ogb/ogbn_arxiv`; its parent is the root the loader is given."""
    files: tuple[str, ...]
    """Below `folder`."""
    url: str
    """Where the loader downloads from."""
    markers: tuple[str, ...] = ()
    """Files that a loader looks for, whatever they hold."""

    def missing(self, root: Path) -> list[Path]:
        return [path for path in (root / self.folder / f for f in self.files) if not path.is_file()]

    def find(self, data_root: Path) -> Path | None:
        """The root that has all files: the data root, or the user's cache if they were downloaded there."""
        return next((root for root in (data_root, user_cache() / "raw") if not self.missing(root)), None)

    def digest(self, root: Path) -> str:
        """xxh3_128 of names and bytes. Reading costs far less than any use: 45 MB in 20 ms."""
        return digest_files((name, root / self.folder / name) for name in self.files)


def digest_files(named: Iterable[tuple[str, Path]]) -> str:
    """xxh3_128 over the (name, bytes) of all files, in hexadecimal."""
    digest = xxhash.xxh3_128()
    for name, path in named:
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
            for file in (*raw.files, *raw.markers):
                link = scratch / raw.folder / file
                link.parent.mkdir(parents=True, exist_ok=True)
                if (root / raw.folder / file).exists():
                    link.symlink_to((root / raw.folder / file).absolute())
                else:
                    link.touch()
        yield scratch


def keep_downloads(raw: RawFiles, scratch: Path, data_root: Path) -> Path:
    """Move downloaded files to the data root, or to the user's cache if that is read-only; returns the root.

    Each file is copied aside and renamed when whole.
    """
    root = data_root if is_writable(data_root / raw.folder) else user_cache() / "raw"
    lost = raw.missing(scratch)
    if lost:
        names = ", ".join(str(path.relative_to(scratch / raw.folder)) for path in lost)
        raise DatasetError(f"{raw.url} was downloaded but holds no {names}")
    for file in (*raw.files, *raw.markers):
        source, target = scratch / raw.folder / file, root / raw.folder / file
        if source.is_file() and not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = target.with_name(f".{target.name}.{os.getpid()}")
            try:
                shutil.copyfile(source, aside)
                aside.replace(target)
            finally:
                aside.unlink(missing_ok=True)
    return root
