"""Raw files that would run code, for every public dataset whose format is a pickle: refused in one line."""

import io
import pickle

import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DATASETS, DatasetOptions, load_dataset
from gmn_prep.datasets.public.raw.plain_pickle import MOST_ENTRIES
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader
from tests.prep.datasets.public.raw_samples import PLANETOID_KNOWN, write_planetoid

with quiet_loader(downloading=False):
    import torch

PLANETOID = [("Cora", 7), ("CiteSeer", 6), ("PubMed", 3)]
TORCH = ["peptides-func", "peptides-struct", "pcqm-contact", "mnist", "cifar10", "pattern"]
PICKLED = ["pascalvoc-sp", "coco-sp"]


class Touch:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (f"open({str(self.path)!r}, 'w').close()",)


def raw_file(root, name, number=0):
    raw = DATASETS[name].raw
    for file in raw.files:
        (root / raw.folder / file).parent.mkdir(parents=True, exist_ok=True)
        (root / raw.folder / file).touch()
    return root / raw.folder / raw.files[number]


def assert_refused(root, name, proof, *words):
    with pytest.raises(DatasetError) as caught:
        load_dataset(name, DatasetOptions(data_root=root))
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in (name, *words)), message
    assert not proof.exists()


def test_every_dataset_with_a_pickle_is_tried_here():
    tried = {spelling.lower() for spelling, _ in PLANETOID} | {*TORCH, *PICKLED}
    pickles = {
        name for name, line in DATASETS.items()
        if line.raw and any(file.endswith((".pt", ".pickle", ".allx")) for file in line.raw.files)
    }  # fmt: skip
    assert tried == pickles


@pytest.mark.parametrize(("spelling", "classes"), PLANETOID)
@pytest.mark.parametrize("ending", ["tx", "allx", "y", "ty", "ally", "graph"])
def test_planetoid(root, tmp_path, spelling, classes, ending):
    write_planetoid(root, spelling, classes, [PLANETOID_KNOWN, PLANETOID_KNOWN + 1])
    path = root / "planetoid" / spelling / "raw" / f"ind.{spelling.lower()}.{ending}"
    for protocol in (0, 2, 4):
        path.write_bytes(pickle.dumps(Touch(tmp_path / "proof"), protocol))
        assert_refused(root, spelling.lower(), tmp_path / "proof", path.name, ".exec, which", "replace it")


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("legacy", [False, True])
def test_files_saved_by_torch(root, tmp_path, name, legacy):
    path = raw_file(root, name)
    torch.save([(torch.ones(2), Touch(tmp_path / "proof"))], path, _use_new_zipfile_serialization=not legacy)
    assert_refused(root, name, tmp_path / "proof", path.name, "more than tensors")


class InStorage:
    """A tensor's storage, as pickle keeps it: bytes that torch saved, here of something else."""

    def __init__(self, inner):
        self.inner = inner

    def __reduce__(self):
        content = io.BytesIO()
        torch.save(self.inner, content)
        return torch.storage._load_from_bytes, (content.getvalue(),)


@pytest.mark.parametrize("name", PICKLED)
@pytest.mark.parametrize("wrap", [lambda touch: touch, InStorage, lambda touch: [(torch.ones(2), touch)]])
def test_pickled_tensors(root, tmp_path, name, wrap):
    path = raw_file(root, name)
    path.write_bytes(pickle.dumps(wrap(Touch(tmp_path / "proof"))))
    assert_refused(root, name, tmp_path / "proof", path.name)


def test_an_archive_is_no_way_around(root, tmp_path):
    import tarfile

    path = raw_file(root, "peptides-func")
    torch.save([Touch(tmp_path / "proof")], path)
    with tarfile.open(root / "lrgb/peptides-func.tar.xz", "w:xz") as archive:
        archive.add(path.parent, "peptides-func/raw")
    for file in path.parent.iterdir():
        file.unlink()
    assert_refused(root, "peptides-func", tmp_path / "proof", "train.pt")


class Forged:
    """A scipy matrix or numpy array with a state of our own."""

    def __init__(self, call, arguments, state):
        self.parts = (call, arguments, state)

    def __reduce__(self):
        return self.parts


def forged_rows(shape, indptr):
    from copyreg import _reconstructor

    from scipy.sparse import csr_matrix

    parts = {"data": np.ones(1), "indices": np.zeros(1, np.int32), "indptr": np.array(indptr), "_shape": shape}
    return Forged(_reconstructor, (csr_matrix, object, None), parts)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (forged_rows((2, MOST_ENTRIES), [0, 1, 1]), "a matrix of 2 by"),
        (forged_rows((2, 3), [0, 9, 1]), "ValueError"),
        (np.array([{}], dtype=object), "an array of type 'O8'"),
        ([1, 2], "cannot be read"),
    ],
)
def test_forged_arrays(root, tmp_path, content, word):
    write_planetoid(root, "Cora", 7, [PLANETOID_KNOWN, PLANETOID_KNOWN + 1])
    path = root / "planetoid/Cora/raw/ind.cora.allx"
    path.write_bytes(pickle.dumps(content, protocol=2))
    assert_refused(root, "cora", tmp_path / "proof", word)


def test_a_tensor_that_repeats_its_bytes(root, tmp_path):
    path = raw_file(root, "pattern")
    huge = torch.ones(1).expand(10**12)
    torch.save([[{"x": huge}]] * 3, path)
    assert_refused(root, "pattern", tmp_path / "proof", "(1000000000000,) on 4 bytes")
    path = raw_file(root, "pascalvoc-sp")
    path.write_bytes(pickle.dumps([(huge, huge, huge, [])]))
    assert_refused(root, "pascalvoc-sp", tmp_path / "proof", "(1000000000000,) on 4 bytes")
