"""Where a store lies: in a folder of this machine (a Path), or in an object store (a StoreUrl)."""

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from gmn_pipeline.errors import ConfigError

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


@dataclass(frozen=True)
class StoreUrl:
    """A store in an object store: every object whose key begins with `prefix/`."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def name(self) -> str:
        return PurePosixPath(self.prefix).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.prefix).stem


class _FromText:
    """How settings read a place: pydantic asks for this when it first fills them."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(as_place)


StorePlace = Annotated[Path | StoreUrl, _FromText()]


def as_place(given: "str | os.PathLike[str] | StoreUrl") -> Path | StoreUrl:
    """A path, or the URL of a store. Raises ConfigError for a URL that names none."""
    if isinstance(given, StoreUrl):
        return given
    if not isinstance(given, str | os.PathLike):
        raise ConfigError(f"{given!r} is not the path of a store")
    text = os.fspath(given)
    if text.startswith("s3:/"):  # pathlib makes one slash of two
        bucket, _, prefix = text.removeprefix("s3:").strip("/").partition("/")
        if not bucket or not prefix:
            raise ConfigError(f"{text} names no store; write s3://BUCKET/NAME.zarr")
        return StoreUrl(bucket, prefix)
    if match := _SCHEME.match(text):
        raise ConfigError(
            f"{text}: {match[1]}:// is not supported; a store lies in a folder or at s3://BUCKET/NAME.zarr"
        )
    return Path(text)


def make_way(place: Path | StoreUrl, *, replaces: bool = True) -> str:
    """What to do about another store at a place. replaces: whether the command can, with --force."""
    if isinstance(place, StoreUrl):
        return "choose another --out"
    return "choose another --out, or " + ("pass --force to replace it" if replaces else "remove it")
