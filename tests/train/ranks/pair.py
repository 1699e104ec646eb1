"""What one of two processes does in tests of how they talk, as `tests.end_to_end.commands.start` calls it.

Each checks its own side and prints what it found; `sys.argv` holds what the test gives.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gmn_pipeline.errors import TrainError
from gmn_train.ranks import alike, join
from gmn_train.runs import start
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.watching.display import Watcher
from tests.train.ranks.runs import configs


def swap_in_one_batch() -> None:
    """Tensors take the way of nccl, over gloo, beside one that does not."""
    import torch.distributed as dist

    wire = join.join_others()
    batches, real = [], dist.batch_isend_irecv
    dist.batch_isend_irecv = lambda ops: batches.append([op.op.__name__ for op in ops]) or real(ops)
    join.goes_by_nccl = lambda tensor: tensor.dtype != torch.int64
    other = 1 - wire.rank
    own = [torch.full((3,), wire.rank + 0.5), torch.arange(2) + wire.rank, torch.empty(0), torch.ones(2, 2) * wire.rank]
    coming = [torch.empty_like(tensor) for tensor in own]
    wire.swap({other: own}, {other: coming})
    print([tensor.tolist() for tensor in coming], batches, wire.sent)


def compare_versions() -> None:
    folder, package = Path(sys.argv[1]), sys.argv[2]
    wire, real = join.join_others(), alike.version
    alike.version = lambda name: f"0.{wire.rank}" if name == package else real(name)
    try:
        alike.check_alike(wire, configs(folder)["graphs"], RunFolder(folder / "none"), fresh=True)
    except TrainError as error:
        print(error)


def train_with_control() -> None:
    """The clocks of the two differ by much, and only the first one writes."""
    folder = Path(sys.argv[1])
    wire, real = join.join_others(), start.train
    torch.set_num_threads(1)

    def train(*arguments: Any) -> dict[str, Any]:
        summary = real(*arguments)
        pace = 1.0 if arguments[0].model.name == "mpnn" else 2.0 + 2 * wire.rank
        return {**summary, "seconds": pace * summary["epochs"]}

    start.train = train
    start.note_controls = only_once(wire.rank, start.note_controls)
    config = replace(configs(folder)["graphs"], epochs=1)
    (run,) = start.start_runs(config, Watcher(), run_dir=folder / "run", with_control=True)
    print({which: finished.summary["epochs"] for which, finished in run.controls.items()})


def only_once(rank: int, write: Callable[..., None]) -> Callable[..., None]:
    def checked(run: Path, controls: Mapping[str, Path]) -> None:
        assert rank == 0, "this process only reads"
        write(run, controls)

    return checked
