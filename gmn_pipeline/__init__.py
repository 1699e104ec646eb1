"""The contract of the pipeline: graph container, token store, configuration, errors, random numbers. No torch.

Names are loaded when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmn_pipeline.errors import GmnError as GmnError
    from gmn_pipeline.graph import Graph as Graph
    from gmn_pipeline.store.reader import TokenStore as TokenStore
    from gmn_pipeline.store.token_settings import TokenSettings as TokenSettings
    from gmn_pipeline.store.view import TokenBatch as TokenBatch
    from gmn_pipeline.store.view import TokenView as TokenView
    from gmn_pipeline.store.writer import StoreWriter as StoreWriter
    from gmn_pipeline.task import Task as Task

__version__ = "0.1.0"

_HOME = {
    "GmnError": "errors",
    "Graph": "graph",
    "StoreWriter": "store.writer",
    "Task": "task",
    "TokenBatch": "store.view",
    "TokenSettings": "store.token_settings",
    "TokenStore": "store.reader",
    "TokenView": "store.view",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"gmn_pipeline.{_HOME[name]}"), name)
    raise AttributeError(f"module 'gmn_pipeline' has no attribute '{name}'")
