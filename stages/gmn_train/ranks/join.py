"""A process joins the others. gloo carries tensors of the CPU, nccl those of CUDA (which no test here has run)."""

import json
import os
import threading
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.errors import TrainError
from gmn_train.grains.wire import Parcels, Wire
from gmn_train.ranks.environment import LAUNCHED, Place, find_place

if TYPE_CHECKING:
    from torch.distributed import Store


class PeerLostError(TrainError):
    """Another process of the run has ended."""

    exit_code = 3


@cache
def join_others() -> Wire:
    """The wire of this process, made once; a process that is alone has one without ends."""
    place = find_place()
    return Wire() if place.size == 1 else ProcessWire(place)


class ProcessWire(Wire):
    """Over torch.distributed: every process sends to every other."""

    def __init__(self, place: Place) -> None:
        import torch.distributed as dist

        super().__init__()
        self.rank, self.size = place.rank, place.size
        file = os.environ.get(LAUNCHED)
        if file is not None:
            threading.Thread(target=_end_with_the_launcher, daemon=True).start()
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        try:
            store = _meeting_place(place) if file is None else dist.FileStore(file, self.size)
            dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.size)
        except (RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise TrainError(f"process {self.rank} of {self.size} cannot join the others: {reason}") from None

    def swap(self, outgoing: Parcels, incoming: Parcels) -> None:
        import torch.distributed as dist

        received, sent = list(_each(incoming)), list(_each(outgoing))
        self.sent += sum(tensor.numel() * tensor.element_size() for tensor, _, _ in sent)
        together = [
            *(dist.P2POp(dist.irecv, tensor, rank, tag=tag) for tensor, rank, tag in received if goes_by_nccl(tensor)),
            *(dist.P2POp(dist.isend, tensor, rank, tag=tag) for tensor, rank, tag in sent if goes_by_nccl(tensor)),
        ]
        try:
            works = [dist.irecv(tensor, rank, tag=tag) for tensor, rank, tag in received if not goes_by_nccl(tensor)]
            works += [dist.isend(tensor, rank, tag=tag) for tensor, rank, tag in sent if not goes_by_nccl(tensor)]
            if together:  # nccl runs what is not one batch in turn: all would receive first, and wait for ever
                works += dist.batch_isend_irecv(together)
            for work in works:
                assert work is not None
                work.wait()
        except RuntimeError:
            if LAUNCHED in os.environ:
                raise SystemExit(PeerLostError.exit_code) from None  # the launcher knows more, and says it
            raise PeerLostError(
                "another process of this run has ended; the last checkpoint is kept: run the same command again to "
                "continue from it, with any number of processes"
            ) from None


def goes_by_nccl(tensor: Tensor) -> bool:
    return tensor.is_cuda


def _each(parcels: Parcels) -> Iterator[tuple[Tensor, int, int]]:
    """The tensors that hold anything, each with the other process's rank and its number there."""
    for rank, tensors in parcels.items():
        for tag, tensor in enumerate(tensors):
            if tensor.numel():
                yield tensor, rank, tag


def _meeting_place(place: Place) -> "Store":
    """Where the processes of one attempt tell their addresses.

    torchrun keeps its store when it starts processes again, and gloo would find the addresses of the dead there. Only
    on one host is the number of the attempt the same for all processes.
    """
    from torch.distributed import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store: Store = next(rendezvous("env://", place.rank, place.size))[0]
    several = os.environ.get("GROUP_WORLD_SIZE", "1") != "1"
    return store if several else PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)


def agree(wire: Wire, asked: bool) -> bool:
    """Whether any process asks."""
    flags = torch.zeros(wire.size, dtype=torch.uint8)
    flags[wire.rank] = asked
    swap_with_all(wire, flags[wire.rank : wire.rank + 1], {r: flags[r : r + 1] for r in range(wire.size)})
    return bool(flags.any())


def gather_arrays(wire: Wire, own: Tensor) -> Tensor:
    """Every process's rows below each other, in the order of ranks; numbers of rows may differ."""
    counts = torch.zeros(wire.size, dtype=torch.int64)
    counts[wire.rank] = len(own)
    swap_with_all(wire, counts[wire.rank : wire.rank + 1], {r: counts[r : r + 1] for r in range(wire.size)})
    parts = [own if r == wire.rank else own.new_empty(int(counts[r]), *own.shape[1:]) for r in range(wire.size)]
    swap_with_all(wire, own.contiguous(), dict(enumerate(parts)))
    return torch.cat(parts)


def gather_values(wire: Wire, own: Any) -> list[Any]:
    """What every process says, by rank, as JSON carries it."""
    text = torch.from_numpy(np.frombuffer(json.dumps(own, default=str).encode(), dtype=np.uint8).copy())
    sizes = torch.zeros(wire.size, dtype=torch.int64)
    sizes[wire.rank] = len(text)
    swap_with_all(wire, sizes[wire.rank : wire.rank + 1], {r: sizes[r : r + 1] for r in range(wire.size)})
    texts = [text if r == wire.rank else torch.empty(int(sizes[r]), dtype=torch.uint8) for r in range(wire.size)]
    swap_with_all(wire, text, dict(enumerate(texts)))
    return [json.loads(buffer.numpy().tobytes()) for buffer in texts]


def swap_with_all(wire: Wire, own: Tensor, places: dict[int, Tensor]) -> None:
    """Send `own` to every other process, and receive theirs in `places`."""
    others = [r for r in range(wire.size) if r != wire.rank]
    wire.swap({r: [own] for r in others}, {r: [places[r]] for r in others})


def _end_with_the_launcher() -> None:
    """The launcher holds the other end of stdin: when it is gone, however it went, so is this process."""
    while os.read(0, 1):
        pass
    os._exit(PeerLostError.exit_code)
