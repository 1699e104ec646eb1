"""Waiting for another thread or process: until a deadline, so that a test that is broken fails and does not hang."""

import time
from collections.abc import Callable


def wait_until(is_so: Callable[[], object], seconds: float = 120) -> None:
    """Return as soon as it is so. Two minutes, because a machine may be busy."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"still not so after {seconds:g} s"
        time.sleep(0.005)
