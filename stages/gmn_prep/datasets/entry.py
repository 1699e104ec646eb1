"""The types of the dataset table: a user's options, a line of the table, and a loaded dataset."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.task import Task

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_prep.datasets.public.raw.raw_files import RawFiles


@dataclass(frozen=True)
class Scratch:
    """Where a dataset that need not fit into memory is built, and within what."""

    folder: Path
    sort_bytes: int
    """Memory of the sort; what does not fit goes to the folder."""
    threads: int


@dataclass(frozen=True)
class DatasetOptions:
    """Everything a user can say about a dataset."""

    data_root: Path = Path("data/raw")
    """Where raw files of public datasets lie, or are downloaded to."""
    nodes: int | None = None
    """Generators of one graph: how many nodes."""
    graphs: int | None = None
    """Generators of many graphs: how many."""
    seed: int = 0
    """Generators, the random split of a file that brings none, and held-out edges."""
    directed: bool = False
    """Keep the direction of edges; otherwise every edge goes both ways."""
    task: str | None = None
    """`link` for held-out edges; the user's files: item, kind, or both, as `graph-regression`."""
    metric: str | None = None
    """The user's files and held-out edges: the metric. Default: the kind's."""
    classes: int | None = None
    """The user's files: number of classes. Default: inferred from the labels."""
    node_table: Path | None = None
    """The user's edge lists: the table of nodes, unless it lies beside the edges under its usual name."""

    src: str | None = None
    """The user's edge lists: the column of sources. Default for this and the next ones: their usual names."""
    dst: str | None = None
    """The column of targets."""
    id: str | None = None
    """The column of ids in the table of nodes."""
    label: str | None = None
    """The column of labels in the table of nodes; several with commas between."""
    time: str | None = None
    """A column of the table of nodes to split by: the past is for training, the latest for testing."""
    features: tuple[str, ...] = ()
    """Columns that are features. Default: all others."""
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    header: bool = True
    """False where tables have no first row of names: columns are 0, 1, 2, ..."""

    scratch: Scratch | None = None
    """Build the graph on disk and map it: set by --memory."""

    def graph_count(self, default: int) -> int:
        """`graphs` of a generator, or its default; DatasetError where that is none."""
        graphs = default if self.graphs is None else self.graphs
        if graphs < 1:
            raise DatasetError(f"there is no dataset of {graphs} graphs; give --graphs 1 or more")
        return graphs


@dataclass(frozen=True)
class Dataset:
    """One line of the table."""

    name: str
    load: "Callable[[DatasetOptions], Graph]"
    predicts: Task
    size: str
    source: str
    takes: dict[str, Any] = field(default_factory=dict)
    """The options that change the content, with what they are when not given."""
    raw: "RawFiles | None" = None
    """The files it is read from; None for a generator."""

    @property
    def task(self) -> str:
        """The task in words, its item first."""
        count = self.predicts.classes
        words = {
            "binary": "binary",
            "multiclass": f"{count} classes",
            "multilabel": f"{count} labels",
            "regression": f"{count} targets",
        }
        return f"{self.predicts.item}, {words[self.predicts.kind]}"

    @property
    def metric(self) -> str:
        return self.predicts.metric


@dataclass(frozen=True)
class LoadedDataset:
    name: str
    """What a store of it is called."""
    graph: "Graph"
    notices: tuple[str, ...] = ()
    """What the user should know: edges dropped, a split drawn, another size than asked for."""


def lazy(module: str, function: str, *arguments: Any) -> Callable[[DatasetOptions], Any]:
    """`function(*arguments, options)` of a module of this folder, imported only when called.

    So the table costs no import of Numba, scipy or torch.
    """

    def call(options: DatasetOptions) -> Any:
        return getattr(import_module(f"gmn_prep.datasets.{module}"), function)(*arguments, options)

    return call
