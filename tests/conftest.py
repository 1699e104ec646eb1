"""What all tests share."""

import os
import signal

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command sets it, before torch is imported

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.object_server import FaultyProxy

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Golden runs first. They compile the model's kernels, a minute of work, and two workers should not both do it: the
    other one begins with the second half of the list, where tests of stage one need other kernels."""
    items.sort(key=lambda item: "tests/golden/" not in item.nodeid)


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
    from gmn_pipeline.store.format import encodings as formats
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


@pytest.fixture(scope="session")
def object_server() -> "Iterator[FaultyProxy]":
    from tests.object_server import serve

    with serve() as proxy:
        yield proxy


@pytest.fixture
def s3(object_server: "FaultyProxy", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "FaultyProxy":
    """An S3 server on loopback, without faults yet, and an empty cache. Credentials as a user sets them."""
    object_server.reset()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_server.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("GMN_CACHE_DIR", str(tmp_path / "cache"))
    return object_server
