"""Whether something can be written at a place, asked before the work is done that would go there."""

import errno
import os
from pathlib import Path

from gmn_pipeline.errors import WriteError


def why_not_writable(path: Path) -> str | None:
    """Why nothing new can be made at a path, as the system says it; None where it can, as far as one can know."""
    place = next(folder for folder in path.absolute().parents if os.access(folder, os.F_OK))
    if not place.is_dir():
        return os.strerror(errno.ENOTDIR)
    if os.access(place, os.W_OK | os.X_OK):
        return None
    return os.strerror(errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES)


def check_output(path: Path) -> None:
    """WriteError where a file that the user asked for cannot be written."""
    reason = why_not_writable(path)
    if reason is not None:
        raise WriteError(f"cannot write {path}: {reason}; choose another place")
