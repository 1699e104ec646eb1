"""A machine that starts no more threads, as when several runs share it and its limit: one line, and nothing hangs."""

import threading
from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.console.cli import make_app, run_app
from gmn_pipeline.store.checking.byte_check import ByteCheck
from gmn_train.data.read_ahead import ReadAhead
from tests.stores import ring_graph, write_store


def refuse(*_: object) -> int:
    raise RuntimeError("can't start new thread")


def read_ahead() -> None:
    list(ReadAhead([1, 2], str))


def check_bytes() -> None:
    ByteCheck().first_use("graph", lambda _: None)


@pytest.mark.parametrize("work", [read_ahead, check_bytes])
def test_it_is_told_in_one_line(work: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    app = make_app("test")
    app.command()(work)
    app.command("rest")(lambda: None)
    monkeypatch.setattr(threading, "_start_new_thread", refuse)
    with pytest.raises(SystemExit) as end:
        run_app(app, [work.__name__.replace("_", "-")])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.startswith("error: cannot start more threads")
    assert len(said.splitlines()) == 1


def test_a_check_that_was_not_started_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(1, 1, 1), orderings=())
    store = TokenStore.open(tmp_path / "s.zarr", check="sampled")
    store.finish_check()
    with monkeypatch.context() as patch:
        patch.setattr(threading, "_start_new_thread", refuse)
        with pytest.raises(RuntimeError, match="start new thread"):
            store.view().gather([0])
    store.view().gather([0])
    store.finish_check()
