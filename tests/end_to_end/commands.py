"""Runs the installed commands as a user does: real processes, real signals."""

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def command(name: str, *arguments: object) -> list[str]:
    return [str(BIN / name), *map(str, arguments)]


def run(name: str, *arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(name, *arguments),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80", **environment},
    )


def tree(path: Path) -> dict[str, bytes]:
    """Every file below `path` with its bytes."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
