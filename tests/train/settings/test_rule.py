"""The defaults follow the data: what is measured, what follows from it, and that anybody's word goes before it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import Graph, Task, TokenSettings, TokenStore
from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.manifest_file import manifest_in
from gmn_pipeline.store.files.storage import LocalFolder
from gmn_train.cli import app
from gmn_train.runs.folder import RunFolder, default_run_dir
from gmn_train.settings.data_facts import DataFacts, measure_facts, measure_homophily
from gmn_train.settings.request import read_request
from gmn_train.settings.rule import DEEP, PATIENCE, choose_settings
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.tables.running import plan_jobs
from gmn_train.tables.spec import RowSpec, TableSpec
from tests.forgery import poke, seal
from tests.stores import ring_graph, write_store


def homophily_by_loop(indptr, indices, y, train):
    """Slow twin: edge by edge."""
    known = {int(v) for v in train if y[v] >= 0}
    same, ends = [], []
    for v in range(len(y)):
        for u in indices[indptr[v] : indptr[v + 1]]:
            if v in known and int(u) in known:
                same.append(y[v] == y[u])
                ends += [y[v], y[u]]
    chance = sum((ends.count(c) / len(ends)) ** 2 for c in set(ends))
    return (np.mean(same) - chance) / (1 - chance)


@pytest.mark.parametrize("seed", range(4))
def test_homophily_equals_its_slow_twin_and_reads_no_label_outside_training(seed: int) -> None:
    rng = np.random.default_rng(seed)
    degrees = rng.integers(0, 9, 60)
    indptr = np.append(0, np.cumsum(degrees))
    indices, y = rng.integers(0, 60, indptr[-1]), rng.integers(-1, 3, 60)
    train = np.sort(rng.permutation(60)[:40])
    found = measure_homophily(indptr, indices, y, train)
    assert found == pytest.approx(homophily_by_loop(indptr, indices, y, train))
    other = y.copy()
    other[np.setdiff1d(np.arange(60), train)] = 2
    assert measure_homophily(indptr, indices, other, train) == found


def test_homophily_of_extremes() -> None:
    """Two classes on a ring of pairs: all edges inside classes, or all between."""
    nodes = 80
    indptr = np.arange(nodes + 1)
    partner = np.arange(nodes) ^ 1
    assert measure_homophily(indptr, partner, np.arange(nodes) // 2 % 2, np.arange(nodes)) == pytest.approx(1)
    assert measure_homophily(indptr, partner, np.arange(nodes) % 2, np.arange(nodes)) == pytest.approx(-1)
    assert measure_homophily(indptr, partner, np.zeros(nodes, int), np.arange(nodes)) is None


def store_of(folder: Path, columns: int, same: float, splits: int = 1) -> Path:
    """A graph of two classes whose edges join equal ones with this probability. A second split hides most labels."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    source = np.repeat(np.arange(300), 4)
    equal = rng.random(len(source)) < same
    target = (rng.integers(0, 150, len(source)) * 2 + (y[source] ^ ~equal)) % 300
    graph = Graph.from_edges(
        np.stack([source, target], 1),
        300,
        x=rng.normal(size=(300, columns)).astype(np.float32),
        y=y,
        splits=np.stack([1 + rng.permutation(300) % 3, np.where(np.arange(300) < 200, 2, 3)])[:splits],
        task=Task.of("node", "multiclass", 2),
    )
    return write_store(folder / "store.zarr", graph, TokenSettings(1, 2, 1), block_size=512).path


@pytest.mark.parametrize(
    ("columns", "same", "norm", "residual"),
    [(4, 0.9, "batch", "linear"), (50, 0.95, "none", "none"), (50, 0.5, "layer", "linear")],
)
def test_norm_and_residual_follow_features_and_homophily(
    tmp_path: Path, columns: int, same: float, norm: str, residual: str
) -> None:
    request = read_request({"store": store_of(tmp_path, columns, same)})
    model = request.config.model
    assert (model.norm, model.residual) == (norm, residual)
    assert request.sources["model.norm"] == "the data"


