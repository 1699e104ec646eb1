"""Tiny raw files read as the real ones are, their cache, and what happens without files, network or permission."""

import contextlib
import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset
from gmn_prep.datasets.public import public_dataset
from gmn_prep.datasets.public.raw import raw_files
from gmn_prep.datasets.public.raw.graph_cache import read_cache, write_cache
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader, unreachable
from tests.prep.datasets.public.raw_folders import assert_same, files_below, read_only
from tests.prep.datasets.public.raw_samples import (
    EDGES,
    arxiv_features,
    minesweeper_arrays,
    minesweeper_graph,
    write_arxiv,
    write_minesweeper,
)


def load(name, root, **options):
    return load_dataset(name, DatasetOptions(data_root=root, **options)).graph


def test_minesweeper_from_its_file_and_from_the_cache(root, capfd):
    write_minesweeper(root)
    first = load("minesweeper", root).check()
    assert_same(first, minesweeper_graph())
    assert capfd.readouterr() == ("", "")
    names = {name.split("/")[2] for name in files_below(root)}
    assert names == {"raw", "gmn-graph-v1"}  # no processed/ beside
    again = load("minesweeper", root)
    assert_same(again, first)
    assert isinstance(again.indices.base, np.memmap)


def test_the_cache_is_read_without_torch(root):
    write_minesweeper(root)
    load("minesweeper", root)
    script = (
        "import sys; from pathlib import Path; from gmn_prep.datasets import *;"
        "print(load_dataset('minesweeper', DatasetOptions(data_root=Path(sys.argv[1]))).graph.num_nodes,"
        "[m for m in ('torch', 'torch_geometric', 'numba', 'scipy') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", script, str(root)], text=True) == "12 []\n"


def test_changed_raw_files_and_a_broken_cache_are_noticed(root):
    write_minesweeper(root)
    options = DatasetOptions(data_root=root)
    before = dataset_identity("minesweeper", options)
    load("minesweeper", root)
    write_minesweeper(root, seed=1)
    assert dataset_identity("minesweeper", options) != before
    assert_same(load("minesweeper", root), minesweeper_graph(seed=1))
    cache = root / "heterophilous/minesweeper/gmn-graph-v1"
    for harm in (
        lambda: (cache / "x.npy").unlink(),
        lambda: (cache / "indices.npy").write_bytes(b""),
        lambda: np.save(cache / "indices.npy", np.full(22, 99, dtype=np.int32)),
        lambda: np.save(cache / "y.npy", np.zeros(3, dtype=np.int64)),
        lambda: (cache / "graph.json").write_text("{"),
        lambda: (cache / "graph.json").write_text("{}"),
    ):
        harm()
        assert_same(load("minesweeper", root), minesweeper_graph(seed=1))


def test_every_flipped_bit_of_the_cache_is_noticed(root):
    write_minesweeper(root)
    load("minesweeper", root)
    cache = root / "heterophilous/minesweeper/gmn-graph-v1"
    digest = json.loads((cache / "graph.json").read_text())["digest"]
    assert read_cache(cache, digest) is not None
    for path in cache.iterdir():
        content = path.read_bytes()
        for place in range(0, len(content), 7 if path.suffix == ".npy" else 1):
            path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            found = read_cache(cache, digest)
            if found is not None:  # the spaces that pad a header may be any
                assert_same(found, minesweeper_graph())
        path.write_bytes(content)


def test_pointers_that_wrap_around_are_noticed_in_the_cache(root):
    write_minesweeper(root)
    graph = load("minesweeper", root)
    cache = root / "heterophilous/minesweeper/gmn-graph-v1"
    digest = json.loads((cache / "graph.json").read_text())["digest"]
    pointer = np.array(graph.indptr)
    pointer[1:-1] = [2**62, -(2**62), *pointer[3:-1]]

    class Forged:
        task, directed, x_categories, edge_categories = graph.task, False, None, None

        def arrays(self):
            return {**graph.arrays(), "indptr": pointer}

    assert write_cache(cache, digest, Forged())
    assert read_cache(cache, digest) is None


def test_read_only_root_is_left_alone_and_cached_elsewhere(root, own_cache):
    write_minesweeper(root)
    before = files_below(root)
    with read_only(root):
        first = load("minesweeper", root)
        again = load("minesweeper", root)
    assert files_below(root) == before
    assert_same(first, minesweeper_graph())
    assert_same(again, first)
    assert isinstance(again.indices.base, np.memmap)
    assert any(name.endswith("gmn-graph-v1/graph.json") for name in files_below(own_cache))


def test_nowhere_to_cache_is_no_obstacle(root, own_cache):
    write_minesweeper(root)
    own_cache.mkdir(parents=True)
    with read_only(root), read_only(own_cache):
        assert_same(load("minesweeper", root), minesweeper_graph())
    assert files_below(own_cache) == []


