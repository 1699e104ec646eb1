"""Stage one from Python: a graph in memory, a file or a dataset's name in; a token store out."""

from os import PathLike
from typing import Any

from gmn_pipeline import TokenStore
from gmn_pipeline.console.config import Layer, load_config
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.place import as_place


def tokenize(
    data: Any,
    *,
    m: int | None = None,
    M: int | None = None,
    s: int | None = None,
    path: str | PathLike[str] | None = None,
    recipe: str | None = "none",
    progress: bool = False,
    quiet: bool = False,
    **settings: Any,
) -> TokenStore:
    """Make the token store of a graph, or find that it exists; returns it opened.

    data: a `Graph`, a PyG `Data` or a list of them, a dict of arrays; or a dataset's name, or the path of your own
    file, as `gmn-prep tokenize --dataset` takes them. m, M, s: as there, with its defaults. path: where the store goes;
    a graph in memory needs one. settings: any other option of `gmn-prep tokenize`, such as `lap_pe=8`,
    `ordering=("degree", "pagerank")`, `task="node-regression"` or `force=True`. recipe: a dataset's recipe whose
    settings to begin with.

    Prints to stderr how the data was understood: notes, task, classes, features, splits. progress: show bars, too.
    quiet: print nothing.

    Raises GmnError in one line.
    """
    from gmn_prep.phases import Phases
    from gmn_prep.tokenize import tokenize as run
    from gmn_prep.tokenize_settings import TokenizeConfig, read_request

    given = {"m": m, "M": M, "s": s}
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None} | settings
    if path is not None:
        values["out"] = as_place(path)
    shown = Phases.for_person(silent=quiet) if progress or quiet else Phases("notes")
    with shown as phases:
        if isinstance(data, str | PathLike):
            outcome = run(read_request(None, {"dataset": str(data), **values}, recipe), phases)
        else:
            if path is None:
                raise ConfigError("a graph in memory needs a place for its store; give path='mine.zarr'")
            config = load_config(TokenizeConfig, Layer("the call", {"dataset": as_place(path).stem, **values}))
            outcome = run(config, phases, data=data)
    return TokenStore.open(outcome.path)
