"""What processes of the tests of writing do; started with `commands.start`, arguments in `sys.argv`."""

import random
import resource
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.store.writing.verbs import finalise_store, missing_groups, write_block
from gmn_prep.tokens.tokenizer import Tokenizer
from tests.stores import ring_graph, write_store


def write() -> None:
    """PATH [BYTES]: a store, the way the command writes it. BYTES: no file can be larger."""
    path, *limit = sys.argv[1:]
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), -1))
    write_store(Path(path), ring_graph(400, 300), TokenSettings(4, 3, 2), block_size=10)


def write_blocks() -> None:
    """PATH SEED: every block of a store that is there, in an order of its own; then the store is finished."""
    path = Path(sys.argv[1])
    store = TokenStore.open(path, unfinished=True)
    tokenizer = Tokenizer.of(store.graph, store.settings)
    numbers = list(range(store.manifest.blocks))
    random.Random(int(sys.argv[2])).shuffle(numbers)
    with ThreadPoolExecutor(1) as pool:
        for number in numbers:
            first, last = store.block_ptr[number : number + 2]
            write_block(path, number, tokenizer.block(int(first), int(last), pool))
    assert not list(missing_groups(path, store.manifest))
    finalise_store(path)