@pytest.mark.parametrize("directed", [False, True])
def test_arxiv_through_ogb(root, directed, capfd):
    write_arxiv(root)  # without the release note, at which ogb would ask whether to update, and wait
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = load("ogbn-arxiv", root, directed=directed).check()
    assert capfd.readouterr() == ("", "")
    edges = {tuple(e) for e in EDGES.tolist()}
    wanted = edges if directed else edges | {(b, a) for a, b in edges}
    assert set(zip(first.slot_sources.tolist(), first.indices.tolist(), strict=True)) == wanted
    assert np.allclose(first.x, arxiv_features())
    assert first.y.tolist() == [5, 39, 0, 5]
    assert first.splits.tolist() == [[1, 3, 2, 1]]
    assert (first.task.kind, first.task.classes, first.task.metric) == ("multiclass", 40, "accuracy")
    assert_same(load("ogbn-arxiv", root, directed=directed), first)
    assert load("ogbn-arxiv", root, directed=not directed).directed is not directed


def test_missing_files_without_network(root, monkeypatch, tmp_path):
    monkeypatch.setattr(public_dataset, "unreachable", lambda _: "no network")
    for ask in (load_dataset, dataset_identity):
        with pytest.raises(DatasetError) as caught:
            ask("minesweeper", DatasetOptions(data_root=root))
        assert str(caught.value) == (
            "minesweeper needs files that are not there, and downloading https://github.com/yandex-research/"
            "heterophilous-graphs/raw/main/data/minesweeper.npz failed (no network); "
            f"put raw/minesweeper.npz into {root}/heterophilous/minesweeper"
        )
    write_arxiv(root)
    (root / "ogb/ogbn_arxiv/split/time/valid.csv.gz").unlink()
    with pytest.raises(DatasetError, match=r"\(no network\); put split/time/valid\.csv\.gz into .*ogb/ogbn_arxiv"):
        load("ogbn-arxiv", root)
    with pytest.raises(DatasetError, match="no network"):
        load("ogbn-arxiv", tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    assert not (root / "heterophilous").exists()


@pytest.mark.parametrize("writable", [True, False])
def test_a_download_is_kept(root, monkeypatch, own_cache, writable):
    monkeypatch.setattr(public_dataset, "unreachable", lambda _: None)

    def download(url, wanted):
        assert url.endswith("minesweeper.npz")
        path = wanted["minesweeper.npz"]
        path.parent.mkdir(parents=True)
        np.savez(path, **minesweeper_arrays())

    monkeypatch.setattr(raw_files, "download", download)
    with contextlib.nullcontext() if writable else read_only(root):
        identity = dataset_identity("minesweeper", DatasetOptions(data_root=root))
        assert_same(load("minesweeper", root), minesweeper_graph())
    raw = "heterophilous/minesweeper/raw/minesweeper.npz"
    assert (root / raw).is_file() == writable
    assert (own_cache / "raw" / raw).is_file() != writable
    assert identity == dataset_identity("minesweeper", DatasetOptions(data_root=root))


def test_a_download_that_breaks_off_leaves_nothing(root, monkeypatch):
    monkeypatch.setattr(public_dataset, "unreachable", lambda _: None)

    def download(_url, wanted):
        path = wanted["minesweeper.npz"]
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half")
        raise TimeoutError("timed out")

    monkeypatch.setattr(raw_files, "download", download)
    with pytest.raises(DatasetError, match=r"failed \(TimeoutError: timed out\); put raw/minesweeper\.npz into"):
        load("minesweeper", root)
    assert list(root.iterdir()) == []


def test_unreadable_raw_files_are_said_in_one_line(root):
    write_minesweeper(root).write_bytes(b"not a zip file\n")
    with pytest.raises(DatasetError, match=r"minesweeper: the raw files in .* cannot be read .*; replace") as caught:
        load("minesweeper", root)
    assert "\n" not in str(caught.value)
    arrays = minesweeper_arrays()
    arrays["node_features"][3, 2] = np.nan
    np.savez(root / "heterophilous/minesweeper/raw/minesweeper.npz", **arrays)
    with pytest.raises(DatasetError, match="minesweeper: x has 1 values that are NaN"):
        load("minesweeper", root)


def test_unreachable_hosts(monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert "127.0.0.1" in unreachable("http://127.0.0.1:1/file")
    assert "name.invalid" in unreachable("https://name.invalid/file", seconds=5)
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:1")
    assert unreachable("https://name.invalid/file") is None  # only the loader can tell


def test_quiet_loader_answers_and_restores(capfd):
    with quiet_loader(downloading=False):
        print("noise")
        print("noise", file=sys.stderr)
        warnings.warn("noise", stacklevel=1)
        assert input("Will you update the dataset now? (y/N)") == "y"
    assert capfd.readouterr() == ("", "")
    with quiet_loader(downloading=True):
        print("12 MB so far")
    assert capfd.readouterr() == ("", "12 MB so far\n")
    assert input.__module__ == "builtins"
