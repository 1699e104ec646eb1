"""Settings as frozen dataclasses, filled layer by layer: defaults < recipe < model < TOML file < command line.

Each field is declared and documented once, with `setting(...)`. `--help`, the TOML check, error messages and the
identity of a run all read that declaration. Dataclasses may nest: a nested one is a table in TOML and `table.key` on
the command line.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.place import StoreUrl
from gmn_pipeline.tables import Table

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Config = TypeVar("Config")


def setting(
    default: Any = MISSING,
    *,
    help: str,
    group: str = "Settings",
    flag: str | None = None,
    affects_result: bool = True,
    names: Table[Any] | None = None,
    also: tuple[str, ...] = (),
) -> Any:
    """A field of a config class. Without a default it must be given.

    Args:
        help: one line for `--help`.
        group: the heading it stands under in `--help`.
        flag: its name on the command line, if not the field's.
        affects_result: False for what changes speed or place only; it is no part of a run's identity.
        names: the table whose names it takes.
        also: further words it takes.
    """
    metadata = {
        "help": help, "group": group, "flag": flag, "affects_result": affects_result, "names": names, "also": also,
    }  # fmt: skip
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def flag_name(item: "Field[Any]") -> str:
    """The option of a field on the command line: `--like-this`, unless it has another."""
    return item.metadata.get("flag") or "--" + item.name.replace("_", "-")


@dataclass(frozen=True)
class Layer:
    """Values from one source: a nested table, or dotted keys."""

    source: str
    values: Mapping[str, Any]


def load_config(cls: type[Config], *layers: Layer) -> Config:
    """Fill `cls` from its defaults and then from each layer; later layers win.

    Raises ConfigError for an unknown key (naming the nearest), a value of the wrong type, or a missing one.
    """
    values: dict[str, Any] = {}
    for layer in layers:
        table = nest(layer.values)
        _check_keys(cls, table, layer.source)
        values = merge_tables(values, table)
    return _build(cls, values)


def sources_of(*layers: Layer) -> dict[str, str]:
    """By dotted key, the layer whose value counts."""
    return {key: layer.source for layer in layers for key in flatten(nest(layer.values))}


def read_toml(file: Path) -> dict[str, Any]:
    """A TOML file as a dict; ConfigError where it is missing or malformed."""
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no config file {file}; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None


def merge_tables(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables in one; where both have a key, `above` wins, table by table."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge_tables(merged[key], value) if both else value
    return merged


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested tables."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".")
        table = nested
        for part in path:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"'{key}': '{part}' is a value, not a table")
        table[last] = merge_tables(table.get(last, {}), value) if isinstance(value, Mapping) else value
    return nested


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat.update(flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value})
    return flat


def walk_fields(cls: type, prefix: str = "") -> Iterator[tuple[str, "Field[Any]"]]:
    """(dotted key, field) of every setting, nested ones after the others."""
    hints = get_type_hints(cls)
    nested = [f for f in fields(cls) if is_dataclass(hints[f.name])]
    yield from ((prefix + f.name, f) for f in fields(cls) if f not in nested)
    for f in nested:
        yield from walk_fields(hints[f.name], f"{prefix}{f.name}.")


def as_table(config: Any) -> dict[str, Any]:
    """The settings as TOML takes them: nested tables without None, paths as text."""
    table: dict[str, Any] = {}
    for f in fields(config):
        value = getattr(config, f.name)
        if isinstance(value, Path | StoreUrl):
            table[f.name] = str(value)
        elif is_dataclass(value):
            table[f.name] = as_table(value)
        elif value is not None:
            table[f.name] = list(value) if isinstance(value, tuple) else value
    return table


def identity(config: Any, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """By dotted key, the settings that results depend on."""
    flat = flatten(as_table(config))
    kept = [key for key, f in walk_fields(type(config)) if f.metadata["affects_result"] and key not in without]
    return {key: flat[key] for key in kept if key in flat}


def check_words(config: Any) -> None:
    """ConfigError where a field holds a word that its annotation or its table of names does not allow."""
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        allowed = allowed_words(type(config), name, hint)
        if allowed and isinstance(value, str) and value not in allowed:
            raise ConfigError(f"{name} is '{value}'; allowed: {', '.join(allowed)}{nearest(value, allowed)}")


def allowed_words(cls: type, name: str, hint: Any) -> list[str]:
    """The words a field takes; empty where any text, or none, is allowed."""
    metadata = next(f.metadata for f in fields(cls) if f.name == name)
    words = [*(metadata.get("names") or ()), *metadata.get("also", ())]
    for part in (hint, *get_args(hint)):
        if get_origin(part) is Literal:
            words += get_args(part)
    return words


def _check_keys(cls: type, values: Mapping[str, Any], where: str, prefix: str = "") -> None:
    hints = get_type_hints(cls)
    known = [f.name for f in fields(cls)]
    for key, value in values.items():
        if key not in known:
            elsewhere = [dotted for dotted, f in walk_fields(cls) if f.name == key]
            near = f"; did you mean '{elsewhere[0]}'?" if elsewhere else nearest(key, known)
            raise ConfigError(f"unknown key '{prefix}{key}' in {where}{near}; keys: {', '.join(known)}")
        if is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise ConfigError(f"'{prefix}{key}' in {where} is a table, not a value; set {prefix}{key}.NAME instead")
            _check_keys(hints[key], value, where, f"{prefix}{key}.")


def _build(cls: type[Config], values: Mapping[str, Any]) -> Config:
    from pydantic import ValidationError

    missing = [
        f for f in fields(cls)  # type: ignore[arg-type]
        if f.default is MISSING and f.default_factory is MISSING and f.name not in values
    ]  # fmt: skip
    if missing:
        raise ConfigError(f"{flag_name(missing[0])} is missing: {missing[0].metadata['help']}")
    try:
        made: Config = adapter_of(cls).validate_python(dict(values))
    except ValidationError as error:
        key, message = first_problem(error)
        for dotted, hint in _union_fields(cls):
            if key.startswith(f"{dotted}."):  # one error per member of the union
                key, message = dotted, f"give {_join(_words_of(hint))}"
        raise ConfigError(f"{key} = {error.errors()[0]['input']!r} is not allowed: {message}") from None
    return made


def _union_fields(cls: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, annotation) of settings that take values of several kinds."""
    for name, hint in get_type_hints(cls).items():
        if is_dataclass(hint):
            yield from _union_fields(hint, f"{prefix}{name}.")
        elif get_origin(hint) in (Union, UnionType):
            yield prefix + name, hint


