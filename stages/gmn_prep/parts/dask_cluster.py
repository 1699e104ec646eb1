"""A Dask cluster to work on: an existing one, by its address, or processes of this machine. Every fault is one line."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import current_process
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import ConfigError
from gmn_prep.parts.dask_probe import why_no_scheduler
from gmn_prep.parts.versions import BYTES_DEPEND_ON, describe_version

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^/\s]+:\d{1,5}")
CONNECT_SECONDS, WORKER_SECONDS = 10, 60
SAME_VERSIONS = (*BYTES_DEPEND_ON, "distributed")
"""Packages that decide how tasks are sent and which bytes are written."""


@contextmanager
def open_cluster(address: str, processes: int, say: Callable[[str], None]) -> "Iterator[Client]":
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
            _wait_for_workers(client, address, say)
            _check_versions(client)
            yield client
        finally:
            with suppress(Exception):
                client.close()


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Dask's own messages are not printed meanwhile: what matters is told in one line.

    Dask gives some of its loggers a level of their own, so each is silenced, and asyncio's, which tells of tasks that
    end with a lost connection.
    """
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio", *names)]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _start_workers(processes: int) -> Any:
    from distributed import LocalCluster

    here = current_process()
    if getattr(here, "_inheriting", False) and here.name.startswith("Dask Worker"):
        raise SystemExit(1)  # a new worker that runs an unguarded script again; who started it tells
    try:
        # Dask counts mapped files as a worker's memory, so a limit would pause workers that hold next to nothing.
        return LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
    except (RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ConfigError(
            f"no workers could be started for --dask local ({reason}); a script must make the call under "
            'if __name__ == "__main__":, because every worker runs the script again up to there'
        ) from None


def _connect(place: Any, address: str) -> "Client":
    from distributed import Client

    reason = None if address == LOCAL else why_no_scheduler(address)
    if reason is None:
        try:
            return Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
        except OSError as error:  # a timeout is one
            reason = " ".join(str(error).split())[:120] or type(error).__name__
    raise ConfigError(
        f"no Dask scheduler answers at '{address}' ({reason}); give the address that `dask scheduler` prints, as "
        "--dask tcp://HOST:8786, or --dask local"
    )


def _wait_for_workers(client: "Client", address: str, say: Callable[[str], None]) -> None:
    if not client.scheduler_info(n_workers=-1)["workers"]:
        say(f"the Dask scheduler at '{address}' has no workers; waiting {WORKER_SECONDS} s for one to join")
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise ConfigError(
            f"no worker has joined the Dask scheduler at '{address}'; start some with: dask worker {address}"
        ) from None


def _check_versions(client: "Client") -> None:
    versions = client.get_versions(packages=list(SAME_VERSIONS))
    own = versions["client"]["packages"]
    for worker, facts in versions["workers"].items():
        for package in SAME_VERSIONS:
            theirs = facts["packages"].get(package)
            if theirs != own[package]:
                here, there = describe_version(package, own[package]), describe_version(package, theirs)
                raise ConfigError(
                    f"Dask worker {worker} has {there}, this command has {here}; install the same versions everywhere: "
                    "the bytes of a store depend on them"
                )
