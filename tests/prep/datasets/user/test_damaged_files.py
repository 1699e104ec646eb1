"""Own files with damaged bytes: read, or refused in one line; never a traceback."""

import gzip
import io
import random

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gmn_pipeline.errors import GmnError
from gmn_prep.datasets import DatasetOptions, load_dataset
from tests.prep.datasets.user.array_cases import INDEX, RING, Data, torch

NODES = b"id,label,split,age\na,x,train,1\nb,y,val,2\nc,x,test,3\nd,y,train,4\n"


def sound_files():
    out = {name: io.BytesIO() for name in ("g.npz", "packed.npz", "g.pt", "old.pt", "e.parquet")}
    np.savez(out["g.npz"], edge_index=RING, x=np.ones((4, 2)), y=[0, 1, 0, 1], graph_ptr=[0, 4], node_ids=list("abcd"))
    np.savez_compressed(out["packed.npz"], indptr=[0, 1, 2], indices=[1, 0], y=["a", "b"], splits=[1, 3])
    data = Data(edge_index=INDEX, x=torch.rand(4, 2), y=torch.tensor([0, 1, 0, 1]))
    torch.save(data, out["g.pt"])
    torch.save(data.to_dict(), out["old.pt"], _use_new_zipfile_serialization=False)
    parquet.write_table(pa.table({"src": ["a", "b"], "dst": ["b", "c"], "v": [[1.0], [3.0]]}), out["e.parquet"])
    files = {name: content.getvalue() for name, content in out.items()}
    return files | {"edges.csv": b'src,dst,w,kind\na,b,1.5,x\nb,c,2,y\n"c",d,3,x\n'}


def damage(content, rng):
    content = bytearray(content)
    place = rng.randrange(len(content))
    kind = rng.random()
    if kind < 0.6:
        for _ in range(rng.choice((1, 1, 2, 9))):
            content[rng.randrange(len(content))] = rng.randrange(256)
    elif kind < 0.8:
        del content[place : place + rng.randrange(1, 40)]
    else:
        content[place:place] = rng.randbytes(rng.randrange(1, 9))
    return bytes(content)


@pytest.mark.parametrize("name", list(sound_files()))
def test_damaged_bytes(tmp_path, name):
    rng = random.Random(name)
    sound = sound_files()[name]
    (tmp_path / "nodes.csv").write_bytes(NODES)
    refused = []
    for _ in range(60):
        (tmp_path / name).write_bytes(damage(sound, rng))
        if name == "edges.csv":
            (tmp_path / "nodes.csv").write_bytes(damage(NODES, rng))
        try:
            load_dataset(str(tmp_path / name), DatasetOptions()).graph.check()
        except GmnError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert not [message for message in refused if "\n" in message]


def test_a_packed_table_that_unpacks_to_very_much(tmp_path, monkeypatch):
    monkeypatch.setattr("gmn_prep.datasets.file_sizes.HARMLESS", 1 << 20)
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"src,dst\n" + b"a,b\n" * (1 << 20)))
    with pytest.raises(GmnError, match="unpack it first, if that is meant"):
        load_dataset(str(tmp_path / "e.csv.gz"), DatasetOptions())


def test_categories_that_take_too_much_room_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("gmn_prep.datasets.user.tables.table_features.MOST_BYTES", 1000)
    (tmp_path / "edges.csv").write_text("src,dst\n0,1\n")
    (tmp_path / "nodes.csv").write_text("id,kind\n" + "".join(f"{i},k{i % 10}\n" for i in range(60)))
    with pytest.raises(
        GmnError,
        match=r"'kind' of nodes.csv take 2.40 kB as .* than 1.00 kB; .* --drop kind",
    ):
        load_dataset(str(tmp_path / "edges.csv"), DatasetOptions())
