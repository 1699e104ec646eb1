"""What a table's TOML file says, checked before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gmn_pipeline.console.config import fit_table, merge_tables, read_toml
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.format.naming import default_store, store_stem
from gmn_train.model.tables import MODELS
from gmn_train.settings.request import parse_numbers

STRICT = {"extra": "forbid"}


@dataclass(frozen=True)
class RowSpec:
    """One line of the table: a model on a dataset, over seeds and splits."""

    __pydantic_config__ = STRICT
    dataset: str
    """A name of `gmn-prep datasets`."""
    model: str = "gmn"
    """A name of `gmn-train models`."""
    label: str | None = None
    """Name of the line. Default: the model's name."""
    seeds: str = "0"
    splits: str = "0"
    set: dict[str, Any] = field(default_factory=dict)
    """Settings of `gmn-train run` to change."""
    tokenize: list[str] = field(default_factory=list)
    """Further options of `gmn-prep tokenize` if the store is missing."""
    store: StorePlace | None = None
    """Default: data/NAME.zarr."""
    paper: bool | None = None
    """Whether to show the paper's figure of the model. Default: only if the row has no label."""
    x: float | None = None
    """Where the line stands in the plot."""
    series: str | None = None
    """The curve of the plot it belongs to."""

    @property
    def name(self) -> str:
        return self.label or self.model

    @property
    def runs(self) -> int:
        return len(parse_numbers(self.seeds, "seeds")) * len(parse_numbers(self.splits, "splits"))

    @property
    def store_path(self) -> StorePlace:
        return self.store or default_store(store_stem(self.dataset))

    @property
    def assignments(self) -> list[str]:
        """`set` as options of --set."""
        return [f"{key}={_toml(value)}" for key, value in self.set.items()]


@dataclass(frozen=True)
class TableSpec:
    """A whole file."""

    __pydantic_config__ = STRICT
    title: str
    row: list[RowSpec]
    note: str = ""
    plot: Literal["x", "epoch", ""] = ""
    xlabel: str = ""
    measure: Literal["results", "cost"] = "results"
    """cost: seconds, memory and size only."""


def read_spec(file: Path) -> TableSpec:
    """A table's file; ConfigError says in one line what is wrong with it."""
    table = read_toml(file)
    shared = table.pop("defaults", {})
    table["row"] = [merge_tables(shared, row) for row in table.get("row", [])]
    spec = fit_table(TableSpec, table, file)
    if not spec.row:
        raise ConfigError(f"{file} has no [[row]]; a row names a dataset and a model")
    check_rows(file, spec.row)
    return spec


def check_rows(file: Path, rows: Sequence[RowSpec]) -> None:
    """ConfigError where a row's model or numbers are unknown, or two rows have one name."""
    names = [row.name for row in rows]
    for row in rows:
        MODELS.find(row.model)
        for what in ("seeds", "splits"):
            parse_numbers(getattr(row, what), what)
        if names.count(row.name) > 1:
            raise ConfigError(f"{file}: two rows are called '{row.name}'; give one of them another label")


def _toml(value: Any) -> str:
    import tomli_w

    if isinstance(value, list):  # in one line, as a command takes it
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"x": value}).partition("=")[2].strip()
