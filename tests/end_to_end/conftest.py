"""What end-to-end tests share."""

from pathlib import Path

import pytest

from gmn_train.tables import running
from tests.end_to_end.commands import run


@pytest.fixture
def forked_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables fork their runs, too: still one process each, without importing torch in every one."""
    monkeypatch.setattr(running, "_call", lambda module, words: run(module.replace("_", "-"), *words, cwd=Path.cwd()))
