"""A `torch.utils.data` loader over a store, for people with a training loop of their own. Needs neither stage."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gmn_pipeline import TokenSettings, TokenStore, TokenView
from gmn_pipeline.place import StorePlace, StoreUrl, as_place
from gmn_pipeline.types import Array


@dataclass(frozen=True)
class TokenTensors:
    """The tokens of B nodes, L each, as tensors; laid out as `TokenBatch` says."""

    node_ids: Tensor
    """(B,)"""
    nodes: Tensor
    """(N,) node ids of all tokens, one token after the other."""
    node_ptr: Tensor
    """(B*L + 1,) token t's nodes are nodes[node_ptr[t]:node_ptr[t+1]]."""
    edges: Tensor
    """(E, 2) pairs of indices into the token's node list."""
    edge_ptr: Tensor
    """(B*L + 1,)"""
    walks: Tensor
    """(B, W) every walk as indices into its token's node list."""
    length: int
    """L: tokens per node."""

    def to(self, device: str | torch.device) -> "TokenTensors":
        """The same on another device."""
        return replace(self, **{name: tensor.to(device) for name, tensor in vars(self).items() if name != "length"})


class TokenDataset(Dataset[int]):
    """The nodes of a store; a list of places gives their tokens at once. Worker processes open the store themselves."""

    def __init__(self, path: StorePlace, settings: TokenSettings, nodes: Array) -> None:
        self.path, self.settings, self.nodes = path, settings, nodes
        self._view: TokenView | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None}  # mapped files stay in their process

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, place: int) -> Any:
        return self.__getitems__([place])

    def __getitems__(self, places: Sequence[int]) -> TokenTensors:
        if self._view is None:
            t = self.settings
            self._view = TokenStore.open(self.path).view(t.m, t.M, t.s)
        batch = self._view.gather(self.nodes[np.asarray(places)])
        assert batch.edges is not None
        assert batch.edge_ptr is not None
        assert batch.walks is not None
        return TokenTensors(
            node_ids=_tensor(batch.node_ids),
            nodes=_tensor(batch.nodes),
            node_ptr=_tensor(batch.node_ptr),
            edges=_tensor(batch.edges),
            edge_ptr=_tensor(batch.edge_ptr),
            walks=_tensor(batch.walks),
            length=batch.length,
        )


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(array.astype(np.int64))


def token_loader(
    store: TokenStore | str | PathLike[str],
    nodes: Any = None,
    *,
    batch_size: int = 1024,
    m: int | None = None,
    M: int | None = None,
    s: int | None = None,
    **options: Any,
) -> "DataLoader[Any]":
    """A loader of `TokenTensors`, `batch_size` nodes at a time.

    nodes: which, all unless given. m, M, s: a view no larger than the store; all that is stored unless given. options:
    of `torch.utils.data.DataLoader`, such as `shuffle=True` or `num_workers=2`. Raises StoreError, ConfigError.
    """
    opened = store if isinstance(store, TokenStore) else TokenStore.open(as_place(store))
    view = opened.view(m, M, s)
    ids = np.arange(opened.num_nodes) if nodes is None else np.asarray(nodes, np.int64)
    if isinstance(opened.path, StoreUrl) and options.get("num_workers"):
        options.setdefault("multiprocessing_context", "spawn")  # the client of object stores hangs after a fork
    place = opened.path.absolute() if isinstance(opened.path, Path) else opened.path
    dataset = TokenDataset(place, view.settings, ids)
    return DataLoader(dataset, batch_size=batch_size, collate_fn=_as_it_is, **options)


def _as_it_is(batch: Any) -> Any:
    return batch
