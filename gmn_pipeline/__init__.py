"""The contract of the pipeline: graph container, token store, configuration, errors, random numbers. No torch.

Names are loaded when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gmn_pipeline.kernel_cache import choose_cache_folder

if TYPE_CHECKING:
    from gmn_pipeline.errors import GmnError as GmnError
    from gmn_pipeline.graph import Graph as Graph
    from gmn_pipeline.store.format.token_settings import TokenSettings as TokenSettings
    from gmn_pipeline.store.reading.reader import TokenStore as TokenStore
    from gmn_pipeline.store.reading.view import TokenBatch as TokenBatch
    from gmn_pipeline.store.reading.view import TokenView as TokenView
    from gmn_pipeline.store.writing.writer import StoreWriter as StoreWriter
    from gmn_pipeline.task import Task as Task

__version__ = "0.1.0"

choose_cache_folder()

_HOME = {
    "GmnError": "errors",
    "Graph": "graph",
    "StoreWriter": "store.writing.writer",
    "Task": "task",
    "TokenBatch": "store.reading.view",
    "TokenSettings": "store.format.token_settings",
    "TokenStore": "store.reading.reader",
    "TokenView": "store.reading.view",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"gmn_pipeline.{_HOME[name]}"), name)
    raise AttributeError(f"module 'gmn_pipeline' has no attribute '{name}'")
