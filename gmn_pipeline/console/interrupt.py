"""Ctrl-C that is not lost. Inside a compiler's callback Python drops the exception; here it is remembered besides."""

import signal
import threading
from types import FrameType

_asked = threading.Event()


def remember_interrupts() -> None:
    """From now on, Ctrl-C raises KeyboardInterrupt and is remembered. Only where Python's own handler stands."""
    _asked.clear()
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _remember)


def forget_interrupts() -> None:
    """Put Python's handler back."""
    _asked.clear()
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _remember:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed, even if the exception was dropped or became another one."""
    return _asked.is_set()


def raise_if_interrupted() -> None:
    """KeyboardInterrupt where one was dropped. Long work calls this between its steps."""
    if was_interrupted():
        raise KeyboardInterrupt


def _remember(_number: int, _frame: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt
