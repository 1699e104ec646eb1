"""Own data from table to predictions: new data without labels, columns in any order, scaling, pairs by name."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train

PROGRAMS = {"gmn-prep": prep, "gmn-train": train}
SMALL = "--set model.feature_mask=0 --set model.width=16 --set model.states=2 --set model.node_layers=2 --threads 1"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(command: str, code: int = 0) -> None:
    program, *words = command.split()
    with pytest.raises(SystemExit) as end:
        run_app(PROGRAMS[program], words)
    assert end.value.code == code


def write_table(file: str, header: list[str], rows: list[list[object]]) -> None:
    with Path(file).open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(header)
        table.writerows(rows)


def people(n: int = 120, seed: int = 0) -> tuple[list[list[str]], list[dict[str, object]]]:
    """Edges by name, and nodes with a team, a salary in the hundred thousands, a city and years."""
    rng = np.random.default_rng(seed)
    team = rng.integers(0, 3, n)
    edges = [
        [f"p{a}", f"p{b}"] for a in range(n) for b in range(a) if rng.random() < (0.12 if team[a] == team[b] else 0.01)
    ]
    names, cities = ["design", "research", "sales"], ["Bonn", "Lyon"]
    nodes: list[dict[str, object]] = []
    for v in range(n):
        years, salary = rng.gamma(2 + team[v]), 5e5 + 1e5 * team[v] + 3e4 * rng.normal()
        facts = {"years": f"{years:.2f}", "salary": f"{salary:.0f}", "city": cities[int(rng.integers(2))]}
        nodes.append({"id": f"p{v}", "label": names[team[v]], **facts})
    return edges, nodes


def write_people(folder: str, edges: list[list[str]], nodes: list[dict[str, object]], columns: list[str]) -> None:
    Path(folder).mkdir()
    write_table(f"{folder}/edges.csv", ["src", "dst"], edges)
    write_table(f"{folder}/nodes.csv", columns, [[node[name] for name in columns] for node in nodes])


@pytest.mark.parametrize("named", ["p{}", "{}"])
def test_round_trip_by_id(named: str) -> None:
    """Train on A, predict on B: rows and columns shuffled, no labels. Joined by id, predictions are the same bits."""
    edges, nodes = people()
    edges = [[named.format(end[1:]) for end in edge] for edge in edges]
    nodes = [{**node, "id": named.format(str(node["id"])[1:])} for node in nodes]
    write_people("a", edges, nodes, ["id", "label", "years", "salary", "city"])
    rng = np.random.default_rng(1)
    shuffled = [nodes[i] for i in rng.permutation(len(nodes))]
    turned = [edges[i][::-1] for i in rng.permutation(len(edges))]
    write_people("b", turned, shuffled, ["city", "salary", "id", "years"])
    tokens = "--m 2 --M 2 --s 1 --ordering degree,pagerank --lap-pe 2 --rwse 3"
    for name in ("a", "b"):
        call(f"gmn-prep tokenize --dataset {name}/edges.csv {tokens} --out {name}.zarr --quiet")
    call(f"gmn-train run --store a.zarr --epochs 30 --lr 0.01 {SMALL} --run-dir r --quiet")
    for name in ("a", "b"):
        call(f"gmn-train predict r --store {name}.zarr --out {name}.parquet")
    first, second = (pq.read_table(f"{name}.parquet").to_pydict() for name in ("a", "b"))
    assert set(first) == {"id", "prediction", "label", "split"} | {
        f"probability {c}" for c in ("design", "research", "sales")
    }
    assert set(second) == set(first) - {"label", "split"}
    assert {name: first[name] for name in second} == second  # rows stand in the order of ids in both
    labels = {node["id"]: node["label"] for node in nodes}
    assert [labels[str(name)] for name in first["id"]] == first["label"]
    assert np.mean([p == label for label, p in zip(first["label"], first["prediction"], strict=True)]) > 0.8


def test_what_does_not_match_is_refused(capsys) -> None:
    edges, nodes = people()
    write_people("a", edges, nodes, ["id", "label", "years", "salary"])
    write_people("b", edges, nodes, ["id", "years", "city"])
    write_people("c", edges, [{**node, "label": "law"} if i < 9 else node for i, node in enumerate(nodes)],
                 ["id", "label", "years", "salary"])  # fmt: skip
    write_people("d", edges, nodes, ["id", "years", "salary", "city"])
    for name in ("a", "b", "c", "d"):
        call(f"gmn-prep tokenize --dataset {name}/edges.csv --m 1 --M 1 --s 1 --out {name}.zarr --quiet")
    call(f"gmn-train run --store a.zarr --epochs 1 {SMALL} --run-dir r --quiet")
    capsys.readouterr()
    call("gmn-train predict r --store d.zarr --out p.parquet")
    assert "the model was not trained on are not read: city=Bonn, city=Lyon" in capsys.readouterr().err
    call("gmn-train run --store a.zarr --run-dir q --splits 0-3", code=2)  # told before anything is trained
    assert "--splits asks for split 1; the store has one split, 0" in " ".join(capsys.readouterr().err.split())
    assert not Path("q").exists()
    call("gmn-prep inspect a.zarr --node p7 --json")
    assert json.loads(capsys.readouterr().out)["node"] == sorted(f"p{i}" for i in range(120)).index("p7")
    call("gmn-train predict r --store b.zarr --out p.parquet", code=2)
    assert "there is no column 'salary', which the model was trained on" in " ".join(capsys.readouterr().err.split())
    call("gmn-train evaluate r --store c.zarr", code=2)
    assert "class 'law' is unknown to the model" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("scaled", [True, False])
def test_targets_and_features_are_scaled(scaled: bool) -> None:
    """House prices around 60,000: better than the mean, in the prices' own unit, only with scaling."""
    rng = np.random.default_rng(0)
    n = 200
    size = rng.gamma(4, 1e6, n)
    price = 60_000 + size / 400 + rng.normal(size=n) * 300
    edges = [[v, int(w)] for v in range(n) for w in rng.integers(0, n, 2)]
    write_table("edges.csv", ["src", "dst"], edges)
    write_table("nodes.csv", ["id", "label", "size"], [[v, f"{price[v]:.1f}", f"{size[v]:.1f}"] for v in range(n)])
    call("gmn-prep tokenize --dataset edges.csv --m 1 --M 2 --s 1 --out s.zarr --quiet")
    options = "" if scaled else "--no-scale-features --no-scale-targets"
    call(f"gmn-train run --store s.zarr --epochs 60 --lr 0.01 {options} {SMALL} --run-dir r --quiet")
    summary = json.loads(Path("r/summary.json").read_text())
    by_mean = float(np.abs(price - price.mean()).mean())
    assert (summary["test"] < 0.6 * by_mean) == scaled, (summary["test"], by_mean)
    if scaled:
        call("gmn-train predict r --out p.csv")
        rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
        assert np.mean([abs(float(r["prediction"]) - float(r["label"])) for r in rows]) < 0.6 * by_mean


