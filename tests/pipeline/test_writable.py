"""Places that cannot be written are told before any work, in the system's words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gmn_pipeline.disk.atomic_file import write_text
from gmn_pipeline.disk.writable import check_output, why_not_writable
from gmn_pipeline.errors import WriteError
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.refusals import check_writable

AS_NOBODY = """
import os, sys
from pathlib import Path
from gmn_pipeline.disk.writable import why_not_writable
if os.getuid() == 0:
    os.setuid(65534)  # root may write anywhere
print(*(why_not_writable(Path(place)) for place in sys.argv[1:]), sep="\\n")
"""


def test_a_place_below_a_folder_that_can_be_written(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path / "x.csv") is None
    assert why_not_writable(tmp_path / "no" / "such" / "folder" / "x.csv") is None
    check_output(tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert why_not_writable(tmp_path / "file" / "x" / "y.csv") == "Not a directory"
    with pytest.raises(WriteError, match=r"cannot write .*/file/y\.csv: Not a directory; choose another place"):
        write_text(tmp_path / "file" / "y.csv", "")


def test_a_folder_without_the_right_to_write(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("read")
    folder.chmod(0o555)
    places = [folder / "x.zarr", folder / "new" / "x.zarr", Path("/dev/shm/x.zarr")]
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *map(str, places)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["Permission denied", "Permission denied", "None"]


def test_a_run_says_what_to_do(tmp_path: Path) -> None:
    """A run that is there has a checkpoint to go on from; a new one has not."""
    folder = RunFolder(tmp_path / "run")
    with (
        pytest.raises(Exception, match=r"run: Permission denied; allow it, or choose another --run-dir"),
        folder.writing(),
    ):
        raise PermissionError(13, os.strerror(13))
    with pytest.raises(Exception, match=r"run: No space left on device; make room, or"), folder.writing():
        raise OSError(28, os.strerror(28))
    folder.path.mkdir()
    (folder.path / "config.toml").write_text("")
    with (
        pytest.raises(Exception, match=r"checkpoint is kept; make room, then continue with gmn-train resume"),
        folder.writing(),
    ):
        raise OSError(28, os.strerror(28))


def test_a_new_run_needs_a_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match=r"file/run: Not a directory; choose another --run-dir"):
        check_writable(tmp_path / "file" / "run")
    check_writable(tmp_path / "run")
