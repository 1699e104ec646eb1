"""Standard streams that are closed, full, or whose reader has gone: `| head`, `>&-`, `> /dev/full`."""

import os
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

READER_GONE = 141
"""Exit code of a program whose reader has gone, as the shell counts it."""


def open_missing_streams() -> None:
    """Give a process that was started without stdin, stdout or stderr empty ones, so that no file takes their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for the whole process
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def tell(message: str) -> None:
    """One line to stderr, if it takes one."""
    with suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)


def tell_once(message: str) -> None:
    """As `tell`, but processes that torchrun started together on this machine say the same line only once.

    torchrun names a file for errors in a folder per process; the folder above them is common to an attempt.
    """
    if file := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        try:
            (Path(file).parents[1] / f"said-{sha256(message.encode()).hexdigest()[:16]}").touch(exist_ok=False)
        except FileExistsError:
            return
        except OSError:  # the folder is gone: better twice than never
            pass
    tell(message)


def stdout_error(*, after_failure: bool = False) -> OSError | None:
    """Why what was printed cannot be written; None where it can. From then on stdout is empty.

    after_failure: something failed, perhaps this. A failed write may have emptied the buffer, so a line end is tried.
    """
    try:
        if after_failure:
            print()
        sys.stdout.flush()
    except OSError as error:
        silence_stdout()
        return error
    return None


def silence_stdout() -> None:
    """What is still to be printed goes nowhere, and the interpreter's last flush does not fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
