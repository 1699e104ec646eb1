"""The default name of a dataset's store."""

from pathlib import Path


def store_stem(dataset: str) -> str:
    """A known dataset's name without ogb's prefix."""
    return dataset.removeprefix("ogbn-").removeprefix("ogbg-")


def default_store(stem: str) -> Path:
    return Path("data") / f"{stem}.zarr"
