"""Small files that claim to hold very much: refused before memory is asked for."""

import gzip
import io
import os
import struct
import zipfile

import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset
from gmn_prep.datasets.file_sizes import check_gzip
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader
from tests.prep.datasets.public.raw_samples import minesweeper_arrays

with quiet_loader(downloading=False):
    import torch

EDGES = np.array([[0, 1], [1, 2]])


def header(shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def refused(path, message, **options):
    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset(str(path), DatasetOptions(**options))
    assert "\n" not in str(caught.value)


def test_a_sparse_terabyte_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "edges.csv"
    file.touch()
    os.truncate(file, 1 << 40)
    with pytest.raises(DatasetError, match="nearly all of them holes"):
        dataset_identity(str(file), DatasetOptions())


def test_an_npz_of_zeros(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as file:
            file.write(header((3, 2**24)))
            for _ in range(24):
                file.write(bytes(1 << 24))
        content = io.BytesIO()
        np.save(content, EDGES)
        archive.writestr("edges.npy", content.getvalue())
    refused(tmp_path / "bomb.npz", r"bomb.npz unpacks to 402,6.* bytes from .*; write it with numpy\.savez")


def test_an_npz_with_a_lying_header(tmp_path):
    for shape in [(10**12,), (2**62, 4), (10**30, 10)]:
        with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
            archive.writestr("x.npy", header(shape) + bytes(16))
        refused(tmp_path / "lie.npz", r"lie.npz: x.npy claims .* bytes and has fewer")


def test_a_public_npz_with_a_lying_header(root):
    path = root / "heterophilous/minesweeper/raw/minesweeper.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, **{k: v for k, v in minesweeper_arrays().items() if k != "node_features"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("node_features.npy", header((10**12, 7)) + bytes(16))
    refused("minesweeper", r"minesweeper: minesweeper\.npz: node_features\.npy claims", data_root=root)


def test_a_compressed_torch_file(tmp_path):
    torch.save({"edge_index": torch.from_numpy(EDGES), "x": torch.zeros(1 << 27)}, tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as plain,
        zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in plain.namelist():
            bomb.writestr(name, plain.read(name))
    refused(tmp_path / "bomb.pt", r"bomb\.pt unpacks to 536,.* bytes from .*; save it anew with torch\.save")


@pytest.mark.parametrize("count", [10**12, 2**62])
def test_more_nodes_than_anything_names(tmp_path, count):
    np.savez(tmp_path / "g.npz", edges=EDGES, num_nodes=count)
    refused(tmp_path / "g.npz", rf"g\.npz: {count:,} nodes with only 2 edges")
    torch.save([{"edge_index": torch.from_numpy(EDGES), "num_nodes": count}] * 3, tmp_path / "g.pt")
    refused(tmp_path / "g.pt", r"g\.pt: ")


def test_an_over_long_name():
    for name in ("x" * 300, "x" * 300 + ".npz"):
        refused(name, "the name of the dataset has 30. characters")


def test_a_packed_table_of_zeros(tmp_path):
    file = tmp_path / "edge.csv.gz"
    file.write_bytes(gzip.compress(b"1,2\n" * 1000))
    check_gzip(file)
    file.write_bytes(gzip.compress(bytes(1 << 25)))
    with pytest.raises(DatasetError, match="unpacks to more than 16,777,216 bytes"):
        check_gzip(file)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DatasetError, match=r"cannot be unpacked|unpacks to more"):
        check_gzip(file)
