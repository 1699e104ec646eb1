"""`gmn-prep tokenize --dask` on a real cluster of processes: the bytes of the plain command, whatever happens."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from gmn_pipeline.console.config import Layer, load_config
from gmn_pipeline.disk.lock import release_lock, take_lock
from gmn_pipeline.errors import ConfigError, StoreBusyError, StoreError
from gmn_prep.parts import dask_cluster
from gmn_prep.parts.dask_map import _run, map_tokens
from gmn_prep.parts.encoding_parts import LEAST_ROWS
from gmn_prep.phases import Phases
from gmn_prep.tokenize import tokenize
from gmn_prep.tokenize_settings import TokenizeConfig
from tests.end_to_end.commands import Command, run, start, tree

distributed = pytest.importorskip("distributed")

SETTINGS: dict[str, Any] = {
    "dataset": "minesweeper-grid", "nodes": 2500, "m": 2, "M": 2, "s": 1, "block_size": 63, "rwse": 4,
}  # fmt: skip
PARTS = SETTINGS["nodes"] // LEAST_ROWS
"""Of the encoding."""
FLAGS = [text for name, value in SETTINGS.items() for text in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=50
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Every byte that the plain command writes, by the mode of the random-walk encoding."""
    folder = tmp_path_factory.mktemp("plain")
    for mode in ("exact", "estimate"):
        make(folder / mode, rwse_mode=mode)
    return {mode: tree(folder / mode) for mode in ("exact", "estimate")}


def make(path: Path, **settings: Any) -> None:
    config = load_config(TokenizeConfig, Layer("test", {**SETTINGS, "out": path, **settings}))
    tokenize(config, Phases())


def start_job(path: Path, cluster: Any, mode: str) -> Command:
    arguments = ("tokenize", *FLAGS, "--rwse-mode", mode, "--out", path, "--dask", cluster.scheduler.address, "--quiet")
    return start("gmn-prep", *arguments, cwd=path.parent)


def wait_for(folder: Path, pattern: str, count: int = 1) -> None:
    """Until so many files or folders of that pattern are there."""
    deadline = time.monotonic() + 240  # a machine may be busy
    while len(list(folder.glob(pattern))) < count:
        assert time.monotonic() < deadline, f"no {pattern}"
        time.sleep(0.005)


@pytest.mark.parametrize("mode", ["exact", "estimate"])
def test_killed_workers_change_no_byte(
    mode: str, tmp_path: Path, cluster: Any, plain: dict[str, dict[str, bytes]]
) -> None:
    """One dies while it holds parts of the encoding, and once both while tokens are made: no mode changes these."""
    store = tmp_path / "s.zarr"
    workers = cluster.run(os.getpid)
    with start_job(store, cluster, mode) as job:
        wait_for(tmp_path, "s.zarr.parts/*/random_walk/shared")
        os.kill(next(iter(workers.values())), signal.SIGSTOP)  # it keeps the parts that it is given
        wait_for(tmp_path, "s.zarr.parts/*/random_walk/rows/*", 2)
        done = len(list(tmp_path.glob("s.zarr.parts/*/random_walk/rows/*")))
        assert done < PARTS, "the encoding was done before the worker was killed"
        os.kill(next(iter(workers.values())), signal.SIGKILL)
        if mode == "exact":
            wait_for(store, "tokens/b*", 3)
            assert not (store / "tokens" / "b00037").exists(), "the map was over before the workers were killed"
            for process in set(cluster.run(os.getpid, on_error="ignore").values()) | set(list(workers.values())[1:]):
                os.kill(process, signal.SIGKILL)
    assert job.returncode == 0
    assert tree(store) == plain[mode]
    assert [path.name for path in tmp_path.iterdir()] == ["s.zarr"]  # nothing is left beside it


