"""What this process has of the machine: cores and memory."""

import os
import resource
import sys
from pathlib import Path

MOST_THREADS = 1024
"""Of one process; far more end it in the middle of its work."""


def usable_cores() -> int:
    """Cores this process may run on, which in a container can be fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_memory() -> int:
    """The most bytes this process has had resident so far.

    From /proc where there is one: the system's own count starts, in a process that a large one has started, at the size
    of that one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
