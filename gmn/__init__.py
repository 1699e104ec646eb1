"""The pipeline from Python: `tokenize` a graph into a store, `train` from the store, `load_run` to predict.

    store = gmn.tokenize(data, m=2, M=8, s=4, path="mine.zarr")
    run = gmn.train(store, epochs=60)
    gmn.load_run(run.path).predict(store)

The store on disk is all that the two stages share, here as on the command line: no file of this package imports both.
Names are loaded when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmn.loader import TokenTensors as TokenTensors
    from gmn.loader import token_loader as token_loader
    from gmn.tokenizing import tokenize as tokenize
    from gmn.training import Run as Run
    from gmn.training import Watcher as Watcher
    from gmn.training import list_runs as list_runs
    from gmn.training import load_run as load_run
    from gmn.training import train as train
    from gmn.transform import AddTokens as AddTokens
    from gmn_pipeline import GmnError as GmnError
    from gmn_pipeline import Graph as Graph
    from gmn_pipeline import Task as Task
    from gmn_pipeline import TokenStore as TokenStore

_HOME = {
    "AddTokens": "gmn.transform",
    "GmnError": "gmn_pipeline",
    "Graph": "gmn_pipeline",
    "Run": "gmn.training",
    "Task": "gmn_pipeline",
    "TokenStore": "gmn_pipeline",
    "TokenTensors": "gmn.loader",
    "Watcher": "gmn.training",
    "__version__": "gmn_pipeline",
    "list_runs": "gmn.training",
    "load_run": "gmn.training",
    "token_loader": "gmn.loader",
    "tokenize": "gmn.tokenizing",
    "train": "gmn.training",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'gmn' has no attribute '{name}'")
