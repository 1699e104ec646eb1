"""Ctrl-C that is not lost. Inside a compiler's callback Python drops the exception; here it is remembered besides."""

import signal
import sys
import threading
from types import FrameType

_asked = threading.Event()
_held = 0
"""Compilations under way on the main thread."""
_say_dropped = sys.unraisablehook
"""What prints exceptions that Python drops."""


def remember_interrupts() -> None:
    """From now on, Ctrl-C raises KeyboardInterrupt and is remembered. Only where Python's own handler stands."""
    global _held, _say_dropped
    _held = 0
    _asked.clear()
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _remember)
        _say_dropped = sys.unraisablehook
        sys.unraisablehook = _say_unless_remembered


def forget_interrupts() -> None:
    """Put Python's handler back."""
    _asked.clear()
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _remember:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _say_dropped


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed, even if the exception was dropped or became another one."""
    return _asked.is_set()


def raise_if_interrupted() -> None:
    """KeyboardInterrupt where one was dropped. Long work calls this between its steps."""
    if was_interrupted():
        raise KeyboardInterrupt


def hold_interrupts() -> None:
    """From now on the first Ctrl-C is only remembered. A compiler that is left in the middle may free memory twice:
    one of 19 such runs ended with a segmentation fault."""
    global _held
    _held += threading.current_thread() is threading.main_thread()


def release_interrupts() -> None:
    """Undo one `hold_interrupts`, and raise what was held back."""
    global _held
    if threading.current_thread() is threading.main_thread():
        _held = max(0, _held - 1)  # a start that raises has an end, too
        if not _held:
            raise_if_interrupted()


def _remember(_number: int, _frame: FrameType | None) -> None:
    again = was_interrupted()
    _asked.set()
    if again or not _held:
        raise KeyboardInterrupt


def _say_unless_remembered(dropped: "sys.UnraisableHookArgs") -> None:
    """Python prints what it drops, such as a Ctrl-C inside a destructor; this one is not lost, so nothing is said."""
    if not (isinstance(dropped.exc_value, KeyboardInterrupt) and was_interrupted()):
        _say_dropped(dropped)
