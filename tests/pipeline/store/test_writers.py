"""Writing: killed at any moment, with a full disk, or by two at once, a store is resumable or absent, never wrong."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gmn_pipeline import StoreWriter, TokenSettings, TokenStore
from gmn_pipeline.errors import StoreBusyError, StoreClashError, StoreError
from gmn_pipeline.store.writing.writer import plan_manifest
from tests.end_to_end.commands import Command, start, tree
from tests.stores import ring_graph, write_store


def start_writer(path: Path, *limit: int) -> Command:
    return start("tests.pipeline.store.processes:write", path, *limit, cwd=path.parent, stderr=subprocess.PIPE)


def finish_writer(path: Path) -> int:
    with start_writer(path) as writer:
        writer.communicate()
    return writer.wait()


def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    wanted = tree(write_store(tmp_path / "w.zarr", ring_graph(400, 300), TokenSettings(4, 3, 2), block_size=10).path)
    path, chance, kills = tmp_path / "k.zarr", random.Random(0), 0
    while True:
        with start_writer(path) as writer:
            while not path.exists() and writer.poll() is None:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.35))
            writer.send_signal(signal.SIGKILL)
            _, stderr = writer.communicate()
        if writer.returncode == 0:
            break
        assert writer.returncode == -signal.SIGKILL, stderr
        kills += 1
        try:
            TokenStore.open(path)
        except StoreError:
            pass  # as almost always; a kill after the manifest's last byte finds a whole store
        else:
            break
        if kills >= 8:
            assert finish_writer(path) == 0
            break
    assert kills >= 3
    assert finish_writer(path) == 0  # nothing left to do, but for what a late kill left beside it
    assert tree(path) == wanted
    assert not (tmp_path / "k.zarr.lock").exists()


def test_a_second_writer_is_told_or_waits(tmp_path: Path) -> None:
    graph, path = ring_graph(), tmp_path / "s.zarr"
    manifest = plan_manifest(graph, TokenSettings(1, 1, 1), block_size=8)
    first = StoreWriter.open(path, manifest, graph)
    with pytest.raises(StoreBusyError, match="another process is writing"):
        StoreWriter.open(path, manifest, graph)
    waited = []
    with pytest.raises(StoreBusyError):
        StoreWriter.open(path, manifest, graph, wait=0.3, on_wait=lambda: waited.append(True))
    assert waited
    first.close()
    StoreWriter.open(path, manifest, graph).close()


def test_two_processes_at_once_make_one_good_store(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    with start_writer(path) as one, start_writer(path) as other:
        errors = [one.communicate()[1], other.communicate()[1]]
    codes = [one.returncode, other.returncode]
    assert 0 in codes
    for code, error in zip(codes, errors, strict=True):
        assert code == 0 or "another process is writing" in error
    TokenStore.open(path).verify()


def test_other_content_is_never_overwritten_without_force(tmp_path: Path) -> None:
    graph, path = ring_graph(), tmp_path / "s.zarr"
    write_store(path, graph, TokenSettings(2, 1, 1))
    before = tree(path)
    other = plan_manifest(graph, TokenSettings(3, 1, 1), block_size=8)
    with pytest.raises(StoreClashError, match="--force"):
        StoreWriter.open(path, other, graph)
    assert tree(path) == before
    with StoreWriter.open(path, other, graph, force=True) as writer:
        assert writer.missing_blocks() == list(range(5))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("years of work")
    for force in (False, True):
        with pytest.raises(StoreClashError, match="not a token store"):
            StoreWriter.open(tmp_path / "notes", other, graph, force=force)
    assert (tmp_path / "notes" / "thesis.txt").exists()


def test_a_finished_store_is_left_as_it_is(tmp_path: Path) -> None:
    graph, path = ring_graph(), tmp_path / "s.zarr"
    write_store(path, graph, TokenSettings(2, 1, 1), block_size=16)
    before = tree(path)
    with StoreWriter.open(
        path, plan_manifest(graph, TokenSettings(2, 1, 1), block_size=16, orderings={"degree": {"seed": 0}}), graph
    ) as writer:
        assert writer.is_complete
        writer.finalise()
    assert tree(path) == before


@pytest.mark.parametrize(("size", "missing"), [(8, "and 4 more are missing; run the parts"), (99, "is missing; run")])
def test_finalise_refuses_an_incomplete_store(tmp_path: Path, size: int, missing: str) -> None:
    graph = ring_graph()
    with (
        StoreWriter.open(
            tmp_path / "s.zarr", plan_manifest(graph, TokenSettings(1, 1, 1), block_size=size), graph
        ) as writer,
        pytest.raises(StoreError, match=f"tokens/b00000 {missing}"),
    ):
        writer.finalise()


@pytest.mark.parametrize("limit", [400, 2_000, 4_500])
def test_a_disk_that_takes_no_more(tmp_path: Path, limit: int) -> None:
    """A limit on file size makes real writes fail in the middle, as a full disk does; afterwards the run resumes."""
    path = tmp_path / "s.zarr"
    with start_writer(path, limit) as failed:
        _, stderr = failed.communicate()
    assert failed.returncode == 1
    assert "StoreError: cannot write" in stderr
    with pytest.raises(StoreError):
        TokenStore.open(path)
    assert finish_writer(path) == 0
    TokenStore.open(path).verify()


def test_an_unwritable_place(tmp_path: Path) -> None:
    graph = ring_graph()
    manifest = plan_manifest(graph, TokenSettings(1, 1, 1), block_size=8)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", Path("/proc")):  # in the second no file can be made, not even a lock
        with pytest.raises(StoreError, match="cannot write beside"):
            StoreWriter.open(folder / "s.zarr", manifest, graph)