@pytest.mark.usefixtures("s3")
def test_rows_and_blocks_of_an_object_store_come_from_workers(
    tmp_path: Path, plain: dict[str, dict[str, bytes]]
) -> None:
    """One worker holds rows of the encoding when it is killed: others compute them."""
    url = "s3://bucket/dask/s.zarr"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=50
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        worker, process = next(iter(client.run(os.getpid).items()))
        words = ("tokenize", *FLAGS, "--rwse-mode", "estimate", "--out", url, "--dask", client.scheduler.address)
        with start("gmn-prep", *words, cwd=tmp_path, stderr=subprocess.PIPE) as job:
            assert job.stderr is not None
            lines = iter(job.stderr)
            assert any(f"random walk: {PARTS} parts on 2 Dask workers" in line for line in lines)
            os.kill(process, signal.SIGSTOP)  # it keeps the parts that it is given
            while not client.processing().get(worker):
                time.sleep(0.01)
            os.kill(process, signal.SIGKILL)
            rest = list(lines)
        assert job.returncode == 0, rest
    assert run("gmn-prep", "copy", url, "s.zarr", "--quiet", cwd=tmp_path).returncode == 0
    assert tree(tmp_path / "s.zarr") == plain["estimate"]


def test_two_coordinators_at_once(tmp_path: Path, cluster: Any, plain: dict[str, dict[str, bytes]]) -> None:
    """As on hosts whose file system does not lock: the lock's file is taken away."""
    store = tmp_path / "s.zarr"
    with start_job(store, cluster, "exact") as first:
        wait_for(tmp_path, "s.zarr.lock")
        (tmp_path / "s.zarr.lock").unlink()
        with start_job(store, cluster, "exact") as second:
            pass
    assert [first.returncode, second.returncode] == [0, 0]
    assert tree(store) == plain["exact"]


def test_a_killed_coordinator_is_continued_by_the_plain_command(
    tmp_path: Path, cluster: Any, plain: dict[str, dict[str, bytes]]
) -> None:
    with start_job(tmp_path / "s.zarr", cluster, "estimate") as job:
        wait_for(tmp_path, "s.zarr/tokens/b*", 3)
        job.send_signal(signal.SIGKILL)
    make(tmp_path / "s.zarr", rwse_mode="estimate")
    assert tree(tmp_path / "s.zarr") == plain["estimate"]


