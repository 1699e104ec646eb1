"""`gmn-prep plan`, `part` and `finish`, as a job array runs them: the bytes of the plain command, whatever happens."""

import os
import re
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from gmn_pipeline import TokenStore
from gmn_pipeline.errors import ConfigError
from gmn_prep.parts import versions
from gmn_prep.parts.token_parts import write_part
from gmn_prep.phases import Phases
from tests.end_to_end.commands import BIN, ROOT, run, start, tree

SCALING_OUT = ROOT / "docs" / "scaling-out.md"
SETTINGS = (
    "--dataset", "minesweeper-grid", "--nodes", 900, "--m", 2, "--M", 4, "--s", 2, "--block-size", 64, "--rwse", 4,
)  # fmt: skip


def test_parts_make_the_bytes_of_the_plain_command(tmp_path: Path) -> None:
    """Parts twice and at once, one of them killed; then what is missing is told, and the store completed."""
    assert run("gmn-prep", "tokenize", *SETTINGS, "--out", "plain.zarr", "--quiet", cwd=tmp_path).returncode == 0
    planned = run("gmn-prep", "plan", *SETTINGS, "--out", "parts.zarr", cwd=tmp_path)
    assert "parts.zarr: 15 parts, 0 to 14" in planned.stdout
    early = run("gmn-prep", "finish", "parts.zarr", cwd=tmp_path)
    assert early.returncode == 2
    assert "tokens/b00000" in early.stderr
    with ExitStack() as stack:
        part = ("--of", 3, "--threads", 1, "--quiet")
        jobs = [
            stack.enter_context(start("gmn-prep", "part", "parts.zarr", number, *part, cwd=tmp_path))
            for number in (0, 1, 1, 2)
        ]
        while not list((tmp_path / "parts.zarr").glob("tokens/b*")):
            assert None in [job.poll() for job in jobs]
            time.sleep(0.002)
        jobs[1].send_signal(signal.SIGKILL)
    assert [job.returncode for job in jobs][2:] == [0, 0]
    for number in range(3):  # a scheduler runs a failed part again
        assert run("gmn-prep", "part", "parts.zarr", number, "--of", 3, cwd=tmp_path).returncode == 0
    assert run("gmn-prep", "finish", "parts.zarr", cwd=tmp_path).returncode == 0
    assert tree(tmp_path / "parts.zarr") == tree(tmp_path / "plain.zarr")


def test_the_job_array_of_the_page(tmp_path: Path) -> None:
    """The page's commands and its script, on a small table; each task of the array is a process of this machine."""
    section = SCALING_OUT.read_text(encoding="utf-8").split("## Slurm")[1].split("\n## ")[0]
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", section, re.S)
    (commands,) = re.findall(r"```\n(gmn-prep plan .*?)```", section, re.S)
    planning, batch, finishing = map(str.split, commands.strip().splitlines())
    assert batch == ["sbatch", "--wait", "parts.sh"]
    first, last = map(int, re.search(r"#SBATCH --array=(\d+)-(\d+)\n", script).groups())  # type: ignore[union-attr]
    (tmp_path / "data").mkdir()
    (tmp_path / "parts.sh").write_text(script)
    nodes = np.arange(300)
    edges = {"src": np.tile(nodes, 2), "dst": np.concatenate([(nodes + 1) % 300, (nodes + 7) % 300])}
    parquet.write_table(pyarrow.table(edges), tmp_path / "edges.parquet")

    words = (*planning[1:], "--block-size", 32, "--quiet")  # more blocks than tasks
    planned = run("gmn-prep", *words, cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    for task in range(first, last + 1):
        environment = {**os.environ, "PATH": path, "SLURM_ARRAY_TASK_ID": str(task)}
        done = subprocess.run(["bash", "parts.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"part {task}, (\d+) of \1 blocks written", done.stdout)
    completed = run("gmn-prep", *finishing[1:], "--quiet", cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr

    store = planning[planning.index("--out") + 1]
    plain = ["plain.zarr" if word == store else word for word in words]
    assert run("gmn-prep", "tokenize", *plain[1:], cwd=tmp_path).returncode == 0
    assert tree(tmp_path / store) == tree(tmp_path / "plain.zarr")


def test_mistakes_get_one_line(tmp_path: Path) -> None:
    run("gmn-prep", "plan", *SETTINGS, "--out", "s.zarr", "--quiet", cwd=tmp_path)
    for arguments, message in (
        (("part", "s.zarr", 7, "--of", 3), "part 7 does not exist; with 3 parts they are 0..2"),
        (("part", "s.zarr", 0, "--of", 0), "--of is 0; it must be from 1"),
        (("part", "s.zarr", 0, "--threads", -1), "--threads is -1; it must be from 1"),
        (("part", "nowhere.zarr", 0), "no store at nowhere.zarr"),
    ):
        done = run("gmn-prep", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())


def test_plan_refuses_to_replace_a_store(tmp_path: Path) -> None:
    """Parts would go to the store of that name, which is the old one."""
    assert run("gmn-prep", "tokenize", *SETTINGS, "--out", "s.zarr", "--quiet", cwd=tmp_path).returncode == 0
    before = tree(tmp_path / "s.zarr")
    clash = run("gmn-prep", "plan", *SETTINGS, "--seed", 1, "--out", "s.zarr", cwd=tmp_path)
    assert "choose another --out, or remove it" in " ".join(clash.stderr.split())
    done = run("gmn-prep", "plan", *SETTINGS, "--seed", 1, "--out", "s.zarr", "--force", "--quiet", cwd=tmp_path)
    assert done.returncode == 2
    assert "s.zarr holds a store, which plan --force cannot replace" in " ".join(done.stderr.split())
    assert tree(tmp_path / "s.zarr") == before
    assert [path.name for path in tmp_path.iterdir()] == ["s.zarr"]
    assert run("gmn-prep", "plan", *SETTINGS, "--out", "new.zarr", "--force", "--quiet", cwd=tmp_path).returncode == 0


def test_parts_with_other_versions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan, and each part, have the versions of the environment that they run in."""
    store = tmp_path / "s.zarr"
    words = ("--nodes", 100, "--m", 1, "--M", 1, "--s", 1, "--out", store, "--quiet")
    plan = ("gmn-prep", "plan", "--dataset", "minesweeper-grid", *words)
    assert run(*plan, cwd=tmp_path).returncode == 0
    same = versions.own_versions()
    assert all(same.values())
    for name, number in (("numpy", "1.26.0"), ("python", "3.99.1"), ("gmn-pipeline", None)):
        monkeypatch.setattr(versions, "own_versions", lambda name=name, number=number: {**same, name: number})
        found = f"no {name}" if number is None else f"{name} {number}"
        message = rf"s\.zarr was planned with {name} {same[name]}, this command has {found}; install the same versions"
        with pytest.raises(ConfigError, match=message):
            write_part(store, 0, None, Phases())
        with pytest.raises(ConfigError, match=message):
            versions.share_versions(store, TokenStore.open(store, unfinished=True).manifest)
    monkeypatch.undo()
    assert write_part(store, 0, None, Phases()).written == 1
    assert run(*plan, cwd=tmp_path).returncode == 0
    assert run("gmn-prep", "finish", store, cwd=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["s.zarr"]
