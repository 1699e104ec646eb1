"""The versions that a store's bytes depend on: `gmn-prep plan` leaves them beside the store, and parts compare.

Beside a store in object storage there is no place for them.
"""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gmn_pipeline.disk.atomic_file import write_bytes
from gmn_pipeline.errors import ConfigError, StoreError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.format.manifest import Manifest
from gmn_prep.parts.shared_arrays import parts_folder

BYTES_DEPEND_ON = ("gmn-pipeline", "python", "numpy", "numba", "scipy", "zarr", "numcodecs")
"""Packages that decide which bytes are written, and Python itself."""


def share_versions(path: StorePlace, manifest: Manifest) -> None:
    """Leave this process's versions beside a planned store; where it was planned before, compare them."""
    if not isinstance(path, Path):
        return
    check_versions(path, manifest)
    file = _file(path, manifest)
    try:
        write_bytes(file, json.dumps(own_versions(), indent=2).encode())
    except OSError as error:
        raise StoreError(f"cannot write {file}: {error.strerror or error}; make room and run again") from error


def check_versions(path: StorePlace, manifest: Manifest) -> None:
    """ConfigError where a store was planned with other versions than this process has."""
    if not isinstance(path, Path):
        return
    try:
        planned = json.loads(_file(path, manifest).read_bytes())
    except FileNotFoundError:  # planned by the verbs, or complete meanwhile
        return
    for name, here in own_versions().items():
        if planned.get(name) != here:
            raise ConfigError(
                f"{path} was planned with {describe_version(name, planned.get(name))}, this command has "
                f"{describe_version(name, here)}; install the same versions everywhere: the bytes of a store depend on "
                "them"
            )


def own_versions() -> dict[str, str | None]:
    """This process's versions, by name; None for what is not installed."""
    return {name: platform.python_version() if name == "python" else _installed(name) for name in BYTES_DEPEND_ON}


def describe_version(name: str, version: str | None) -> str:
    return f"no {name}" if version is None else f"{name} {version}"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _file(path: Path, manifest: Manifest) -> Path:
    return parts_folder(path, manifest) / "versions.json"
