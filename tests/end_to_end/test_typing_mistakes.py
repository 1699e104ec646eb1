"""Typing mistakes on both command lines: one line, exit code 2, and what to do; found before torch is imported."""

import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_prep.datasets.links import hold_out_links
from gmn_train.cli import app as train
from tests.stores import ring_graph, write_store
from tests.train.small_runs import settings_for, train_in

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
    ("gmn-prep tokenize --dataset edges.csv --threads 100000", "at most 1,024 are allowed"),
    ("gmn-prep tokenize --dataset edges.csv --memory inf", "memory is inf GB"),
    ("gmn-prep tokenize --dataset edges.csv --recipe ogbn-arxv", "did you mean 'ogbn-arxiv'?"),
    ("gmn-prep tokenize --dataset edges.csv --config no.toml", "check the path"),
    ("gmn-prep tokenize --dataset edges.csv --out ''", "give one such as"),
    ("gmn-prep tokenize --dataset edges.csv --out nodes.csv/x.zarr", "Not a directory; choose another --out"),
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
    ("gmn-train run --store ring.zarr --threads 100000", "at most 1,024 are allowed"),
    ("gmn-train run --store ring.zarr --set memory_budget=inf", "above 0 and finite"),
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
    ("gmn-train run --store ring.zarr --name a --run-dir b", "keep one of them"),
    ("gmn-train run --store ring.zarr --run-dir ring.zarr", "choose another --run-dir"),
    ("gmn-train run --store ring.zarr --run-dir nodes.csv/x", "Not a directory; choose another --run-dir"),
    ("gmn-train predict nodes --out nodes.csv/p.csv", "Not a directory; choose another place"),
    ("gmn-train run --store ring.zarr --splits 0-9", "the store has splits 0 to 1"),
    ("gmn-train run --store ring.zarr --split 99", "split 99 does not exist; the store has splits 0..1"),
    ("gmn-train run --store ring.zarr --seeds 0,1 --seed 3", "--seed and --seeds are both given; keep one of them"),
    ("gmn-train run --store ring.zarr --splits 0,1 --set split=1", "--set split and --splits are both given"),
    ("gmn-train run --store ring.zarr --model gmn-pagerank", "has no ordering 'pagerank'"),
    ("gmn-train run --store ring.zarr --set model.order=xx", "allowed: random, degree"),
    ("gmn-train run --store ring.zarr --set model.encodings=laplacian", "has no encoding 'laplacian'"),
    ("gmn-train run --store ring.zarr --set model=3", "in --set model is a table, not a value"),
    ("gmn-train run --store ring.zarr --set model.token_blocks=foo", "give input, between, none, a whole number or"),
    ("gmn-train run --store ring.zarr --model gps --set model.mpnn=gcn-edges", "set it to one of none, gcn"),
    ("gmn-train run --store ring.zarr --model mlp --with-control", "mlp has no control of its own"),
    ("gmn-train run --store ring.zarr --run-dir data/runs/nodes", "nodes is a run with other settings"),
    ("gmn-train run --store bare.zarr", "bare.zarr has no labels; tokenize a dataset with labels"),
    ("gmn-train search --store bare.zarr --budget 1m", "bare.zarr has no labels"),
    ("gmn-train search --store ring.zarr --budget 1m --splits 0 --split 1", "--split and --splits are both given"),
    ("gmn-train resume nodes --epochs 0", "has 1 epochs; --epochs 0 is fewer; give more"),
    ("gmn-train resume nodes --threads 0", "--threads is 0; it must be at least 1"),
    ("gmn-train resume nodes --procs -1", "--procs is -1; it must be at least 1"),
    ("gmn-train evaluate nodes --store rng.zarr", "did you mean 'ring.zarr'?"),
    ("gmn-train predict nodes --out p.csv --store rng.zarr", "did you mean 'ring.zarr'?"),
    ("gmn-train predict nodes --out p.csv --store edges.csv", "is a file, not a token store"),
    ("gmn-train predict nodes --out p.csv --pairs edges.csv", "--pairs is for a run that predicts links"),
    ("gmn-train predict links --out p.csv --pairs edge.csv", "there is no file edge.csv; did you mean 'edges.csv'?"),
    ("gmn-train predict links --out p.csv --pairs nodes.csv", "named src and dst in its first row; it has id, label"),
    ("gmn-train predict links --out p.csv --pairs edges.csv", "edges.csv names 'a', which is not a node of the store"),
    ("gmn-train predict links --out p.csv --embeddings", "leave out --embeddings"),
]
WITHOUT_CUDA = ("gmn-train run --store ring.zarr --device cuda", "is built without CUDA; use --device cpu")
if version("torch").endswith("+cpu"):
    MISTAKES.append(WITHOUT_CUDA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from gmn_pipeline import Graph, TokenSettings

    folder = tmp_path_factory.mktemp("typing")
    tokens = TokenSettings(1, 1, 1)
    ring = write_store(folder / "ring.zarr", ring_graph(), tokens)
    pairs, _ = hold_out_links(ring_graph(), 0, "roc_auc")
    links = write_store(folder / "links.zarr", pairs, tokens)
    bare = Graph.from_csr(ring_graph().indptr, ring_graph().indices, x=ring_graph().x)
    write_store(folder / "bare.zarr", bare, tokens)
    for name, store in (("nodes", ring), ("links", links)):
        train_in(settings_for(store, epochs=1, mode="full"), folder / "data" / "runs" / name)
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
    there = {"ring.zarr", "bare.zarr", "links.zarr", "edges.csv", "nodes.csv", "data"}
    assert {file.name for file in folder.iterdir()} <= there


CHILD = """
import shlex, sys
from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
for line in sys.stdin.read().splitlines():
    program, *words = shlex.split(line)
    try:
        run_app(prep if program == "gmn-prep" else train, words)
    except SystemExit as end:
        assert end.code == 2, line
    assert "torch" not in sys.modules, line
"""


def test_no_mistake_imports_torch(folder: Path) -> None:
    """It would take seconds before a word is said."""
    lines = "\n".join(line for line, _ in MISTAKES)
    done = subprocess.run([sys.executable, "-c", CHILD], input=lines, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


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
