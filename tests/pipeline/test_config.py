"""Config: defaults < TOML < flags, and what it says of mistakes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from gmn_pipeline.console.config import Layer, identity, load_config, read_toml, setting, sources_of
from gmn_pipeline.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    width: int = setting(64, help="Width.")


@dataclass(frozen=True)
class Example:
    name: str = setting(help="A name.")
    size: int = setting(3, help="A size.")
    mode: Literal["fast", "slow"] = setting("fast", help="A mode.")
    parts: tuple[str, ...] = setting(("a",), help="Parts.")
    speed: int = setting(1, help="Changes no result.", affects_result=False)
    inner: Inner = setting(Inner, help="Inner.")


def load(file: Path, flags: dict) -> Example:
    return load_config(Example, Layer(str(file), read_toml(file)), Layer("the command line", flags))


def test_flags_win_over_file_wins_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('name = "from file"\nsize = 5\nparts = ["x", "y"]\n[inner]\nwidth = 8\n')
    config = load(file, {"size": 7})
    assert config == Example(name="from file", size=7, mode="fast", parts=("x", "y"), inner=Inner(8))
    assert load(file, {"inner.width": 9}).inner.width == 9
    recipe, flags = Layer("recipe", {"inner": {"width": 4}}), Layer("flags", {"inner.width": 9})
    sources = sources_of(recipe, Layer("file", read_toml(file)), flags)
    assert sources == {"inner.width": "flags", "name": "file", "size": "file", "parts": "file"}


def test_identity_is_what_results_depend_on() -> None:
    one, other = Example("a", speed=1), Example("a", speed=7)
    assert identity(one) == identity(other)
    assert identity(one) != identity(Example("a", inner=Inner(65)))
    assert "size" not in identity(one, without=("size",))


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ('nme = "x"', {}, "unknown key 'nme'.*did you mean 'name'"),
        ('name = "x"\n[inner]\nwdth = 1', {}, "unknown key 'inner.wdth'.*did you mean 'width'"),
        ('name = "x"\nsize = "big"', {}, "size = 'big'"),
        ('name = "x"', {"mode": "medium"}, "mode = 'medium'.*'fast' or 'slow'"),
        ("size = 1", {}, "--name is missing: A name."),
        ("name = [", {}, "not valid TOML"),
        ('name = "x"\ninner = 3', {"inner.width": 1}, "'inner' in .* is a table, not a value"),
        ('name = "x"\nwidth = 3', {}, "unknown key 'width'.*did you mean 'inner.width'"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, flags: dict, message: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(file, flags)


def test_missing_file() -> None:
    with pytest.raises(ConfigError, match="there is no config file"):
        read_toml(Path("nowhere.toml"))
