"""A thin map over parts on Dask: workers open the store themselves and write what they compute.

A task's arguments are a path and numbers. A task that fails is tried again, and one whose worker died is run by
another: its bytes are the same.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from socket import gethostname
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import GmnError, StoreError
from gmn_pipeline.place import StorePlace, as_place
from gmn_pipeline.store.format.schema import block_group
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.store.writing.verbs import has_group, write_block
from gmn_pipeline.types import Array
from gmn_prep.parts.encoding_parts import compute_rows, compute_shared, write_encoding_rows
from gmn_prep.parts.token_parts import open_tokenizer
from gmn_prep.phases import Phases
from gmn_prep.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from distributed import Client

RETRIES = 3
LOOK_SECONDS = 3.0
"""How often the number of workers is looked at."""
AGAIN = "run the same command again: it continues where it stopped"
_opening = Lock()


def map_tokens(client: "Client", path: StorePlace, fingerprint: str, blocks: dict[int, int], phases: Phases) -> None:
    """Write blocks, given by number with their count of nodes, on the workers."""
    place = str(path.absolute() if isinstance(path, Path) else path)
    tasks = [((place, fingerprint, number), nodes) for number, nodes in blocks.items()]
    _run(client, write_one_block, tasks, phases, "walks")


def map_encoding(
    client: "Client", path: Path, fingerprint: str, name: str, chunks: list[tuple[int, int]], phases: Phases
) -> None:
    """Compute ranges of an encoding's rows on the workers, which leave them beside the store."""
    tasks = [((str(path.absolute()), fingerprint, name, lo, hi), hi - lo) for lo, hi in chunks]
    _run(client, write_some_rows, tasks, phases, name.replace("_", " "))


def gather_encoding(
    client: "Client", place: StorePlace, fingerprint: str, name: str, chunks: list[tuple[int, int]], phases: Phases
) -> list[dict[str, Array]]:
    """As `map_encoding`, but the workers hand their rows over; returns them in the order of the ranges."""
    tasks = [((str(place), fingerprint, name, lo, hi), hi - lo) for lo, hi in chunks]
    rows: list[dict[str, Array]] = _run(client, compute_some_rows, tasks, phases, name.replace("_", " "))
    return rows


def write_one_block(path: str, fingerprint: str, number: int) -> None:
    """On a worker: tokenize one block and write it, unless it is there."""
    place = as_place(path)
    if has_group(place, block_group(number)):
        return
    store, tokenizer = _open(path, fingerprint)
    with ThreadPoolExecutor(1) as pool:
        block = tokenizer.block(int(store.block_ptr[number]), int(store.block_ptr[number + 1]), pool)
    write_block(place, number, block)


def write_some_rows(path: str, fingerprint: str, name: str, lo: int, hi: int) -> None:
    """On a worker: rows of an encoding."""
    write_encoding_rows(_open(path, fingerprint)[0], name, lo, hi)


def compute_some_rows(path: str, fingerprint: str, name: str, lo: int, hi: int) -> dict[str, Array]:
    """On a worker: rows of an encoding, which the coordinator is to have."""
    with _opening:
        shared = _shared(path, fingerprint, name)
    return compute_rows(_open(path, fingerprint)[0], shared, name, lo, hi)


@lru_cache(maxsize=1)
def _shared(path: str, fingerprint: str, name: str) -> dict[str, Array]:
    store = _opened(path, fingerprint)[0]
    return compute_shared(store.manifest, store.graph, name, threads=1)


def _open(path: str, fingerprint: str) -> tuple[TokenStore, Tokenizer]:
    with _opening:  # one thread of a worker opens, the others find it open
        return _opened(path, fingerprint)


@lru_cache(maxsize=1)
def _opened(path: str, fingerprint: str) -> tuple[TokenStore, Tokenizer]:
    place = as_place(path)
    if isinstance(place, Path) and not place.is_dir():
        raise StoreError(
            f"host {gethostname()} does not see {path}; --out must be a folder that all workers see under the same name"
        )
    store = TokenStore.open(path, unfinished=True)
    if store.fingerprint != fingerprint:
        raise StoreError(f"{path} was replaced by a store of other content while it was written; {AGAIN}")
    return store, open_tokenizer(store)


def _run(client: "Client", function: Callable[..., Any], tasks: list[Any], phases: Phases, name: str) -> list[Any]:
    """Run a function on the workers, for each task with its weight in nodes; returns the results. Raises StoreError."""
    from distributed import as_completed

    total = sum(weight for _, weight in tasks)
    workers = len(client.scheduler_info(n_workers=-1)["workers"])
    phases.say(f"{name}: {len(tasks):,} parts on {workers:,} Dask workers")
    futures: dict[Any, int] = {}  # number of each task, in their order
    results: list[Any] = [None] * len(tasks)
    try:
        with (
            _tell_when_no_worker_is_left(client, name, phases),
            client.as_current(),
            phases.phase(name, total, "nodes") as advance,
        ):
            for number, (arguments, _) in enumerate(tasks):
                futures[client.submit(function, *arguments, pure=False, retries=RETRIES)] = number
            for done, future in enumerate(as_completed(futures), start=1):
                number = futures[future]
                results[number] = future.result()
                advance(tasks[number][1])
                if 10 * done // len(tasks) > 10 * (done - 1) // len(tasks):
                    phases.tell_share(name, done, len(tasks))
    except GmnError as error:
        raise StoreError(f"a Dask worker could not go on: {error}") from None
    except Exception as error:  # a worker that keeps dying, a scheduler that is gone, a worker without the folder
        raise StoreError(f"the Dask cluster could not go on ({_line(error)}); {AGAIN}") from error
    finally:
        with suppress(Exception):
            client.cancel(list(futures))
            client.run(_forget)  # workers outlive this command
    return results


def _forget() -> None:
    """On a worker: let go of the store."""
    _opened.cache_clear()
    _shared.cache_clear()


@contextmanager
def _tell_when_no_worker_is_left(client: "Client", name: str, phases: Phases) -> Iterator[None]:
    """Dask waits for new workers without a word."""
    ended = Event()

    def look() -> None:
        before = 1
        while not ended.wait(LOOK_SECONDS):
            with suppress(Exception):  # a scheduler that is gone is told by the map itself
                workers = len(client.scheduler_info(n_workers=-1)["workers"])
                if not workers and before:
                    address = client.scheduler.address
                    phases.insist(f"{name}: no Dask worker is left; waiting for workers (dask worker {address})")
                if workers and not before:
                    phases.say(f"{name}: {workers:,} Dask workers have joined")
                before = workers

    watch = Thread(target=look, daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
