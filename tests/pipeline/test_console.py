"""What both commands offer: version, -h, completion, flags without types, nearest names."""

import errno
import json
import re
import signal
import sys
from typing import Any

import pytest
from numba import njit
from numba.core.event import Listener, install_listener
from typer.main import get_command

from gmn_pipeline import __version__
from gmn_pipeline.console.cli import make_app, run_app
from gmn_pipeline.console.compile_notice import tell_compilation
from gmn_pipeline.console.interrupt import forget_interrupts, raise_if_interrupted, remember_interrupts
from gmn_pipeline.errors import ConfigError
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
from gmn_train.model.tables import MODELS
from gmn_train.settings.request import read_request
from tests.stores import ring_graph, write_store

APPS = {"gmn-prep": prep, "gmn-train": train}
COMMANDS = [("gmn-prep", "tokenize"), ("gmn-prep", "inspect"), ("gmn-train", "run"), ("gmn-train", "predict")]


def output(app: Any, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        run_app(app, list(words))
    assert not end.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("name", APPS)
def test_version(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(APPS[name], "--version", capsys=capsys) == f"gmn-pipeline {__version__}\n"


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_short_help_is_the_long_one_and_names_no_type_of_flags(
    name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = (output(APPS[name], command, flag, capsys=capsys) for flag in ("-h", "--help"))
    assert short == long
    assert "<bool>" not in long.lower()
    assert not re.search(r"--(json|quiet|dry-run)\s+\S*bool", long, re.I)
    assert "<bool>" not in output(APPS[name], "-h", capsys=capsys).lower()


@pytest.mark.parametrize("name", APPS)
def test_no_help_shows_a_type_of_python(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in get_command(APPS[name]).commands:
        text = output(APPS[name], command, "-h", capsys=capsys)
        assert not re.search(r"<(any|str|int|path|list|float)", text, re.I), command


def test_defaults_are_shown_be_they_zero_or_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    run, settings = (output(train, command, "-h", capsys=capsys) for command in ("run", "settings"))
    flat = " ".join(re.sub("[│╭╮╰╯─]", " ", run).split())
    assert "lists them. [default: gmn]" in flat
    assert re.search(r"--seed N Seed of weights, dropout, shuffling and draws. \[default: 0\]", flat)
    assert "[required]" in run
    assert "[required]" not in settings


def test_settings_of_a_model_without_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(output(train, "settings", "--model", "mpnn", "--set", "model.width=32", "--json", capsys=capsys))
    assert said["model.node_scan"] == {"value": False, "from": "model mpnn"}
    assert said["model.width"] == {"value": 32, "from": "--set model.width"}
    assert said["m"] == {"value": None, "from": "the store"}
    assert "follow from the data" in output(train, "settings", "--model", "mpnn", capsys=capsys)


@pytest.mark.parametrize("name", APPS)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(
    name: str, shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr("sys.argv", [name])
    assert "complet" in output(APPS[name], "--show-completion", shell, capsys=capsys)


def test_nearest_names_and_any_case(tmp_path: Any) -> None:
    from gmn_pipeline import TokenSettings

    store = write_store(tmp_path / "ring.zarr", ring_graph(), TokenSettings(1, 1, 1)).path
    with pytest.raises(ConfigError, match=r"unknown key 'width' in --set width; did you mean 'model.width'\?"):
        read_request({"store": store}, None, ["width=32"])
    assert read_request({"store": store, "model.name": "GPS+Mamba"}).config.model.name == "gps+mamba"
    assert MODELS.find("GMN").name == "gmn"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(24, "Too many open files", "g.npz"), "Too many open files (g.npz)"),
        (MemoryError("Unable to allocate 3 TiB"), "there is not enough memory (Unable to allocate 3 TiB)"),
        (EOFError("Ran out of input"), "Ran out of input"),
    ],
)
def test_errors_of_the_machine_are_one_line(error: Exception, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app("test")

    @app.command()
    def work() -> None:
        raise error

    app.command("rest")(lambda: None)
    with pytest.raises(SystemExit) as end:
        run_app(app, ["work"])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.startswith("error: ")
    assert words in said
    assert said.count("\n") == 1
    with pytest.raises((OSError, MemoryError)):
        run_app(app, ["--debug", "work"])


def run_interrupted(app: Any) -> None:
    """Run the command `work`, which presses Ctrl-C, where Python's own handler stands; it must end with 130."""
    app.command("rest")(lambda: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as end:
            run_app(app, ["work"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert end.value.code == 130


@pytest.mark.parametrize("error", [OSError(5, "lost"), ConfigError("odd"), TypeError("from a compiler")])
def test_an_error_that_ctrl_c_became_is_an_interruption(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app("a test")

    @app.command("work")
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise error from None

    run_interrupted(app)
    assert capsys.readouterr().err.startswith("error: interrupted")


class PressesCtrlC:
    """In its destructor, where Python drops the exception and prints it."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_that_python_drops_is_an_interruption_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    app, hook = make_app("a test"), sys.unraisablehook

    @app.command("work")
    def work() -> None:
        PressesCtrlC()
        raise_if_interrupted()

    run_interrupted(app)
    assert capsys.readouterr().err == "error: interrupted; run the same command again to continue where it stopped\n"
    assert sys.unraisablehook is hook


class FailsToGo:
    """As a half-made event loop does where no more files can be opened."""

    def __del__(self) -> None:
        raise OSError(errno.EMFILE, "Too many open files")


def test_what_destructors_say_after_an_error_of_the_machine_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    app, hook = make_app("a test"), sys.unraisablehook

    @app.command("work")
    def work() -> None:
        half_made = FailsToGo()  # noqa: F841
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(SystemExit) as end:
        run_app(app, ["work"])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sys.unraisablehook is hook


class CtrlC(Listener):
    """Presses Ctrl-C in the middle of a compilation."""

    def __init__(self, times: int) -> None:
        self.left = times

    def on_start(self, _event: Any) -> None:
        while self.left:
            self.left -= 1
            signal.raise_signal(signal.SIGINT)

    def on_end(self, _event: Any) -> None:
        pass


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_lets_a_compilation_end_and_the_second_one_does_not(times: int) -> None:
    """In its middle the compiler's memory is in no state to be freed."""
    kernel, ctrl_c = njit(lambda a: a + 1), CtrlC(times)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    remember_interrupts()
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            tell_compilation(lambda _: None),
            install_listener("numba:compile", ctrl_c),
        ):
            kernel(1)
    finally:
        forget_interrupts()
        signal.signal(signal.SIGINT, before)
    assert ctrl_c.left == 0
    assert len(kernel.signatures) == (times == 1)
