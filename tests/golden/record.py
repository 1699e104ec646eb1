"""`python -m tests.golden.record`: make the stores and runs of `cases` and keep what they come to in golden.json.

Bytes of a store's graph, tokens and orderings are the same on every machine. Floating-point results are not: their
digests are kept by kind of processor, beside rounded values that every machine must come near to.
"""

import contextlib
import hashlib
import io
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.cases import RUNS, STORES, write_tables

FILE = Path(__file__).with_name("golden.json")


def call(main_app: Any, arguments: list[str]) -> None:
    """One command in this process; AssertionError with what it printed if it fails."""
    from gmn_pipeline.console.cli import run_app

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run_app(main_app, arguments)
            code: Any = 0
        except SystemExit as end:
            code = end.code
    assert not code, f"{arguments}: {err.getvalue()}"


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def make_store(folder: Path, name: str) -> Path:
    """The store of a case, made in `folder`."""
    from gmn_prep.cli import app

    write_tables(folder)
    with inside(folder):
        call(app, ["tokenize", *STORES[name], "--recipe", "none", "--out", f"{name}.zarr", "--quiet"])
    return folder / f"{name}.zarr"


def store_digest(path: Path, *, portable: bool) -> str:
    """Of all files; portable: only of those whose bytes no processor changes."""
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        where = str(file.relative_to(path))
        if portable and not where.startswith(("graph/", "tokens/", "orderings/degree", "orderings/k-core")):
            continue
        digest.update(where.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]


def run_result(folder: Path, name: str) -> dict[str, Any]:
    """Train a case on the stores in `folder`: digests of the last and best weights, and rounded results."""
    import torch
    from safetensors.torch import load_file

    from gmn_train.cli import app

    store, arguments = RUNS[name]
    run = folder / "runs" / name.replace(" ", "-").replace(",", "")
    with inside(folder):
        call(app, ["run", "--store", f"{store}.zarr", *arguments, "--run-dir", str(run), "--quiet"])
    last = torch.load(run / "checkpoints" / "last.pt", weights_only=True)["model"]
    best = load_file(run / "checkpoints" / "best.safetensors")
    losses = [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    total = sum(float(t.double().abs().sum()) for t in last.values())
    return {
        "last": weights_digest(list(last.values())),
        "best": weights_digest([best[key] for key in last]),
        "values": {"first loss": round(losses[0], 5), "last loss": round(losses[-1], 5), "weights": round(total, 3)},
    }


def weights_digest(tensors: list[Any]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


def processor() -> str:
    """What decides floating-point bits: the processor's kind and its instruction sets, and torch's version."""
    import torch

    info = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    wanted = ("cpu family", "model\t", "flags", "model name")
    facts = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in info if line.startswith(wanted)}
    name = f"{facts.get('model name', platform.machine())} family {facts.get('cpu family')} {facts.get('model')}"
    flags = hashlib.sha256(facts.get("flags", "").encode()).hexdigest()[:8]
    return f"{name} flags {flags} torch {torch.__version__}"


def main() -> None:
    kept: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"stores": {}, "processors": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        here: dict[str, Any] = {"stores": {}, "runs": {}}
        for store in STORES:
            path = make_store(folder, store)
            kept["stores"][store] = store_digest(path, portable=True)
            here["stores"][store] = store_digest(path, portable=False)
        for run in RUNS:
            here["runs"][run] = run_result(folder, run)
            print(run, here["runs"][run], file=sys.stderr)
    kept["values"] = {run: result.pop("values") for run, result in here["runs"].items()}
    kept["processors"][processor()] = here
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
