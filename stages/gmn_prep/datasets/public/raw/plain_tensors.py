"""Read files of tensors, saved by torch or pickled, without running anything they name."""

import io
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.file_sizes import check_torch
from gmn_prep.datasets.public.raw.plain_pickle import PLAIN, read_plain_pickle


def load_torch(path: Path) -> Any:
    """What torch saved: tensors in lists, tuples and dicts. DatasetError where there is more."""
    import torch

    check_torch(path)
    try:
        with allowing([]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise DatasetError(
            f"{path.name} is refused: it holds more than tensors, which could run code; "
            "replace it with the published file"
        ) from error


@contextmanager
def allowing(known: list[Any]) -> Iterator[None]:
    """Let torch make just these classes of a file, and not those that PyG registers when it is imported.

    Where a file has a defaultdict, which torch does not fill, it gets a dict.
    """
    from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

    before = get_safe_globals()
    clear_safe_globals()
    add_safe_globals([*known, (_plain_dict, "collections.defaultdict")])
    try:
        yield
    finally:
        clear_safe_globals()
        add_safe_globals(before)


def _plain_dict(*_: Any) -> dict[Any, Any]:
    return {}


def load_pickled_tensors(path: Path) -> Any:
    """What Python pickled: tensors and numbers in lists, tuples and dicts. DatasetError where there is more."""
    import torch

    names: dict[tuple[str, str], Any] = {
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
        ("torch.storage", "_load_from_bytes"): _load_storage,
        ("collections", "OrderedDict"): OrderedDict,
        ("torch", "Size"): torch.Size,
    }
    return read_plain_pickle(path, {**PLAIN, **names})


def _load_storage(content: bytes) -> Any:
    """torch's own reader of a pickled storage unpickles anything; this one does not."""
    import torch

    with allowing([]):
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _rebuild_tensor(storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> Any:
    import torch

    if not isinstance(storage, torch.storage.TypedStorage):
        raise ValueError(f"a tensor on a {type(storage).__name__}")
    return torch._utils._rebuild_tensor(storage, offset, size, stride)  # checks sizes against the storage
