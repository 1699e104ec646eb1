"""Both commands with stores in an object store: killed and started again, refused, told what is wrong."""

import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
from tests.end_to_end.commands import start, tree
from tests.object_server import FaultyProxy

SETTINGS = "--dataset minesweeper-grid --nodes 900 --m 2 --M 4 --s 2 --block-size 128 --quiet"
SMALL_RUN = "run --epochs 2 --mode batch --batch-nodes 256 --set model.width=8 --set model.states=2 --json --store"


def call(app: Any, *arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        run_app(app, [part for argument in arguments for part in str(argument).split()])
    return int(end.value.code or 0)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return f"s3://bucket/{re.sub('[^a-z0-9]', '-', request.node.name)}/s.zarr"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "s.zarr"
    assert call(prep, "tokenize", SETTINGS, "--out", path) == 0
    return path


def kill_after(s3: FaultyProxy, method: str, count: int, *line: object) -> None:
    """Start a command and kill it when the server has seen so many requests."""
    with start("gmn-prep", *(part for text in line for part in str(text).split()), cwd=Path.cwd()) as job:
        s3.wait_for(method, count)
        job.send_signal(signal.SIGKILL)
    assert job.returncode == -signal.SIGKILL


def test_tokenize_killed_and_started_again_makes_the_bytes_of_a_folder(
    s3: FaultyProxy, url: str, plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("tokenize", SETTINGS, "--out", url)
    kill_after(s3, "PUT", 70, *line)
    assert call(prep, "verify", url) == 2
    assert "is unfinished; run its gmn-prep tokenize command again" in " ".join(capsys.readouterr().err.split())
    done = len(s3.paths("PUT"))
    assert call(prep, *line) == 0
    kept = {path for path in s3.paths("PUT")[:done] if path.endswith("/walks/zarr.json")}
    again = {path for path in s3.paths("PUT")[done:] if path.endswith("/walks/zarr.json")}
    assert kept
    assert len(kept & again) <= 1  # a block whose marker was not there yet
    assert call(prep, "verify", url) == 0
    assert call(prep, "inspect", url, "--json") == 0
    shown = capsys.readouterr().out
    assert json.loads(shown[shown.index("{") :])["manifest"]["blocks"] == 8
    assert call(prep, "copy", url, tmp_path / "copy.zarr", "--quiet") == 0
    assert tree(tmp_path / "copy.zarr") == tree(plain)
    assert call(prep, *line) == 0  # it is there already
    assert call(prep, *line, "--force") == 2
    assert "--force cannot swap stores" in capsys.readouterr().err.replace("\n", " ")


def test_copy_killed_and_started_again_there_and_back(
    s3: FaultyProxy, url: str, plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_after(s3, "PUT", 60, "copy", plain, url, "--quiet")
    assert call(prep, "copy", plain, url, "--json") == 0
    assert 0 < json.loads(capsys.readouterr().out)["groups"] < 11
    back = tmp_path / "back.zarr"
    s3.reset()
    kill_after(s3, "GET", 80, "copy", url, back, "--quiet")
    assert call(prep, "copy", url, back) == 0
    assert tree(back) == tree(plain)
    assert call(prep, "copy", back, tmp_path / "beside.zarr", "--quiet") == 0
    assert tree(tmp_path / "beside.zarr") == tree(plain)
    capsys.readouterr()
    assert call(prep, "copy", back, plain, "--json") == 0  # nothing to do, and checked
    assert '"groups": 0' in capsys.readouterr().out
    assert call(prep, "copy", url, url) == 2


def test_parts_and_training_from_an_object_store(
    s3: FaultyProxy, url: str, plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(prep, "plan", SETTINGS, "--out", url) == 0
    for number in (1, 0):
        assert call(prep, "part", url, number, "--of 2 --quiet") == 0
    assert call(prep, "finish", url, "--quiet") == 0
    capsys.readouterr()
    assert call(train, SMALL_RUN, plain, "--run-dir local") == 0
    local = json.loads(capsys.readouterr().out)
    assert call(train, SMALL_RUN, url, "--run-dir far") == 0
    far = json.loads(capsys.readouterr().out)
    assert "s3://bucket/" in (tmp_path / "far" / "config.toml").read_text()
    assert _scores(far) == _scores(local)
    assert any("/c/" in path for path in s3.paths("GET"))
    s3.reset()
    assert call(train, SMALL_RUN, url, "--seed 1 --run-dir second") == 0
    assert call(train, "evaluate far --json") == 0
    assert call(train, "evaluate local --json --store", url) == 0
    assert call(train, "predict far --out predictions.csv") == 0
    assert [path for path in s3.paths("GET") if "/c/" in path] == []  # all of it from the cache


def _scores(printed: Any) -> str:
    runs = printed["runs"] if isinstance(printed, dict) and "runs" in printed else printed
    return json.dumps(runs).split('"test"')[1].split(",")[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "http://127.0.0.1:9 cannot be reached; check AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "nonsense"}, "AWS_ENDPOINT_URL is 'nonsense'; write an address"),
        *(
            ({"AWS_ENDPOINT_URL": wrong}, f"AWS_ENDPOINT_URL is '{wrong}'; write an address")
            for wrong in ("http://", "http://[x", "http://a b", "http://a:99999", "http://<a>", "http://300.1.1.1")
        ),
        ({"AWS_ACCESS_KEY_ID": "key\r"}, "AWS_ACCESS_KEY_ID holds a line end or another character that it cannot have"),
        ({"AWS_REGION": "a\nb"}, "AWS_REGION holds a line end"),
        ({"AWS_ACCESS_KEY_ID": ""}, "needs credentials and none were found; set AWS_ACCESS_KEY_ID"),
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"},
            "needs credentials and none were found; set AWS_ACCESS_KEY_ID",
        ),
        ({"GMN_CACHE_DIR": "/dev/null/x"}, "cannot write the cache /dev/null/x"),
    ],
)
def test_wrong_surroundings_get_one_line(
    s3: FaultyProxy, url: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, change: dict[str, str], message: str
) -> None:
    s3.put(f"{url.removeprefix('s3://bucket/')}/zarr.json", b"{}")
    for name, value in change.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    expect_line(capsys, message, prep, "verify", url)


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken"])
def test_a_session_token_that_is_no_longer_good_is_told(s3: FaultyProxy, url: str, capsys: Any, code: str) -> None:
    """Amazon answers 400, not 403."""
    s3.refusal = code
    message = f"refuses these credentials ({code}); get new ones, and set AWS_SESSION_TOKEN with the AWS_ACCESS_KEY_ID"
    expect_line(capsys, message, prep, "verify", url)
    expect_line(capsys, message, prep, "tokenize", SETTINGS, "--out", url)


@pytest.mark.usefixtures("s3")
def test_an_empty_address_is_none(url: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "")
    expect_line(capsys, f"there is no store at {url}", prep, "verify", url)


def test_wrong_places_get_one_line(s3: FaultyProxy, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out = f"tokenize {SETTINGS} --out"
    expect_line(capsys, "there is no bucket 'nowhere' at http://127", prep, out, "s3://nowhere/s.zarr")
    expect_line(capsys, "there is no bucket 'nowhere' at http://127", train, SMALL_RUN, "s3://nowhere/s.zarr")
    expect_line(capsys, "there is no store at s3://bucket/none.zarr", train, SMALL_RUN, "s3://bucket/none.zarr")
    expect_line(capsys, "s3://bucket names no store; write s3://BUCKET/NAME.zarr", prep, out, "s3://bucket")
    expect_line(capsys, "gs:// is not supported", train, SMALL_RUN, "gs://bucket/s.zarr")
    expect_line(capsys, "is in an object store, where nothing is replaced", prep, "repair s3://bucket/none.zarr")
    s3.put("half.zarr/tokens/b00000/nodes/c/0", b"someone else's")
    expect_line(capsys, "holds tokens/ and is not a token store", prep, out, "s3://bucket/half.zarr")
    s3.busy = 10_000
    expect_line(capsys, "is too busy or out of order (503", prep, "verify s3://bucket/none.zarr")
    s3.busy = 0
    s3.require_credentials(True)
    try:
        expect_line(capsys, "refuses these credentials (InvalidAccessKeyId)", prep, out, "s3://bucket/mine.zarr")
    finally:
        s3.require_credentials(False)
    for name in ("obstore", "obstore.store", "obstore.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)  # as where it is not installed
    monkeypatch.setenv("AWS_REGION", "elsewhere")  # another client
    expect_line(capsys, "pip install 'gmn-pipeline[s3]'", prep, "verify s3://bucket/none.zarr")


def expect_line(capsys: Any, message: str, app: Any, *arguments: object) -> None:
    capsys.readouterr()
    assert call(app, *arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    told = " ".join(" ".join(lines).split())
    assert message in told
    assert told.count("error:") == 1
    assert "Traceback" not in told