def test_pairs_by_name(capsys) -> None:
    edges, nodes = people()
    write_people("a", edges, nodes, ["id", "years", "salary"])
    call("gmn-prep tokenize --dataset a/edges.csv --task link --m 1 --M 2 --s 1 --out a.zarr --quiet")
    call(f"gmn-train run --store a.zarr --epochs 2 {SMALL} --run-dir r --quiet")
    write_table("pairs.csv", ["src", "dst"], [["p3", "p7"], ["p0", "p119"], ["p7", "p3"]])
    call("gmn-train predict r --pairs pairs.csv --out p.parquet")
    Path("pairs.tsv").write_text("src\tdst\np3\tp7\np0\tp119\np7\tp3\n")
    call("gmn-train predict r --pairs pairs.tsv --out q.parquet")
    assert Path("q.parquet").read_bytes() == Path("p.parquet").read_bytes()
    found = pq.read_table("p.parquet").to_pydict()
    assert list(zip(found["src"], found["dst"], strict=True)) == [("p3", "p7"), ("p0", "p119"), ("p7", "p3")]
    assert found["probability 1"][0] == pytest.approx(found["probability 1"][2])  # the order of a pair means nothing
    write_table("pairs.csv", ["src", "dst"], [["p3", "nobody"]])
    capsys.readouterr()
    call("gmn-train predict r --pairs pairs.csv --out p.parquet", code=2)
    assert "names 'nobody', which is not a node of the store" in " ".join(capsys.readouterr().err.split())


def test_edge_features_are_read_by_default() -> None:
    edges, nodes = people()
    Path("a").mkdir()
    write_table("a/edges.csv", ["src", "dst", "mails"], [[*edge, i % 7] for i, edge in enumerate(edges)])
    write_table("a/nodes.csv", ["id", "label", "years"], [[n["id"], n["label"], n["years"]] for n in nodes])
    call("gmn-prep tokenize --dataset a/edges.csv --m 1 --M 1 --s 1 --out a.zarr --quiet")
    call(f"gmn-train run --store a.zarr --epochs 1 {SMALL} --run-dir r --quiet")
    assert 'mpnn = "gine"' in Path("r/config.toml").read_text()
