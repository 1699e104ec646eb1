"""What tests of training share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For models so small that a second thread only waits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def search_tables_as_before() -> Iterator[None]:
    """Takes back what a test adds to the space of searches."""
    from gmn_train.search.space import DIMENSIONS, STARTS

    kept = [(table, dict(table._entries)) for table in (DIMENSIONS, STARTS)]  # type: ignore[attr-defined]
    yield
    for table, entries in kept:
        table._entries.clear()  # type: ignore[attr-defined]
        table._entries.update(entries)  # type: ignore[attr-defined]