def test_every_split_of_a_table_and_of_a_command_has_the_settings_of_its_own_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first split measures a low homophily; the second has too few labels to measure any."""
    monkeypatch.chdir(tmp_path)
    graph = TokenStore.open(store_of(tmp_path, 50, 0.5, splits=2)).graph
    splits = np.array(graph.splits)
    splits[1, :3] = 1
    store = write_store(tmp_path / "two.zarr", graph.replace(splits=splits), TokenSettings(1, 2, 1)).path
    configs = [read_request({"store": store, "split": split, "epochs": 1}).config for split in (0, 1)]
    assert [config.model.residual for config in configs] == ["linear", "none"]
    row = RowSpec(dataset="two", store=store, splits="0-1", set={"epochs": 1})
    assert [job.path for job in plan_jobs(TableSpec("two", [row]))] == [default_run_dir(config) for config in configs]
    small = ["--set", "model.width=8", "--threads", "1", "--epochs", "1", "--run-dir", "both", "--quiet"]
    with pytest.raises(SystemExit) as end:
        app(["run", "--store", str(store), "--splits", "0-1", *small])
    assert end.value.code == 0
    runs = [RunFolder(Path(f"both/seed0-split{split}")).config() for split in (0, 1)]
    assert [run.model.residual for run in runs] == ["linear", "none"]


def test_a_model_and_an_option_go_before_the_rule(tmp_path: Path) -> None:
    store = store_of(tmp_path, 50, 0.95)
    request = read_request({"store": store, "lr": 0.5}, assignments=["model.norm=none"])
    assert (request.config.lr, request.config.model.norm) == (0.5, "none")
    paper = read_request({"store": store, "model.name": "gmn-paper"}).config.model
    assert (paper.residual, paper.norm) == ("identity", "none")


def test_tokens_are_read_at_any_depth(tmp_path: Path) -> None:
    store = store_of(tmp_path, 50, 0.95)
    for layers in (1, 2, 3, 6):
        model = read_request({"store": store, "model.node_layers": layers}).config.model
        assert bool(model.blocks_after) == (layers > 1)
        assert model.reads_input_tokens == (layers == 1)


@pytest.mark.parametrize(
    ("train", "homophily", "residual"),
    [(140, None, "none"), (140, 0.2, "none"), (140, 0.02, None), (9000, 0.2, None), (9000, None, None)],
)
def test_few_labels_are_taken_as_homophilous_unless_measured_otherwise(
    train: int, homophily: float | None, residual: str | None
) -> None:
    facts = DataFacts(10_000, False, "node", train, columns=500, edge_features=False, homophily=homophily)
    assert choose_settings(facts, TrainConfig(store=Path("a.zarr"))).get("model.residual") == residual


@pytest.mark.parametrize(
    ("train", "columns", "homophily", "reads"),
    [
        (400, 500, 0.0, "last"),
        (400, 500, 0.5, "last"),
        (1500, 500, 0.5, "last"),
        (9000, 500, 0.5, "all"),
        (4000, 500, 0.0, "all"),
        (9000, 500, 0.0, "all"),
        (400, 8, 0.0, "all"),
    ],
)
def test_the_head_of_a_small_set_reads_the_last_layer(train: int, columns: int, homophily: float, reads: str) -> None:
    facts = DataFacts(10_000, False, "node", train, columns=columns, edge_features=False, homophily=homophily)
    chosen = choose_settings(facts, TrainConfig(store=Path("a.zarr")))
    assert chosen["model.head_reads"] == reads
    light = homophily > 0 and train < 5000
    wide = 256 if light else 128 if train > 5000 else None
    assert chosen.get("model.width") == wide, "wide where labels and columns are many, or layers few"
    assert (chosen.get("model.residual") == "none") == (homophily > 0)


@pytest.mark.parametrize(("train", "mode", "lr"), [(400, None, 0.002), (4000, None, 0.005), (4000, "batch", 0.002)])
def test_many_labels_allow_a_higher_rate(train: int, mode: str | None, lr: float) -> None:
    facts = DataFacts(10_000, False, "node", train, columns=500, edge_features=False)
    assert choose_settings(facts, TrainConfig(store=Path("a.zarr"), mode=mode))["lr"] == lr


@pytest.mark.parametrize("item", ["node", "graph", "link"])
def test_features_are_masked_only_on_request(item: str) -> None:
    facts = DataFacts(10_000, item == "graph", item, 4000, columns=8, edge_features=False)
    chosen = choose_settings(facts, TrainConfig(store=Path("a.zarr")))
    assert (chosen["model.feature_mask"], chosen["model.token_blocks"]) == (0.0, 2)


@pytest.mark.parametrize("item", ["node", "graph", "link"])
def test_one_of_several_repeats_is_drawn(item: str) -> None:
    facts = DataFacts(10_000, item == "graph", item, 4000, columns=8, edge_features=False, repeats=4)
    given = TrainConfig(store=Path("a.zarr"))
    assert choose_settings(facts, given)["s"] == 1
    assert "s" not in choose_settings(facts, given, ["s"])
    assert "s" not in choose_settings(replace(facts, repeats=1), given)


def test_patience_goes_with_the_default_epochs_alone() -> None:
    facts = DataFacts(10_000, False, "node", 4000, columns=500, edge_features=False)
    given = TrainConfig(store=Path("a.zarr"))
    assert choose_settings(facts, given)["patience"] == PATIENCE
    assert "patience" not in choose_settings(facts, given, ["epochs"])
    assert "patience" not in choose_settings(facts, replace(given, mode="batch"))


@pytest.mark.parametrize(("columns", "mode", "layers"), [(8, None, DEEP), (8, "batch", None), (500, None, None)])
def test_few_columns_are_looked_at_from_afar(columns: int, mode: str | None, layers: int | None) -> None:
    facts = DataFacts(10_000, False, "node", 4000, columns=columns, edge_features=False)
    chosen = choose_settings(facts, TrainConfig(store=Path("a.zarr"), mode=mode))
    assert chosen.get("model.node_layers") == layers


def test_with_few_labels_tokens_are_averaged_unless_anything_of_it_is_given(tmp_path: Path) -> None:
    store = store_of(tmp_path, 50, 0.95)
    model = read_request({"store": store}).config.model
    assert (model.encoder, model.token_layers, model.readout) == ("mean", 0, "mean")
    for key, value in (("model.readout", "last"), ("model.encoder", "local"), ("model.token_layers", 2)):
        asked = read_request({"store": store, key: value}).config.model
        assert asked.token_layers > 0
        assert getattr(asked, key.removeprefix("model.")) == value
    assert model.blocks_after == (1,), "of two layers"
    assert read_request({"store": store, "model.name": "gmn-one-direction"}).config.model.token_layers > 0


@pytest.mark.parametrize(
    ("array", "dtype", "value", "message"),
    [("indices", "<i4", 32768, "edges to nodes that are not there"), ("y", "<i8", 10**9, "labels outside")],
)
def test_a_forged_graph_is_told(tmp_path: Path, array: str, dtype: str, value: int, message: str) -> None:
    """With right checksums: `gmn-train settings` reads the graph before anything checks it."""
    store = tmp_path / "s.zarr"
    write_store(store, ring_graph(60, 60), TokenSettings(1, 1, 1))
    poke(store / "graph" / array, dtype, slice(None), value)
    seal(store, "graph")
    storage = LocalFolder(store)
    with pytest.raises(StoreCorruptError, match=message):
        measure_facts(storage, manifest_in(storage), 0)


@pytest.mark.parametrize(
    ("model", "train", "columns", "homophily", "hidden"),
    [
        ("gmn", 3600, 932, 0.0, 0.5),
        ("mpnn", 3600, 932, 0.0, None),  # message passing alone does not gain by it
        ("gmn", 3600, 932, 0.6, 0.8),  # and where neighbours share the class, for other reasons
        ("mpnn", 3600, 932, 0.6, 0.8),
        ("gmn", 9000, 932, 0.6, None),
        ("gmn", 3600, 8, 0.0, None),
        ("gmn", 1500, 932, 0.0, None),
        ("gmn", 9000, 932, 0.0, None),
        ("gmn", 3600, 932, None, None),
    ],
)
def test_features_are_hidden_where_only_they_tell_the_class(
    model: str, train: int, columns: int, homophily: float | None, hidden: float | None
) -> None:
    facts = DataFacts(10_000, False, "node", train, columns=columns, edge_features=False, homophily=homophily)
    given = TrainConfig(store=Path("s.zarr"))
    chosen = choose_settings(facts, replace(given, model=replace(given.model, name=model)))
    assert chosen.get("model.input_dropout") == hidden
    assert "model.input_dropout" not in choose_settings(facts, given, ["model.input_dropout"])


@pytest.mark.parametrize(
    ("item", "many", "columns", "expected"),
    [
        ("graph", True, 9, {"batch_size": 16, "model.dropout": 0.0}),
        ("node", True, 9, {"batch_size": 16, "model.dropout": 0.0}),
        ("link", False, 500, {"patience": PATIENCE, "model.node_scan": False, "model.input_dropout": 0.5}),
        ("link", False, 9, {"patience": PATIENCE, "model.node_scan": False}),
    ],
)
def test_many_graphs_and_links_have_lines_of_their_own(item: str, many: bool, columns: int, expected: dict) -> None:
    keys = ("batch_size", "patience", "model.dropout", "model.node_scan", "model.input_dropout")
    facts = DataFacts(10_000, many, item, 3000, columns=columns, edge_features=False)
    chosen = choose_settings(facts, TrainConfig(store=Path("a.zarr")))
    assert {key: chosen[key] for key in keys if key in chosen} == expected
    assert "batch_size" not in choose_settings(facts, TrainConfig(store=Path("a.zarr")), ("batch_size",))


@pytest.mark.parametrize(("many", "bare", "profile"), [(True, True, True), (True, False, False), (False, True, None)])
def test_graphs_without_features_are_told_by_their_degrees(many: bool, bare: bool, profile: bool | None) -> None:
    item = "graph" if many else "node"
    facts = DataFacts(10_000, many, item, 500, columns=0, edge_features=False, bare=bare)
    chosen = choose_settings(facts, TrainConfig(store=Path("s.zarr")))
    assert chosen.get("model.degree_profile") == profile
