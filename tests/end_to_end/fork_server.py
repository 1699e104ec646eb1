"""Commands forked from a process that has imported everything, has loaded compiled kernels and computed nothing.

Such a command is a real process, with threads, signals, streams and an exit code of its own, but it does not spend
five seconds of a core on importing torch and reading kernels. `python -m tests.end_to_end.fork_server SOCKET` ends
with its stdin; the client is `commands.start`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

STREAMS = 3
PROGRAMS = {"gmn-prep": "gmn_prep.cli:main", "gmn-train": "gmn_train.cli:main"}
IMPORTED = (
    "gmn_prep.cli",
    "gmn_prep.tokenize",
    "gmn_train.cli",
    "gmn_train.runs.start",
    "gmn_train.runs.watching.outcome",
    "gmn_train.settings.request",
    "pydantic.dataclasses",
    "safetensors.torch",
    "tensorboard.compat.proto.event_pb2",
    "tomli_w",
    "zarr",
)
"""What takes long."""


def _serve(listener: socket.socket) -> dict[str, Any] | None:
    """In a forked process, the request it is for, with the streams in their places; None when the server shall end."""
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if sys.stdin in ready:
            return None
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        listener.close()
        text, streams, _, _ = socket.recv_fds(connection, 1 << 20, STREAMS)
        child = os.fork()
        if child == 0:
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.setsid()  # so that a signal can be sent to all that it starts
            return json.loads(text)
        for stream in streams:
            os.close(stream)
        connection.sendall(child.to_bytes(8, "little"))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(code.to_bytes(8, "little", signed=True))
        os._exit(0)


def _load_kernels() -> None:
    """Those that are compiled already, with every type that their files hold; none is compiled here."""
    from numba.core.dispatcher import Dispatcher

    for name in ("gmn_pipeline", "gmn_prep", "gmn_train"):
        (folder,) = map(Path, importlib.import_module(name).__path__)
        for file in folder.rglob("*.py"):
            if "njit" not in file.read_text():
                continue
            module = importlib.import_module(".".join([name, *file.relative_to(folder).with_suffix("").parts]))
            for kernel in vars(module).values():
                if isinstance(kernel, Dispatcher) and kernel._cache.cache_path is not None:
                    for signature, *_ in kernel._cache._cache_file._load_index():
                        kernel.compile(signature)


def _main() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    _load_kernels()
    gc.freeze()  # collecting, or taking modules apart at the end, would copy all of this process's memory: 1.4 s

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        print("ready", flush=True)
        request = _serve(listener)
    if request is None:
        return
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [request["name"], *request["arguments"]]
    code: Any = 0
    module, _, function = PROGRAMS.get(request["name"], request["name"]).partition(":")
    try:
        getattr(importlib.import_module(module), function)()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    _main()
