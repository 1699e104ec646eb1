"""Runs by name: `--name NAME` puts a run into data/runs/NAME, and every command takes the name for its folder."""

from os import PathLike
from pathlib import Path

from gmn_pipeline.errors import ConfigError, TrainError, nearest

RUNS = Path("data") / "runs"
PREDICTIONS = (".parquet", ".csv", ".npz")
"""Endings of files of predictions."""
LONGEST = 100
DEEPEST = 3
"""Folders below `RUNS` in which runs are looked for."""


def folder_of_name(name: str) -> Path:
    """data/runs/NAME; ConfigError where the name is no name of a folder."""
    if not name or len(name.encode()) > LONGEST or name.startswith((".", "-")) or any(c in name for c in "/\\\0\n"):
        raise ConfigError(f"--name is '{name[:40]}'; use up to {LONGEST} letters, digits, - and _, and no /")
    return RUNS / name


def is_run(path: Path) -> bool:
    return (path / "config.toml").is_file()


def find_run(run: str | PathLike[str]) -> Path:
    """The folder of a run that is given as a path, or by its name. Raises TrainError where none, or several, are meant.

    The name of a folder that holds one run stands for that run.
    """
    given = Path(run)
    for path in (given, RUNS / given):
        if is_run(path):
            return path
        inside = runs_in(path)
        if len(inside) == 1:
            return inside[0]
        if inside:
            some = ", ".join(str(p) for p in inside[:3])
            raise TrainError(f"{path} holds {len(inside)} runs; name one of them: {some}{', ...' * (len(inside) > 3)}")
    if given.exists():
        raise TrainError(f"{given} is not a run folder: it has no config.toml; make one with gmn-train run")
    names = [str(path.relative_to(RUNS)) for path in runs_in(RUNS)]
    raise TrainError(
        f"there is no run '{given}', neither as a folder nor in {RUNS}{nearest(str(given), names)}; "
        "gmn-train runs lists them"
    )


def find_several(run: str | PathLike[str]) -> Path:
    """Like `find_run`, and a folder of several runs stands for itself."""
    for path in (Path(run), RUNS / run):
        if runs_in(path):
            return path
    return find_run(run)


def runs_in(root: Path) -> list[Path]:
    """Every run in a folder, by path; the folder itself if it is one."""
    if is_run(root):
        return [root]
    patterns = ("/".join(["*"] * depth + ["config.toml"]) for depth in range(1, DEEPEST + 1))
    return sorted({file.parent for pattern in patterns for file in root.glob(pattern)}) if root.is_dir() else []


def check_ending(out: Path) -> None:
    """TrainError where predictions cannot be written under this name."""
    if out.suffix not in PREDICTIONS:
        raise TrainError(f"--out is {out}; its ending must be one of {', '.join(PREDICTIONS)}")