WORDS = {bool: ["true", "false"], int: ["a whole number"], float: ["a number"], Path: ["a path"]}


def _words_of(hint: Any) -> list[str]:
    """What an annotation takes, in words."""
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    if get_origin(hint) is tuple:
        return [f"a list of {_words_of(get_args(hint)[0])[0].removeprefix('a ')}s"]
    if parts := get_args(hint):
        return [word for part in parts if part is not type(None) for word in _words_of(part)]
    return WORDS.get(hint, ["text"])


def _join(words: list[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


_ADAPTERS: "dict[type, TypeAdapter[Any]]" = {}


def adapter_of(cls: type) -> "TypeAdapter[Any]":
    """Checks tables and makes them instances of a dataclass. Kept: to build one takes longer than to open a store."""
    from pydantic import TypeAdapter

    if cls not in _ADAPTERS:
        _ADAPTERS[cls] = TypeAdapter(cls)
    return _ADAPTERS[cls]


def fit_table(cls: type[Config], table: Mapping[str, Any], file: Path) -> Config:
    """The table of a file as an instance of its class; ConfigError says in one line where it does not fit."""
    from pydantic import ValidationError

    try:
        made: Config = adapter_of(cls).validate_python(dict(table))
    except ValidationError as error:
        raise ConfigError(f"{file}: {': '.join(first_problem(error))}") from None
    return made


def first_problem(error: "ValidationError") -> tuple[str, str]:
    """Where a table does not fit its class, and what is wrong there."""
    first = error.errors()[0]
    return ".".join(str(part) for part in first["loc"]), first["msg"][:1].lower() + first["msg"][1:]
