"""Where compiled kernels are kept, and what is said when that place is broken.

Numba keeps them beside the sources or in the user's cache folder, and refuses to work where neither can be written: an
installation that is read-only, for a user without a home. A private folder of temporary files serves there.
"""

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

SETTING = "NUMBA_CACHE_DIR"


def choose_cache_folder() -> None:
    """Point Numba to a folder of temporary files if it has no other; call before Numba is imported."""
    if os.environ.get(SETTING) or _can_write(Path(__file__).parent / "__pycache__"):
        return
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if _can_write(Path(home).expanduser() / "numba"):
        return
    user = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"gmn-pipeline-kernels-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return
    # What lies in the cache is run: a folder that another user could have filled is not used.
    if stat.S_ISDIR(facts.st_mode) and facts.st_uid == user and not facts.st_mode & 0o022:
        os.environ[SETTING] = str(folder)


def _can_write(folder: Path) -> bool:
    """Whether a folder is there and can be written to, or could be made.

    By a file that is made and gone: the permissions alone say yes to root on /proc or on another machine's disk.
    """
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def check_loaded_kernels() -> None:
    """Have Numba compile a kernel again whose cached code is for arguments of other types.

    Two processes that compile the same kernel for different types at once may take the same file name: the code of one
    is then found under the types of the other, and calling it ends in a TypeError. Seen in Numba 0.68's `caching.py`.
    """
    from numba.core.caching import FunctionCache
    from numba.core.sigutils import normalize_signature

    load = FunctionCache.load_overload
    if getattr(load, "is_checked", False):
        return

    def load_checked(self: Any, signature: Any, context: Any) -> Any:
        overload = load(self, signature, context)
        if overload is not None and tuple(overload.signature.args) != tuple(normalize_signature(signature)[0]):
            return None
        return overload

    load_checked.is_checked = True  # type: ignore[attr-defined]
    FunctionCache.load_overload = load_checked


def explain_cache_fault(error: BaseException) -> str | None:
    """One line for an error that comes from Numba's cache; None for others."""
    trace = (error.__cause__ or error).__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.replace("\\", "/").endswith("numba/core/caching.py"):
            place = getattr(trace.tb_frame.f_locals.get("self"), "_cache_path", None)
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            if place is None:
                return f"compiled kernels have no place ({reason}); set {SETTING} to a folder that can be written"
            return f"the compiled kernels in {place} cannot be used ({reason}); delete the files *.nbi and *.nbc there"
        trace = trace.tb_next
    return None
