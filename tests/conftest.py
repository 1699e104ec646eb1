"""What all tests share."""

import os
import signal

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command sets it, before torch is imported

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# In the background of a script SIGINT is ignored, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are noisy and kernels compile on first use: no deadlines. Fixed examples in CI, new ones at a desk.
settings.register_profile(
    "house",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("house")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real datasets; tests that need it are skipped where it is not there."""
    root = os.environ.get("GMN_DATA_ROOT")
    if not root or not Path(root).is_dir():
        pytest.skip("GMN_DATA_ROOT names no folder of real datasets")
    return Path(root)


@pytest.fixture
def tables_as_before() -> Iterator[None]:
    """Takes back what a test adds to the tables of named parts."""
    from gmn_pipeline import metrics
    from gmn_pipeline.store import encodings as formats
    from gmn_prep import encodings, orderings
    from gmn_train.model import tables as models

    tables = (
        metrics.METRICS, formats.ENCODINGS, encodings.ENCODINGS, orderings.ORDERINGS, models.MODELS, models.ENCODERS,
        models.BRANCHES, models.READABLE,
    )  # fmt: skip
    kept = [dict(table._entries) for table in tables]  # type: ignore[attr-defined]
    yield
    for table, entries in zip(tables, kept, strict=True):
        table._entries.clear()  # type: ignore[attr-defined]
        table._entries.update(entries)  # type: ignore[attr-defined]
