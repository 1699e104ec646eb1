"""One training step by 1 to 4 processes of one thread each, beside one in one piece: CPU seconds, memory, bytes sent.

`python -m tests.benchmarks.train.bench_ranks STORE MODE [SIZE/GRAINS ...]` prints a line for each number of processes;
0/0 is the plain run on two threads. CPU seconds are those of all processes together, so they do not depend on what else
the machine does; wall seconds do. The second step is measured, the first one warms up; with `--cold`, which is for
steps of half a minute, there is only one. Words such as `encoder=mean` change the model, `budget=2` the GB for chunks
of tokens. Memory is what steps add to the process that they add most to, compiled kernels included. Processes are
forked: importing torch costs more than a step.
"""

import ast
import json
import os
import socket
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gmn_pipeline.console.machine import peak_memory
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import train_step
from tests.benchmarks.timing import Row
from tests.train.small_runs import prepare, settings_for

MODEL = ModelConfig(width=64, node_layers=3, states=16, node_scan=True, dropout=0.1)


def rows() -> list[Row]:
    """Nothing is compared with another project here; the tables are in docs/scaling-out.md."""
    return []


def step_here(config: TrainConfig, cold: bool) -> dict[str, float]:
    """Seconds and bytes sent of the last step, and the peak of memory above what was there before."""
    training = prepare(config)
    step = training.sampler.training_steps(0)[0]

    def run() -> None:
        train_step(training, training.load((0, step)), 0.001, (0, 0))

    Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew
    before = peak_memory()
    if not cold:
        run()
    sent, begun = 0 if training.team is None else training.team.wire.sent, (time.process_time(), time.perf_counter())
    run()
    return {
        "cpu": time.process_time() - begun[0],
        "wall": time.perf_counter() - begun[1],
        "memory": peak_memory() - before,
        "sent": 0 if training.team is None else training.team.wire.sent - sent,
    }


def measure(config: TrainConfig, size: int, folder: Path, cold: bool) -> list[dict[str, float]]:
    """Of every process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            place = {"RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
            os.environ.update({k: str(v) for k, v in place.items()}, MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
            torch.set_num_threads(config.threads or 1)
            (folder / f"{size}-{rank}").write_text(json.dumps(step_here(config, cold)))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return [json.loads((folder / f"{size}-{rank}").read_text()) for rank in range(size)]


def main(store: Path, mode: Any, cases: list[tuple[int, int]], changes: dict[str, Any], cold: bool) -> None:
    budget = changes.pop("budget", 0.05)
    config = settings_for(store, model=replace(MODEL, **changes), mode=mode, memory_budget=budget)
    with tempfile.TemporaryDirectory() as folder:
        for size, grains in cases:
            one = replace(config, threads=1 if size else 2, grains=grains or None)
            found = measure(one, max(size, 1), Path(folder), cold)
            cpu, wall, memory, sent = ([row[key] for row in found] for key in ("cpu", "wall", "memory", "sent"))
            print(
                f"{size} processes, {grains} grains: {sum(cpu):.2f} CPU s (most {max(cpu):.2f}), {max(wall):.2f} s, "
                f"{max(memory) / 1e6:.0f} MB, {max(sent) / 1e6:.1f} MB sent",
                flush=True,
            )


def value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    words = sys.argv[3:]
    given = [word.split("/") for word in words if "/" in word] or [["0", "0"], *([str(n), "12"] for n in (1, 2, 3, 4))]
    changed = {key: value_of(value) for key, value in (word.split("=") for word in words if "=" in word)}
    main(Path(sys.argv[1]), sys.argv[2], [(int(a), int(b)) for a, b in given], changed, "--cold" in words)
