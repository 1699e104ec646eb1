"""Runs commands in forked children: imports and kernels are loaded once, each case has its own limits.

The parent has run every command before (`warm_up`), so a child begins at once; it costs some hundredths of a second.
"""

import faulthandler
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

CPU_SECONDS = 10
WALL_SECONDS = 600
"""The machine may be busy with other things, so this is long."""
IDLE_SECONDS = 10
"""A hang costs no CPU: seconds on end in which no thread of a command ran or waited for a processor."""
SPARE_ADDRESSES = 4 << 30
show = False
"""Whether to print what every command prints."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Its exit code, or minus the signal that ended it."""
    out: str
    err: str
    peak: int
    """The most bytes that were resident."""


def run(program: str, arguments: Sequence[object], cwd: Path, before: Callable[[], None] | None = None) -> Ended:
    """Run `gmn-prep` or `gmn-train` to its end. before: called in the child, first."""
    with tempfile.TemporaryDirectory() as streams:
        pid = start(program, arguments, cwd, before, streams=Path(streams))
        status, usage = _wait(pid)
        out, err = ((Path(streams) / name).read_text(errors="replace") for name in ("out", "err"))
    ended = Ended(os.waitstatus_to_exitcode(status), out, err, usage.ru_maxrss * 1024)
    if show:
        print(f"{program} {' '.join(map(repr, arguments))}\n{out}{err}exit code {ended.code}, {ended.peak >> 20} MB")
    return ended


def _wait(pid: int) -> tuple[int, resource.struct_rusage]:
    """(status, usage) of a process that has ended; one that hangs is ended by SIGALRM."""
    idle, pause, busy, then = 0.0, 0.001, 0.0, time.monotonic()
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, usage
        time.sleep(pause)
        pause = min(1.2 * pause, 0.05)
        now, busier = time.monotonic(), _busy_seconds(pid)
        idle = max(0.0, idle + now - then - max(busier - busy, 0.0))
        then, busy = now, busier
        if idle > IDLE_SECONDS:
            os.kill(pid, signal.SIGALRM)
            idle = 0.0


def _busy_seconds(pid: int) -> float:
    """Seconds that the threads of a process and of those that it started ran or waited for a processor.

    The clock where Linux does not tell, and while a thread waits for a disk, which may be slow without any fault of
    the command's.
    """
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        lines = [(task / "schedstat").read_text() for task in tasks]
        states = [(task / "stat").read_text().rpartition(") ")[2][0] for task in tasks]
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has just ended, or there is no such count
        return time.monotonic()
    own = sum(int(count) for line in lines for count in line.split()[:2]) / 1e9
    return time.monotonic() if "D" in states else own + sum(map(_busy_seconds, children))


def start(
    program: str,
    arguments: Sequence[object],
    cwd: Path,
    before: Callable[[], None] | None = None,
    *,
    streams: Path | None = None,
) -> int:
    """Start a command; returns its process id. Without a folder for its streams, what it prints is dropped."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the command itself begins
    pid = os.fork()
    if pid == 0:
        _be_child(program, [str(a) for a in arguments], cwd, before, streams)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return pid


def _be_child(
    program: str, arguments: list[str], cwd: Path, before: Callable[[], None] | None, streams: Path | None
) -> NoReturn:
    code = 70
    try:
        os.chdir(cwd)
        for number, name in enumerate(("in", "out", "err")):
            place = os.devnull if streams is None or name == "in" else str(streams / name)
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
            os.dup2(descriptor, number)
            os.close(descriptor)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + SPARE_ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGALRM, file=2, chain=True)  # a hang shows where every thread stands
        signal.alarm(WALL_SECONDS)
        if before is not None:
            before()
        if signal.SIGINT in signal.sigpending():
            os._exit(130)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        sys.argv = [program, *arguments]  # as `--procs` starts it again
        code = call(program, arguments)
        threading._shutdown()  # a thread that never ends is a hang, as at a real exit
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)


def call(program: str, arguments: list[str]) -> int:
    """Run a command in this process; its exit code. A traceback of its own counts as 1."""
    from gmn_pipeline.console.cli import run_app

    try:
        run_app(_apps()[program], arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _apps() -> dict[str, object]:
    from gmn_prep.cli import app as prep
    from gmn_train.cli import app as train

    return {"gmn-prep": prep, "gmn-train": train}


def kill_after(seconds: float, pid: int, how: signal.Signals = signal.SIGKILL) -> int:
    """A signal once a process took that much CPU time, busy as the machine may be; its exit code (-9, or its own)."""
    clock, end = ~pid << 3 | 2, time.monotonic() + WALL_SECONDS  # Linux's number of the CPU clock of a process
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.clock_gettime(clock) > seconds:
            break
        time.sleep(0.001)
    os.kill(pid, how)
    return os.waitstatus_to_exitcode(_wait(pid)[0])


def die_at_event(number: int, folder: Path) -> Callable[[], None]:
    """For `before`: SIGKILL just before the file event `number` (from 0) below `folder`, whatever thread makes it."""
    left = iter(range(number))

    def look() -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    return _at_events(look, folder)


def count_events(program: str, arguments: Sequence[object], folder: Path) -> int:
    """How many file events below `folder` a command makes."""
    with tempfile.TemporaryFile() as counted:
        ended = run(program, arguments, folder, _at_events(lambda: os.write(counted.fileno(), b"."), folder))
        assert ended.code == 0, ended
        return os.fstat(counted.fileno()).st_size


def _at_events(look: Callable[[], object], folder: Path) -> Callable[[], None]:
    events = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.scandir", "os.listdir"}

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in events or isinstance(arguments[0], int):
            return
        path = Path(os.fsdecode(arguments[0]))
        if not path.is_absolute() or path.is_relative_to(folder):  # commands run in the folder
            look()

    return lambda: sys.addaudithook(hook)


def explain(ended: Ended, honest_peak: int, codes: Sequence[int] = (0, 2)) -> str | None:
    """What is wrong with how a command ended; None if it did its work or refused in one clear line."""
    text = ended.err + ended.out
    if ended.code == -signal.SIGXCPU:
        return f"took more than {CPU_SECONDS} s of CPU"
    if ended.code == -signal.SIGALRM:
        frames = re.findall(r'^  File ".*/(.+)", line (\d+) in (\w+)', text, re.M)
        return "hangs in " + ", ".join(f"{file} line {line} {name}" for file, line, name in frames[:12])
    if ended.code < 0:
        return f"ended by {signal.Signals(-ended.code).name}"
    if "Traceback (most recent call last)" in text:
        frames = re.findall(r'^  File ".*/(.+)", line (\d+)', text, re.M)
        return f"traceback: {text.strip().splitlines()[-1][:150]} ({' line '.join(frames[-1]) if frames else ''})"
    if ended.code not in codes:
        return f"exit code {ended.code}: {text.strip()[-150:]}"
    errors = sum(line.startswith(("error: ", "Error: ")) for line in ended.err.splitlines())
    if ended.code == 2 and errors != 1:
        return f"exit code 2 with {errors} error lines"
    if ended.peak > 2 * honest_peak:
        return f"took {ended.peak >> 20} MB; an honest one takes {honest_peak >> 20}"
    return None


def left_behind(folder: Path) -> str | None:
    """A work file that no command may leave when it has ended by itself."""
    for path in folder.rglob("*"):
        if path.name == ".wip" or path.name.endswith((".lock", ".part", ".next")):
            return f"left {path.relative_to(folder)} behind"
    return None
