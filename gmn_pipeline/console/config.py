"""Settings as frozen dataclasses, filled from defaults < recipe or preset < TOML file < command-line flags.

Each field is declared and documented once, with `setting(...)`; `--help`, the TOML check and the error messages all
read that declaration. Dataclasses may nest: a nested one is a table in TOML and `table.key` in flags.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from gmn_pipeline.errors import ConfigError, nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

Config = TypeVar("Config")


def setting(default: Any = MISSING, *, help: str, group: str = "Settings", flag: str | None = None) -> Any:
    """A field of a config class. Without a default it must be given.

    group: the heading it stands under in `--help`. flag: its name on the command line, if not the field's.
    """
    metadata = {"help": help, "group": group, "flag": flag}
    if is_dataclass(default) or isinstance(default, dict | list):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def flag_name(item: "Field[Any]") -> str:
    """The option a field has on the command line, `--like-this` unless it was given another."""
    return item.metadata.get("flag") or "--" + item.name.replace("_", "-")


def load_config(
    cls: type[Config],
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    base: Mapping[str, Any] | None = None,
) -> Config:
    """Fill `cls` from its defaults, then `base`, then `file`, then `flags` (by field name, dotted for nested ones).

    Raises ConfigError for a file that cannot be read, an unknown key (naming the nearest), a value of the wrong type,
    or a missing one.
    """
    told = read_toml(file) if file is not None else {}
    _check_keys(cls, told, where=str(file))
    values = merge_tables(base or {}, told)
    for name, value in (flags or {}).items():
        _put(values, name.split("."), value)
    _check_keys(cls, values, where="the command line")
    return _build(cls, values)


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


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    for table in path[:-1]:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise ConfigError(f"'{'.'.join(path)}': '{table}' is a value, not a table")
    values[path[-1]] = value


def _check_keys(cls: type, values: Mapping[str, Any], where: str, prefix: str = "") -> None:
    hints = get_type_hints(cls)
    known = [f.name for f in fields(cls)]
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"unknown key '{prefix}{key}' in {where}{nearest(key, known)}; keys: {', '.join(known)}")
        if is_dataclass(hints[key]) and isinstance(value, dict):
            _check_keys(hints[key], value, where, f"{prefix}{key}.")


def _build(cls: type[Config], values: Mapping[str, Any]) -> Config:
    from pydantic import TypeAdapter, ValidationError

    missing = [
        f for f in fields(cls)  # type: ignore[arg-type]
        if f.default is MISSING and f.default_factory is MISSING and f.name not in values
    ]  # fmt: skip
    if missing:
        raise ConfigError(f"{flag_name(missing[0])} is missing: {missing[0].metadata['help']}")
    try:
        return TypeAdapter(cls).validate_python(dict(values))
    except ValidationError as error:
        key, message = first_problem(error)
        raise ConfigError(f"{key} = {error.errors()[0]['input']!r} is not allowed: {message}") from None


def first_problem(error: "ValidationError") -> tuple[str, str]:
    """Where a table does not fit its class, and what is wrong there."""
    first = error.errors()[0]
    return ".".join(str(part) for part in first["loc"]), first["msg"][:1].lower() + first["msg"][1:]
