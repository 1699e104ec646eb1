"""Typing mistakes on both command lines: one line, exit code 2, and what to do; found before torch is imported."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
from tests.stores import ring_graph, write_store

APPS = {"gmn-prep": prep, "gmn-train": train}
EDGES, NODES = "src,dst\na,b\nb,c\nc,a\n", "id,label,age\na,x,1\nb,y,2\nc,x,3\n"
MISTAKES = [
    ("gmn-prep tokenise --dataset edges.csv", "mean 'tokenize'"),
    ("gmn-prep make", "commands: "),
    ("gmn-prep tokenize", "--dataset is missing"),
    ("gmn-prep tokenize edges.csv", "did you mean --dataset edges.csv?"),
    ("gmn-prep tokenize --datset edges.csv", "--dataset"),
    ("gmn-prep tokenize --dataset", "'--dataset' requires an argument"),
    ("gmn-prep tokenize --dataset edgs.csv", "did you mean 'edges.csv'?"),
    ("gmn-prep tokenize --dataset edges.tsv", "did you mean 'edges.csv'?"),
    ("gmn-prep tokenize --dataset minesweper", "did you mean 'minesweeper'?"),
    ("gmn-prep tokenize --dataset edges.csv --m two", "'--m': Input should be a valid integer"),
    ("gmn-prep tokenize --dataset edges.csv --m 2.5", "valid integer"),
    ("gmn-prep tokenize --dataset edges.csv --m -1", "must not be negative"),
    ("gmn-prep tokenize --dataset edges.csv --M 0", "use M >= 1"),
    ("gmn-prep tokenize --dataset edges.csv --s -1", "s is -1"),
    ("gmn-prep tokenize --dataset edges.csv --codec zst", "'raw', 'zstd'"),
    ("gmn-prep tokenize --dataset edges.csv --walk randm", "'uniform', 'non-backtracking'"),
    ("gmn-prep tokenize --dataset edges.csv --lap-pe x", "valid integer"),
    ("gmn-prep tokenize --dataset edges.csv --ordering degre", "did you mean 'degree'?"),
    ("gmn-prep tokenize --dataset edges.csv --label lable", "did you mean 'label'?"),
    ("gmn-prep tokenize --dataset edges.csv --drop agee", "did you mean 'age'?"),
    ("gmn-prep tokenize --dataset edges.csv --features ages", "did you mean 'age'?"),
    ("gmn-prep tokenize --dataset edges.csv --id idd", "did you mean 'id'?"),
    ("gmn-prep tokenize --dataset edges.csv --time agee", "did you mean 'age'?"),
    ("gmn-prep tokenize --dataset edges.csv --task regresion", "did you mean 'regression'?"),
    ("gmn-prep tokenize --dataset edges.csv --metric acuracy", "did you mean 'accuracy'?"),
    ("gmn-prep tokenize --dataset edges.csv --node-table node.csv", "did you mean 'nodes.csv'?"),
    ("gmn-prep tokenize --dataset edges.csv --nodes 9", "has a size already"),
    ("gmn-prep tokenize --dataset edges.csv --threads 0", "at least 1"),
    ("gmn-prep tokenize --dataset edges.csv --recipe ogbn-arxv", "did you mean 'ogbn-arxiv'?"),
    ("gmn-prep tokenize --dataset edges.csv --config no.toml", "check the path"),
    ("gmn-prep tokenize --dataset edges.csv --out ''", "give one such as"),
    ("gmn-prep verify", "missing argument 'STORE'"),
    ("gmn-prep verify rng.zarr", "did you mean 'ring.zarr'?"),
    ("gmn-prep verify edges.csv", "is a file, not a token store; make one with gmn-prep tokenize --dataset edges.csv"),
    ("gmn-prep inspect ring.zarr --node x", "the store has nodes 0.."),
    ("gmn-prep inspect ring.zarr --node -1", "the store has nodes 0.."),
    ("gmn-prep inspect ring.zarr --png a.png", "--node V is missing"),
    ("gmn-prep repair nowhere.zarr", "make one with gmn-prep tokenize"),
    ("gmn-prep part ring.zarr", "missing argument"),
    ("gmn-prep datasets foo", "datasets -h shows"),
    ("gmn-train trian --store ring.zarr", "commands: "),
    ("gmn-train run", "--store is missing"),
    ("gmn-train run ring.zarr", "did you mean --store ring.zarr?"),
    ("gmn-train run --store rng.zarr", "did you mean 'ring.zarr'?"),
    ("gmn-train run --store edges.csv", "is a file, not a token store"),
    ("gmn-train run --store ring.zarr --model gmm", "did you mean 'gmn'?"),
    ("gmn-train run --store ring.zarr --epoch 5", "--epochs"),
    ("gmn-train run --store ring.zarr --epochs five", "valid integer"),
    ("gmn-train run --store ring.zarr --epochs -5", "at least 1"),
    ("gmn-train run --store ring.zarr --lr -1", "above 0"),
    ("gmn-train run --store ring.zarr --lr inf", "finite"),
    ("gmn-train run --store ring.zarr --set width=32", "did you mean 'model.width'?"),
    ("gmn-train run --store ring.zarr --set model.widht=32", "did you mean 'width'?"),
    ("gmn-train run --store ring.zarr --set model.width", "write KEY=VALUE"),
    ("gmn-train run --store ring.zarr --set model.width=abc", "valid integer"),
    ("gmn-train run --store ring.zarr --seeds 0,a", "such as 0,1,2 or 0-9"),
    ("gmn-train run --store ring.zarr --device gpu", "'auto', 'cpu', 'cuda'"),
    ("gmn-train run --store ring.zarr --precision fp16", "'auto', 'float32', 'bf16'"),
    ("gmn-train run --store ring.zarr --mode ful", "'full', 'batch', 'graphs'"),
    ("gmn-train run --store ring.zarr --check ful", "'full', 'sampled', 'none'"),
    ("gmn-train run --store ring.zarr --name a/b", "no /"),
    ("gmn-train run --store ring.zarr --procs 0", "at least 1"),
    ("gmn-train run --store ring.zarr --m 9", "ask for no more than that"),
    ("gmn-train resume frst", "gmn-train runs"),
    ("gmn-train evaluate", "missing argument 'RUN'"),
    ("gmn-train predict frst", "missing option '--out'"),
    ("gmn-train predict frst --out p.txt", "its ending must be one of .parquet, .csv, .npz"),
    ("gmn-train predict frst --out p.csv", "there is no run 'frst'"),
    ("gmn-train report frst", "there is no run 'frst'"),
    ("gmn-train table no.toml", "no.toml"),
    ("gmn-train settings --store nowhere.zarr", "there is no store at nowhere.zarr"),
    ("gmn-train models foo", "models -h shows"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from gmn_pipeline import TokenSettings

    folder = tmp_path_factory.mktemp("typing")
    write_store(folder / "ring.zarr", ring_graph(), TokenSettings(1, 1, 1))
    (folder / "edges.csv").write_text(EDGES)
    (folder / "nodes.csv").write_text(NODES)
    return folder


BESIDE_A_STORE = [
    ("--label lable", "did you mean 'label'?"),
    ("--drop agee", "did you mean 'age'?"),
    ("--features ages", "did you mean 'age'?"),
    ("--metric acuracy", "did you mean 'accuracy'?"),
    ("--time agee", "did you mean 'age'?"),
    ("--drop age", "holds other content (dataset=edges format=.csv seed=0, m=1 M=1 s=1"),
    ("--drop age", "; now asked: drop=age); choose another --out, or pass --force"),
]


def said_of(line: str, capsys: Any) -> str:
    """The one line that a mistaken command prints."""
    program, *words = shlex.split(line)
    with pytest.raises(SystemExit) as end:
        run_app(APPS[program], words)
    said = capsys.readouterr()
    lines = [text for text in said.err.splitlines() if not text.startswith("loading ")]
    assert end.value.code == 2
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert said.out == ""
    return lines[0]


@pytest.mark.parametrize(("line", "remedy"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_one_line_that_names_the_remedy(
    folder: Path, line: str, remedy: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert remedy in said_of(line, capsys)
    assert {file.name for file in folder.iterdir()} <= {"ring.zarr", "edges.csv", "nodes.csv", "data"}


@pytest.fixture(scope="module")
def store_of_the_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beside")
    (folder / "edges.csv").write_text(EDGES)
    (folder / "nodes.csv").write_text(NODES)
    with pytest.raises(SystemExit) as end:
        run_app(prep, ["tokenize", "--dataset", str(folder / "edges.csv"), "--out", str(folder / "made.zarr"), *TINY])
    assert not end.value.code
    return folder


TINY = ("--m", "1", "--M", "1", "--s", "1", "--quiet")


@pytest.mark.parametrize(("options", "remedy"), BESIDE_A_STORE)
def test_a_mistake_beside_a_store_is_told_itself(
    store_of_the_tables: Path, options: str, remedy: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store_of_the_tables)
    line = f"gmn-prep tokenize --dataset edges.csv --m 1 --M 1 --s 1 --out made.zarr {options}"
    assert remedy in said_of(line, capsys)


def test_a_store_of_files_that_have_changed(store_of_the_tables: Path, capsys: Any) -> None:
    """Not the mistake of an option: the files are not read for it."""
    nodes = store_of_the_tables / "nodes.csv"
    before = nodes.read_text()
    nodes.write_text(before.replace("a,x,1", "a,y,1"))
    line = f"gmn-prep tokenize --dataset {store_of_the_tables / 'edges.csv'} --m 1 --M 1 --s 1"
    said = said_of(f"{line} --out {store_of_the_tables / 'made.zarr'}", capsys)
    nodes.write_text(before)
    assert "; its files have changed since); choose another --out" in said
