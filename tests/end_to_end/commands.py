"""Runs the commands as a user does: processes of their own, real signals. `start` forks them from a server."""

import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


def command(name: str, *arguments: object) -> list[str]:
    """The installed program, for what depends on its start: what it imports, or where it is installed."""
    return [str(BIN / name), *map(str, arguments)]


@functools.cache
def _server() -> str:
    """The socket of a server that ends with this process."""
    folder = tempfile.mkdtemp(prefix="fork-server-")
    address = f"{folder}/socket"
    line = [sys.executable, "-m", "tests.end_to_end.fork_server", address]
    # As `main` sets it before torch is imported; a terminal's width, for what looks at it while it is imported.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "COLUMNS": "80"}
    server = subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment, start_new_session=True
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return address


class Command:
    """A running command; the part of `subprocess.Popen` that tests need."""

    def __init__(self, connection: socket.socket, stdout: IO[str] | None, stderr: IO[str] | None) -> None:
        self._connection, self.stdout, self.stderr = connection, stdout, stderr
        self.pid = int.from_bytes(connection.recv(8), "little")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._connection.settimeout(timeout)
        return self._receive()

    def _receive(self) -> int:
        if self.returncode is None:
            self.returncode = int.from_bytes(self._connection.recv(8), "little", signed=True)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self) -> tuple[str, str]:
        """What it prints until it ends. Not for much of both: its stdout is read first."""
        out, err = (stream.read() if stream else "" for stream in (self.stdout, self.stderr))
        self.wait()
        return out, err

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self._connection.close()


def start(
    name: str, *arguments: object, cwd: Path, stdout: Any = None, stderr: Any = None, **environment: str
) -> Command:
    """A command that runs beside the test, or a function named "module:function" with its arguments in `sys.argv`.

    stdout, stderr: an open file, `subprocess.PIPE`, or as the test's own.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(_server())
    request = {
        "name": name, "arguments": list(map(str, arguments)), "cwd": str(cwd),
        "environment": {**os.environ, "COLUMNS": "80", **environment},
    }  # fmt: skip
    readers: list[IO[str] | None] = []
    with open(os.devnull) as nothing:  # noqa: PTH123
        theirs, ours = [nothing.fileno()], []
        for stream, number in ((stdout, 1), (stderr, 2)):
            if stream == subprocess.PIPE:
                reading, writing = os.pipe()
                readers.append(os.fdopen(reading))
                ours.append(writing)
                theirs.append(writing)
            else:
                readers.append(None)
                theirs.append(number if stream is None else stream.fileno())
        socket.send_fds(connection, [json.dumps(request).encode()], theirs)
        for writing in ours:
            os.close(writing)
    return Command(connection, *readers)


def run(name: str, *arguments: object, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A command from its start to its end."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with start(name, *arguments, cwd=cwd, stdout=out, stderr=err, **environment) as process:
            code = process.wait()
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess([name, *map(str, arguments)], code, out.read(), err.read())


def tree(path: Path) -> dict[str, bytes]:
    """Every file below `path` with its bytes."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
