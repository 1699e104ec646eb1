"""The Long Range Graph Benchmark, on tiny files in its raw formats."""

import contextlib
import tarfile

import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DATASETS, DatasetOptions, dataset_identity, load_dataset
from gmn_prep.datasets.public import public_dataset
from gmn_prep.datasets.public.lrgb import standardise
from gmn_prep.datasets.public.raw.raw_files import unpack_archive
from tests.prep.datasets.public.drawn_graphs import COCO_LABELS, contact, peptide, segments
from tests.prep.datasets.public.many_graph_samples import draw_items, expected_graph, write_lrgb
from tests.prep.datasets.public.raw_folders import assert_same, files_below, read_only

ATOMS, BONDS = (119, 5, 12, 12, 10, 6, 6, 2, 2), (5, 6, 2)


def load(name, root, **options):
    return load_dataset(name, DatasetOptions(data_root=root, **options)).graph


@pytest.mark.parametrize(("name", "classes"), [("peptides-func", 10), ("peptides-struct", 11)])
def test_peptides(root, name, classes, capfd):
    items = draw_items(lambda rng, n: peptide(classes, rng, n))
    write_lrgb(root, name, items)
    graph = load(name, root).check()
    assert capfd.readouterr() == ("", "")
    wanted = expected_graph(items, DATASETS[name].predicts, x_categories=ATOMS, edge_categories=BONDS)
    assert_same(graph, wanted)
    assert graph.edge_categories == BONDS
    assert graph.y.shape == (9, classes)
    assert graph.splits.tolist() == [[1, 1, 1, 1, 2, 2, 3, 3, 3]]
    assert_same(load(name, root), graph)  # from the cache


def test_pcqm_contact(root):
    items = draw_items(contact)
    write_lrgb(root, "pcqm-contact", items)
    graph = load("pcqm-contact", root).check()
    wanted = expected_graph(items, DATASETS["pcqm-contact"].predicts, x_categories=ATOMS, edge_categories=BONDS)
    assert_same(graph, wanted)
    assert (graph.task.item, graph.task.metric) == ("link", "mrr")
    graph_of = np.repeat(np.arange(9), np.diff(graph.graph_ptr))
    assert np.array_equal(*graph_of[graph.pairs].T)  # pairs stay within their graph


@pytest.mark.parametrize(("name", "classes"), [("pascalvoc-sp", 21), ("coco-sp", 81)])
def test_superpixels(root, name, classes):
    labels = list(COCO_LABELS) if name == "coco-sp" else [0, 7, 20]
    items = draw_items(lambda rng, n: segments(labels, rng, n))
    write_lrgb(root, name, items)
    graph = load(name, root).check()
    assert (graph.task.classes, graph.task.metric, graph.task.class_weighted) == (classes, "macro_f1", True)
    for key in ("x", "edge_attr"):  # by the training graphs alone
        training = np.concatenate([item[key] for item in items["train"]]).astype(np.float32)
        for part in items.values():
            for item in part:
                item[key] = (item[key].astype(np.float32) - training.mean(axis=0)) / training.std(axis=0)
    for part in items.values():
        for item in part:
            if name == "coco-sp":
                item["y"] = np.array([COCO_LABELS[label] for label in item["y"].tolist()], dtype=np.int64)
    wanted = expected_graph(items, graph.task)
    for key in ("x", "edge_attr"):
        assert np.allclose(getattr(graph, key), getattr(wanted, key), atol=1e-4)
    for key in ("indptr", "indices", "y", "splits", "graph_ptr"):
        assert np.array_equal(getattr(graph, key), getattr(wanted, key)), key


def test_a_column_that_never_varies_is_left_alone():
    values = np.array([[1, 2], [1, 4], [1, 9]], dtype=np.float32)
    standardise(values, np.array([True, True, False]))
    assert values.tolist() == [[1, -1], [1, 1], [1, 6]]


def pack(root, name):
    """The raw folder as one archive in its place."""
    with tarfile.open(root / f"lrgb/{name}.tar.xz", "w:xz") as archive:
        archive.add(root / "lrgb" / name / "raw", f"{name}/raw")
    for file in (root / "lrgb" / name / "raw").iterdir():
        file.unlink()


@pytest.mark.parametrize("writable", [True, False])
def test_an_archive_serves_as_it_is(root, writable):
    items = draw_items(lambda rng, n: peptide(10, rng, n))
    write_lrgb(root, "peptides-func", items)
    pack(root, "peptides-func")
    wanted = expected_graph(items, DATASETS["peptides-func"].predicts, x_categories=ATOMS)
    with contextlib.nullcontext() if writable else read_only(root):
        identity = dataset_identity("peptides-func", DatasetOptions(data_root=root))
        assert_same(load("peptides-func", root), wanted)
        again = load("peptides-func", root)
    assert_same(again, wanted)
    assert isinstance(again.indices.base, np.memmap)
    assert identity == dataset_identity("peptides-func", DatasetOptions(data_root=root))
    assert not [name for name in files_below(root) if "/raw/" in name]  # unpacked elsewhere


def test_a_broken_archive_is_said_in_one_line(root):
    (root / "lrgb").mkdir()
    path = root / "lrgb/peptides-func.tar.xz"
    path.write_bytes(b"not an archive")
    with pytest.raises(DatasetError, match=r"peptides-func\.tar\.xz cannot be unpacked .*; replace it"):
        load("peptides-func", root)
    with tarfile.open(path, "w:xz"):
        pass
    with pytest.raises(DatasetError, match=r"holds no raw/train\.pt, raw/val\.pt, raw/test\.pt in peptides-func"):
        load("peptides-func", root)


def test_of_an_archive_only_what_is_wanted_is_unpacked(root, tmp_path):
    raw = DATASETS["peptides-func"].raw
    (root / "lrgb").mkdir()
    with tarfile.open(root / raw.archive, "w:xz") as archive:
        for name in (*raw.files, "raw/more.pt", "../../../outside.pt"):
            archive.addfile(tarfile.TarInfo(f"peptides-func/{name}"))
        link = tarfile.TarInfo("peptides-func/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/"
        archive.addfile(link)
    scratch = tmp_path / "a" / "scratch"
    unpack_archive(raw, root, scratch)
    assert files_below(tmp_path / "a") == sorted(f"scratch/{raw.folder}/{name}" for name in raw.files)


def test_missing_files_name_the_archive_too(root, monkeypatch):
    monkeypatch.setattr(public_dataset, "unreachable", lambda _: "no network")
    with pytest.raises(DatasetError) as caught:
        load("peptides-func", root)
    assert str(caught.value).endswith(
        f"put raw/train.pt, raw/val.pt, raw/test.pt into {root}/lrgb/peptides-func, "
        f"or peptides-func.tar.xz into {root}/lrgb"
    )
