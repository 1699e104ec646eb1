"""Read pickles of plain data without running anything they name.

A pickle is a program: it may call whatever it can import. Here every name that it imports is looked up in a table of
inert stand-ins; any other name ends the reading. Arrays are made by us, from the given bytes and type.
"""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, one_line
from gmn_pipeline.types import Array

MOST_ENTRIES = 1 << 26
"""Of a sparse matrix that is made dense; PubMed's has 9 million."""
Names = Mapping[tuple[str, str], Callable[..., Any]]


class Record:
    """Stands for an object: the arguments it was made with and the state it was given, and nothing else."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class ArrayRecord(Record):
    """Stands for a numpy array."""

    def values(self) -> Array:
        """The array. ValueError where the bytes are not numbers of its type and shape."""
        _, shape, dtype, fortran, content = self.state
        code, order = dtype.arguments[0], dtype.state[1]
        if code[:1] not in "biuf":
            raise ValueError(f"an array of type {code!r}")
        content = content.encode("latin1") if isinstance(content, str) else content  # as Python 2 wrote it
        flat = np.frombuffer(content, np.dtype(code).newbyteorder(order))
        return flat.reshape(shape, order="F" if fortran else "C")


class SparseRecord(Record):
    """Stands for a scipy matrix in compressed sparse rows."""

    def values(self) -> Array:
        """The matrix, dense."""
        from scipy.sparse import csr_matrix

        data, indices, indptr = (self.state[name].values() for name in ("data", "indices", "indptr"))
        rows, columns = self.state.get("_shape", self.state.get("shape"))
        if rows * columns > MOST_ENTRIES:
            raise ValueError(f"a matrix of {rows:,} by {columns:,}")
        matrix = csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
        return np.asarray(matrix.todense())


class TableRecord(dict[Any, Any]):
    """Stands for a defaultdict: a dict, whatever its default would be."""

    def __init__(self, *_: Any) -> None:
        super().__init__()


def _bytes(text: str, _encoding: str = "latin1") -> bytes:
    return text.encode("latin1")


def _instance(kind: Callable[..., Any], *_: Any) -> Any:
    return kind()


PLAIN: Names = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): ArrayRecord for core in ("core", "_core")},
    ("numpy", "ndarray"): Record,
    ("numpy", "dtype"): Record,
    **{(f"scipy.sparse.{module}", "csr_matrix"): SparseRecord for module in ("csr", "_csr")},
    ("_codecs", "encode"): _bytes,
    **{(module, "_reconstructor"): _instance for module in ("copyreg", "copy_reg")},
    **{(module, name): Record for module in ("builtins", "__builtin__") for name in ("object", "list")},
    ("collections", "defaultdict"): TableRecord,
}
"""What files of numbers name: numpy's arrays, scipy's sparse rows and Python's tables, as Python 2 and 3 spell them."""


class _PlainUnpickler(pickle.Unpickler):
    names: Names = PLAIN

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.names:
            raise DatasetError(f"it names {module}.{name}, which data does not need and which could run code")
        return self.names[module, name]


def read_plain_pickle(path: Path, names: Names = PLAIN) -> Any:
    """What a pickle holds, with arrays as numpy's. Raises DatasetError in one line for a file that holds more."""
    try:
        with path.open("rb") as file:
            unpickler = _PlainUnpickler(file, encoding="latin1")
            unpickler.names = names
            content = unpickler.load()
        return content.values() if isinstance(content, ArrayRecord | SparseRecord) else content
    except DatasetError as error:
        raise DatasetError(f"{path.name} is refused: {error}; replace it with the published file") from None
    except Exception as error:  # bytes can be wrong in as many ways as there are opcodes
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise DatasetError(f"{path.name} is no pickle of plain data ({reason}); replace it") from error
