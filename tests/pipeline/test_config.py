"""Config: defaults < TOML < flags, and what it says of mistakes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from gmn_pipeline.console.config import load_config, setting
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
    inner: Inner = field(default_factory=Inner, metadata={"help": "Inner.", "group": "Inner", "flag": None})


def test_flags_win_over_file_wins_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('name = "from file"\nsize = 5\nparts = ["x", "y"]\n[inner]\nwidth = 8\n')
    config = load_config(Example, file, {"size": 7})
    assert config == Example(name="from file", size=7, mode="fast", parts=("x", "y"), inner=Inner(8))
    assert load_config(Example, file, {"inner.width": 9}).inner.width == 9


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ('nme = "x"', {}, "unknown key 'nme'.*did you mean 'name'"),
        ('name = "x"\n[inner]\nwdth = 1', {}, "unknown key 'inner.wdth'.*did you mean 'width'"),
        ('name = "x"\nsize = "big"', {}, "size = 'big'"),
        ('name = "x"', {"mode": "medium"}, "mode = 'medium'.*'fast' or 'slow'"),
        ("size = 1", {}, "--name is missing: A name."),
        ("name = [", {}, "not valid TOML"),
        ('name = "x"\ninner = 3', {"inner.width": 1}, "not a table"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, flags: dict, message: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_config(Example, file, flags)


def test_missing_file() -> None:
    with pytest.raises(ConfigError, match="there is no config file"):
        load_config(Example, Path("nowhere.toml"))
