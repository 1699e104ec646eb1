"""Keeps mapped files from filling memory: pages are given back to the system whenever a process holds too many.

The system would do so by itself when memory runs out, but only then, and a job with a memory limit may be ended first.
"""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

EVERY_SECONDS = 0.005


@contextmanager
def bounded_pages(folder: Path, most: int) -> Iterator[None]:
    """While the block runs, give back the pages of files below `folder` whenever more than `most` bytes are held.

    They are read again when touched. Best effort: a fast pass over a file may hold more until the watching thread gets
    its turn. Linux only; elsewhere nothing is done.
    """
    if not hasattr(mmap, "MADV_DONTNEED") or not Path("/proc/self/maps").exists():
        yield
        return
    done, inside = Event(), f"{folder.absolute()}{os.sep}"
    watcher = Thread(target=_watch, args=(done, inside, most), name="resident-pages", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(done: Event, inside: str, most: int) -> None:
    others = 0  # pages of libraries, which stay: without them every look would find too many
    while not done.wait(EVERY_SECONDS):
        if _resident_file_bytes() > others + most:
            _release(inside)
            others = _resident_file_bytes()


def _release(inside: str) -> None:
    """Give back every page of a file below the folder. Those are shared mappings: what was written stays."""
    advise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith(inside) and fields[1].endswith("s"):
            first, end = (int(border, 16) for border in fields[0].split("-"))
            advise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), mmap.MADV_DONTNEED)


def _resident_file_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