def test_a_wrong_address_is_one_line(tmp_path: Path) -> None:
    for address, message in (
        ("127.0.0.1:9", "no Dask scheduler answers at '127.0.0.1:9'"),
        ("nonsense", "--dask is 'nonsense'; give the scheduler's address"),
    ):
        done = run("gmn-prep", "tokenize", *FLAGS, "--out", "s.zarr", "--dask", address, "--quiet", cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    code = "import sys; sys.modules['distributed'] = None; from gmn_prep.cli import main; main()"
    arguments = [str(a) for a in ("tokenize", *FLAGS, "--dask", "local", "--quiet")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install "gmn-pipeline[dask]"' in done.stderr


def test_a_script_without_a_guard_is_one_line(tmp_path: Path) -> None:
    """Every worker runs the script again, and must say nothing."""
    script = tmp_path / "script.py"
    script.write_text(
        "import gmn\nfrom gmn_pipeline.errors import ConfigError\n"
        "try:\n    gmn.tokenize('minesweeper-grid', nodes=400, path='s.zarr', dask='local', threads=2)\n"
        "except ConfigError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no workers could be started for --dask local (")
    assert 'if __name__ == "__main__":' in done.stdout
    assert done.stdout.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def pretend_version(version: str | None) -> None:
    """On a worker: have another version of gmn-pipeline installed."""
    from importlib.metadata import version as real

    from distributed import versions

    versions.version = lambda package: version if version and package == "gmn-pipeline" else real(package)
    versions._version_cached.cache_clear()


def test_other_versions_on_a_worker_are_told(tmp_path: Path, cluster: Any) -> None:
    worker = next(iter(cluster.scheduler_info(n_workers=-1)["workers"]))
    cluster.run(pretend_version, "0.0.9", workers=[worker])
    try:
        with pytest.raises(ConfigError, match=f"Dask worker {worker} has gmn-pipeline 0.0.9, this command has"):
            make(tmp_path / "s.zarr", dask=cluster.scheduler.address)
    finally:
        cluster.run(pretend_version, None, workers=[worker])


def test_a_cluster_without_workers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "WORKER_SECONDS", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        pytest.raises(ConfigError, match="no worker has joined the Dask scheduler"),
    ):
        make(tmp_path / "s.zarr", dask=empty.scheduler_address)


def test_a_store_that_is_being_written_is_told(tmp_path: Path, cluster: Any) -> None:
    lock = take_lock(tmp_path / "s.zarr")
    try:
        with pytest.raises(StoreBusyError, match="another process is writing"):
            make(tmp_path / "s.zarr", dask=cluster.scheduler.address)
    finally:
        release_lock(lock)


def write_nothing(reason: str) -> None:
    if reason == "disk":
        raise StoreError("cannot write tokens/b00000: no space left")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_cannot_go_on_is_told(cluster: Any) -> None:
    with pytest.raises(StoreError, match="a Dask worker could not go on: cannot write tokens/b00000: no space left"):
        _run(cluster, write_nothing, [(("disk",), 1)], Phases(), "walks")


@contextmanager
def scheduler(*options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A scheduler of its own, as a user starts it, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-show"]
    line += ["--dashboard-address", ":0", *options]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            wait_until_open(port)
            yield process, f"tcp://127.0.0.1:{port}"
        finally:
            process.kill()


def wait_until_open(port: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def worker_of(address: str) -> Iterator["subprocess.Popen[str]"]:
    line = [sys.executable, "-m", "dask", "worker", address, "--no-nanny", "--memory-limit", "0", "--no-dashboard"]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def greeter(greeting: bytes) -> Iterator[int]:
    """A server that greets everyone, as SSH does, or says nothing at all, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    callers.append(server.accept()[0])
                    callers[-1].sendall(greeting)

        callers: list[socket.socket] = []
        Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        for caller in callers:
            caller.close()
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def web_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("other", ["silent", "ssh", "web"])
def test_a_port_of_another_server_is_told_soon(tmp_path: Path, other: str) -> None:
    made = {"silent": lambda: greeter(b""), "ssh": lambda: greeter(b"SSH-2.0-OpenSSH_9.6\r\n"), "web": web_server}
    words = ("tokenize", *FLAGS, "--out", tmp_path / "s.zarr", "--quiet", "--dask")
    with made[other]() as port:
        address, begun = f"tcp://127.0.0.1:{port}", time.monotonic()
        with start("gmn-prep", *words, address, cwd=tmp_path, stderr=subprocess.PIPE) as job:
            try:
                job.wait(60)  # it used to wait for ever
            finally:
                job.send_signal(signal.SIGKILL)
            _, said = job.communicate()
    assert time.monotonic() - begun < 40  # ten seconds, on a busy machine
    assert job.returncode == 2
    assert f"no Dask scheduler answers at '{address}'" in said
    assert "--dask tcp://HOST:8786" in said
    assert said.count("\n") == 1


def test_the_address_of_a_worker_is_told(tmp_path: Path, cluster: Any) -> None:
    worker = next(iter(cluster.scheduler_info(n_workers=-1)["workers"]))
    with pytest.raises(ConfigError, match="a Dask worker is there, not the scheduler"):
        make(tmp_path / "s.zarr", dask=worker)


def test_waiting_for_workers_is_told_and_a_lost_scheduler_is_one_line(tmp_path: Path) -> None:
    """No worker at first, then one that is killed, then no scheduler."""
    words = ("tokenize", *FLAGS, "--out", tmp_path / "s.zarr", "--dask")
    with (
        scheduler() as (process, address),
        start("gmn-prep", *words, address, cwd=tmp_path, stderr=subprocess.PIPE) as job,
    ):
        assert job.stderr is not None
        lines = iter(job.stderr)
        assert next(lines) == f"the Dask scheduler at '{address}' has no workers; waiting 60 s for one to join\n"
        with worker_of(address) as worker:
            assert any("parts on 1 Dask workers" in line for line in lines)
            worker.kill()
        assert any("no Dask worker is left; waiting for workers" in line for line in lines)
        process.kill()
        rest = list(lines)
    assert job.returncode == 2
    assert len(rest) == 1, rest  # nothing of Dask's own
    assert rest[0].startswith("error: the Dask cluster could not go on")


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path, cluster: Any) -> None:
    with pytest.raises(StoreError, match=r"does not see .*; --out must be a folder that all workers see"):
        map_tokens(cluster, tmp_path / "elsewhere.zarr", "0", {0: 1}, Phases())
