"""Writes metrics.jsonl as TensorBoard events too, if tensorboard is installed: `tensorboard --logdir RUN`."""

import importlib.util
import struct
from pathlib import Path
from typing import Any

FILE = Path("tensorboard") / "events.out.tfevents.0.gmn-train"
"""In the run's folder. TensorBoard finds it by the middle of its name; no host's name in it, as its own writer has."""


def has_tensorboard() -> bool:
    return importlib.util.find_spec("tensorboard") is not None


def encode_events(rows: list[dict[str, Any]], started: float, *, header: bool) -> bytes:
    """Rows of metrics as a stream of records: one scalar per number and epoch, named as in metrics.jsonl.

    started: seconds since 1970 when the run began; a row's own `seconds` are added, so that the same rows are the same
    bytes. header: whether the stream opens a file.
    """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    events = [Event(wall_time=started, file_version="brain.Event:2")] if header else []
    for row in rows:
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in row.items()
            if name != "epoch" and isinstance(value, int | float)
        ]
        time = started + row.get("seconds", 0.0)
        events.append(Event(wall_time=time, step=row["epoch"], summary=Summary(value=values)))
    return b"".join(_record(event.SerializeToString()) for event in events)


def _record(data: bytes) -> bytes:
    """As TensorBoard's own `RecordWriter` writes it, whose import takes longer than an epoch of a small graph."""
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    from google_crc32c import value

    crc = value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
