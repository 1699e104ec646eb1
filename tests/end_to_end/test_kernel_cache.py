"""The cache of compiled kernels: an installation that cannot be written, and a cache that is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from tests.stores import ring_graph, write_store

ROOT = Path(__file__).parents[2]
COMMAND = "import sys; sys.path[:0] = {paths}; from gmn_prep.cli import main; main()"
KERNEL = (
    "import sys; sys.path[:0] = {paths}; from gmn_pipeline.counter_random import child_keys as c; print(c(1, 1).size)"
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The packages where nothing can be written beside them, for root neither: a file has the name of the folder."""
    root = tmp_path_factory.mktemp("installed")
    for package in ("gmn_pipeline", "stages/gmn_prep"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [p for p in root.rglob("*") if p.is_dir()]:
        (folder / "__pycache__").touch()
    return [str(root), str(root / "stages")]


def python(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    here = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    here |= {"HOME": os.devnull, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=here)


def test_a_home_that_only_seems_writable_is_not_used(tmp_path: Path, paths: list[str]) -> None:
    """Root may write in /proc by its permissions, and no file can be made there."""
    done = python(KERNEL.format(paths=paths), TMPDIR=str(tmp_path), HOME="/proc")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_an_installation_that_cannot_be_written(tmp_path: Path, paths: list[str]) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(1, 1, 1), orderings=()).path
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    done = python(COMMAND.format(paths=paths), "inspect", store, TMPDIR=str(scratch))
    assert (done.returncode, done.stderr) == (0, "")
    assert python(KERNEL.format(paths=paths), TMPDIR=str(scratch)).stdout == "1\n"
    (private,) = scratch.iterdir()
    assert private.stat().st_mode & 0o777 == 0o700
    assert list(private.rglob("*.nbi"))
    private.chmod(0o777)  # anyone may have put kernels there: not used
    done = python(COMMAND.format(paths=paths), "inspect", store, TMPDIR=str(scratch))
    assert done.returncode == 2
    assert done.stderr.startswith("error: compiled kernels have no place")
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in done.stderr


APP = """
import sys
sys.path.insert(0, {folder!r})
from gmn_pipeline.console.cli import make_app, run_app
app = make_app("test")
@app.command()
def work() -> None:
    from kernel import twice
    print(twice(4))
@app.command()
def rest() -> None:
    pass
run_app(app, ["work"])
"""


@pytest.mark.parametrize("garbage", [b"", b"nonsense"])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_broken_cache_is_told_in_one_line(tmp_path: Path, ending: str, garbage: bytes) -> None:
    (tmp_path / "kernel.py").write_text("from numba import njit\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n")
    script = APP.format(folder=str(tmp_path))
    assert python(script).stdout == "8\n"
    broken = next(tmp_path.rglob(f"*.{ending}"))
    broken.write_bytes(garbage)
    done = python(script)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: the compiled kernels in {broken.parent} cannot be used")
    broken.unlink()
    assert python(script).stdout == "8\n"


TYPES = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import gmn_pipeline.graph.edges
from kernel import total
print(total(np.arange(5).astype(sys.argv[2])))
"""


def test_code_for_other_types_is_compiled_again(tmp_path: Path) -> None:
    """As two processes leave it that compile one kernel for two types at once: both take the name of the first file."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.py").write_text(
            "from numba import njit\n@njit(cache=True)\ndef total(x):\n    return x.sum()\n"
        )
    for name, dtype in (("a", "int32"), ("b", "uint8")):
        assert python(TYPES, tmp_path / name, dtype).stdout == "10\n"
    code = next((tmp_path / "b").rglob("*.1.nbc"))
    shutil.copy(code, tmp_path / "a" / "__pycache__" / code.name)
    done = python(TYPES, tmp_path / "a", "int32")
    assert (done.stdout, done.stderr) == ("10\n", "")
