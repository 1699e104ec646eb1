"""What others published, from published.toml: the paper's figures by model, and the public ones of a dataset."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from gmn_pipeline.console.config import fit_table, read_toml
from gmn_train.tables.spec import STRICT

PUBLISHED = Path(__file__).parent / "published.toml"


@dataclass(frozen=True)
class Figure:
    """A public figure and what is known of it. Numbers are text, so that 0.7460 stays 0.7460."""

    __pydantic_config__ = STRICT
    value: str
    of: str
    source: str
    hand: Literal["first", "second"]
    """first: from its source; second: from a later paper that cites it."""
    std: str | None = None
    over: str | None = None
    """Runs or splits. None: unknown."""
    graph_network: bool = True

    @property
    def text(self) -> str:
        """`0.9899 ± 0.0016 (BuNN, runs unknown, second-hand)`."""
        spread = f" ± {self.std}" if self.std else ""
        return f"{self.value}{spread} ({self.of}, {self.over or 'runs unknown'}, {self.hand}-hand)"


@dataclass(frozen=True)
class Published:
    """All that others report for a dataset."""

    __pydantic_config__ = STRICT
    paper: dict[str, str] = field(default_factory=dict)
    """The paper's figures, by our model's name."""
    figure: list[Figure] = field(default_factory=list)
    """The best first."""

    @property
    def best(self) -> str | None:
        """The best figure, and the best of graph networks where that is another."""
        if not self.figure:
            return None
        network = next((figure for figure in self.figure if figure.graph_network), None)
        if network is None or network is self.figure[0]:
            return self.figure[0].text
        return f"{self.figure[0].text}; best of graph networks: {network.text}"


@cache
def published_datasets() -> list[str]:
    """The datasets that others report figures for."""
    return list(read_toml(PUBLISHED))


@cache
def published(dataset: str) -> Published:
    """What others report for a dataset; nothing where it is none of theirs."""
    return fit_table(Published, read_toml(PUBLISHED).get(dataset, {}), PUBLISHED)
