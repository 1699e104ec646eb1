"""A Dask cluster to work on: an existing one, by its address, or processes of this machine. Every fault is one line."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from socket import create_connection
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^/\s]+:\d{1,5}")
CONNECT_SECONDS, WORKER_SECONDS = 10, 60
SAME_VERSIONS = ("gmn-pipeline", "python", "distributed", "numpy", "numba", "scipy", "zarr", "numcodecs")
"""Packages that decide how tasks are sent and which bytes are written."""


@contextmanager
def open_cluster(address: str, processes: int) -> "Iterator[Client]":
    """A client of the scheduler at `address`, or of `processes` new workers of this machine for `local`.

    Raises ConfigError where Dask is not installed, nobody answers, no worker joins, or versions differ.
    """
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise ConfigError('--dask needs Dask; install it with pip install "gmn-pipeline[dask]"') from None
    if address != LOCAL and not ADDRESS.fullmatch(address):
        raise ConfigError(f"--dask is '{address}'; give the scheduler's address, as tcp://HOST:8786, or local")
    with _silent_logs(), _start_workers(processes) if address == LOCAL else nullcontext(address) as place:
        client = _connect(place, address)
        try:
            _check_workers(client, address)
            yield client
        finally:
            with suppress(Exception):
                client.close()


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Dask's own messages are not printed meanwhile: what matters is told in one line."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _start_workers(processes: int) -> Any:
    from distributed import LocalCluster

    # Dask counts mapped files as a worker's memory, so a limit would pause workers that hold next to nothing.
    return LocalCluster(
        n_workers=processes, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def _connect(place: Any, address: str) -> "Client":
    from distributed import Client

    try:
        if address != LOCAL:  # Dask would try a refused connection on and on
            host, port = re.sub(r"^\w+://", "", address).rsplit(":", 1)
            create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        return Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, OverflowError) as error:  # a timeout is one; a port too large is the other
        raise ConfigError(
            f"no Dask scheduler answers at '{address}' ({_line(error)}); give --dask tcp://HOST:8786, or --dask local"
        ) from None


def _check_workers(client: "Client", address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise ConfigError(
            f"no worker has joined the Dask scheduler at '{address}'; start some with: dask worker {address}"
        ) from None
    found = client.get_versions(packages=list(SAME_VERSIONS))
    own = found["client"]["packages"]
    for worker, facts in found["workers"].items():
        for package in SAME_VERSIONS:
            theirs = facts["packages"].get(package)
            if theirs != own[package]:
                here, there = _version(package, own[package]), _version(package, theirs)
                raise ConfigError(
                    f"Dask worker {worker} has {there}, this command has {here}; install the same versions everywhere: "
                    "the bytes of a store depend on them"
                )


def _version(package: str, version: str | None) -> str:
    return f"no {package}" if version is None else f"{package} {version}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
