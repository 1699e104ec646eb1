"""What `gmn-train settings` and `gmn-train models` print."""

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any, get_type_hints

from rich.console import Console

from gmn_pipeline.console.config import allowed_words, walk_fields
from gmn_pipeline.console.output import plain_table, print_json, two_columns
from gmn_train.model.tables import MODELS
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.run_settings import TrainConfig

WITH_A_STORE = "Some defaults follow from the data: `gmn-train settings --store STORE` shows what a run takes, and why."


def print_models() -> None:
    """Every name that --model takes."""
    Console().print(two_columns("", [(name, model.line) for name, model in MODELS.items()]))


def print_settings(*, as_json: bool) -> None:
    """Every setting with its default and meaning. Of a run, recipe and data change some: see `print_values`."""
    rows = []
    for key, item in walk_fields(TrainConfig):
        cls = ModelConfig if key.startswith("model.") else TrainConfig
        words = allowed_words(cls, item.name, get_type_hints(cls)[item.name])
        default = "required" if item.default is MISSING else "automatic" if item.default is None else item.default
        rows.append((key, default, item.metadata["help"] + (f" ({' | '.join(words)})" if words else "")))
    if as_json:
        print_json({key: default for key, default, _ in rows})
    else:
        _print_table(("setting", "default", "meaning"), rows)
        print(WITH_A_STORE)


def print_values(values: Mapping[str, tuple[Any, str]], *, as_json: bool) -> None:
    """Every setting of a run with the value it takes and where that came from."""
    if as_json:
        print_json({key: {"value": value, "from": source} for key, (value, source) in values.items()})
    else:
        rows = [
            (key, "automatic" if value is None and source != "default" else value, source)
            for key, (value, source) in values.items()
        ]
        _print_table(("setting", "value", "from"), rows)
        if values["store"][0] is None:
            print(WITH_A_STORE)


def _print_table(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    table = plain_table()
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "setting")
    for row in rows:
        table.add_row(*map(str, row))
    Console(markup=False).print(table)
