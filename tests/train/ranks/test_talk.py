"""How two processes talk: what they tell each other counts alike in both."""

import json
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.commands import start
from tests.train.ranks.runs import write_stores


def both(function: str, *arguments: object, folder: Path) -> list[str]:
    """What each of two processes prints, which meet at a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    where: dict[str, Any] = {
        "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    name, streams = f"tests.train.ranks.pair:{function}", {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(start(name, *arguments, cwd=folder, RANK=str(rank), **streams, **where))
            for rank in range(2)
        ]
        said = [job.communicate() for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], said
    return [out.strip() for out, _ in said]


def test_tensors_of_cuda_go_in_one_batch(tmp_path: Path) -> None:
    """nccl itself is not run here. Empty tensors do not travel, and keep their number."""
    for rank, said in enumerate(both("swap_in_one_batch", folder=tmp_path)):
        other = 1 - rank
        tensors = [[other + 0.5] * 3, [other, other + 1], [], [[float(other)] * 2] * 2]
        assert said == f"{tensors} {[['irecv', 'irecv', 'isend', 'isend']]} {12 + 16 + 16}"


@pytest.mark.parametrize("package", ["gmn-pipeline", "torch", "numpy", "numba"])
def test_processes_with_other_versions_are_told(tmp_path: Path, package: str) -> None:
    write_stores(tmp_path)
    for said in both("compare_versions", tmp_path, package, folder=tmp_path):
        assert said.startswith(
            f"the processes of this run differ: the version of {package} is 0.0 in process 0 and 0.1 in process 1; "
        )


def test_a_control_takes_the_seconds_of_the_first_process(tmp_path: Path) -> None:
    write_stores(tmp_path)
    for said in both("train_with_control", tmp_path, folder=tmp_path):
        assert said == "{'equal epochs': 1, 'equal seconds': 2}"
    assert json.loads((tmp_path / "run" / "controls.json").read_text()) == {
        "equal epochs": "../run-control", "equal seconds": "../run-control-seconds",
    }  # fmt: skip
