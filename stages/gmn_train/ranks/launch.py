"""`--procs N`: starts the command N times on this machine and waits. If one process fails, all end, with one line."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.console.streams import tell
from gmn_pipeline.errors import TrainError
from gmn_train.ranks.environment import LAUNCHED

PEER_LOST = 3
"""Exit code of a process that ends because another has."""
LOOK_SECONDS, GRACE_SECONDS = 0.05, 10.0


def launch_processes(count: int, arguments: Sequence[str] | None = None) -> int:
    """Run `gmn-train ARGUMENTS` (this command's own by default) as `count` processes; returns their exit code.

    Raises TrainError where one of them was killed, or where the machine has no room for so many.
    """
    most = max(8, 4 * usable_cores())
    if count > most:
        raise TrainError(f"procs is {count:,}; on {usable_cores()} cores at most {most} are allowed")
    words = sys.argv[1:] if arguments is None else arguments
    with tempfile.TemporaryDirectory(prefix="gmn-procs-") as folder:
        processes = [_start(rank, count, words, Path(folder)) for rank in range(count)]

        def pass_on(number: int, _frame: FrameType | None) -> None:
            for process in processes:
                if process.poll() is None:
                    process.send_signal(number)

        before = signal.signal(signal.SIGTERM, pass_on)
        try:
            failed = _wait(processes)
        except KeyboardInterrupt:  # a terminal's Ctrl-C went to every process
            _end(processes, signal.SIGINT)
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
            _end(processes, signal.SIGKILL)
        if failed is None:
            return 0
        code, text = processes[failed].returncode, (Path(folder) / f"{failed}.err").read_text(errors="replace").strip()
    if code < 0:
        raise TrainError(
            f"process {failed} of {count} was ended by {signal.Signals(-code).name}; the last checkpoint is kept: run "
            "the same command again to continue from it, with any number of processes"
        )
    if processes[0].returncode != code and text:  # else the first process has said the same
        tell(text if "Traceback" in text else text.splitlines()[-1])
    return code


def _start(rank: int, count: int, words: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Rank 0 speaks and writes; what the others say is kept."""
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        LAUNCHED: str(folder / "meeting"),
        "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0"),
    }
    command = [sys.executable, "-m", "gmn_train", *words]
    with (folder / f"{rank}.err").open("wb") as file:
        if rank == 0:
            return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=file)


def _wait(processes: "list[subprocess.Popen[bytes]]") -> int | None:
    """The first process that failed by itself, when one has; None when all are done."""
    while True:
        codes = [process.poll() for process in processes]
        if all(code == 0 for code in codes):
            return None
        if any(code for code in codes):
            time.sleep(LOOK_SECONDS)  # who caused it may end a little after those who noticed
            codes = [process.poll() for process in processes]
            own = [rank for rank, code in enumerate(codes) if code and code != PEER_LOST]
            killed = [rank for rank in own if (codes[rank] or 0) < 0]
            if own and not killed:  # a mistake that all make, or all were asked to end
                _finish(processes)
            if own or all(code is not None for code in codes):
                return killed[0] if killed else own[0] if own else 0
        time.sleep(LOOK_SECONDS)


def _finish(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Wait a while for all to end by themselves."""
    until = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < until and any(process.poll() is None for process in processes):
        time.sleep(LOOK_SECONDS)


def _end(processes: "list[subprocess.Popen[bytes]]", number: signal.Signals) -> None:
    if number == signal.SIGINT:
        _finish(processes)
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)
    for process in processes:
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
