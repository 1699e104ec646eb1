"""Mistakes that are told before torch is imported, which takes seconds. The same checks serve callers from Python."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gmn_pipeline.console.config import identity
from gmn_pipeline.disk.writable import why_not_writable
from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.files.manifest_file import read_manifest
from gmn_pipeline.task import Task
from gmn_pipeline.types import IntArray
from gmn_train.data.trained_on import TrainedOn
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.naming import RUNS, folder_of_name, is_run
from gmn_train.settings.run_settings import TrainConfig


def check_device(name: str) -> None:
    """TrainError where CUDA is asked of a torch that was built without it. Of another, only torch itself knows."""
    try:
        built = version("torch")
    except PackageNotFoundError:
        return
    if name == "cuda" and built.endswith("+cpu"):
        raise TrainError(f"--device cuda was asked for, but torch {built} is built without CUDA; use --device cpu")


def named_dir(name: str | None, run_dir: Path | None) -> Path | None:
    """The folder that --name or --run-dir asks for; ConfigError where it is none, TrainError where a store is there."""
    if name is not None and run_dir is not None:
        raise ConfigError(f"--name {name} and --run-dir {run_dir} both say where the run goes; keep one of them")
    if run_dir is not None and run_dir.name in ("", ".."):
        raise ConfigError(f"--run-dir {run_dir} is not a name for a run; give one such as {RUNS / 'mine'}")
    folder = run_dir if name is None else folder_of_name(name)
    if folder is not None and (folder / "zarr.json").exists():
        raise TrainError(f"{folder} is a token store, not a place for a run; choose another --run-dir")
    return folder


def check_writable(folder: Path | None) -> None:
    """TrainError where a run that is not there yet cannot be written. folder: None for one of data/runs."""
    place = folder or RUNS / "new"
    reason = None if is_run(place) else why_not_writable(place / "config.toml")
    if reason is not None:
        raise TrainError(f"cannot write to {folder or RUNS}: {reason}; choose another --run-dir")


def check_splits(store: StorePlace, splits: Sequence[int]) -> None:
    """ConfigError where a store lacks one of --splits: better before the first run than after it."""
    count = read_manifest(store).graph.splits if splits else 0
    missing = [split for split in splits if split >= count]
    if missing and count:
        there = f"splits 0 to {count - 1}" if count > 1 else "one split, 0; --seeds repeats it with other weights"
        raise ConfigError(f"--splits asks for split {missing[0]}; the store has {there}")


def check_trainable(config: TrainConfig) -> None:
    """Raise where a store lacks what a run needs: labels, the split, an encoding, an ordering."""
    manifest, place = read_manifest(config.store), config.store
    task, splits = manifest.task, manifest.graph.splits
    if task is None or not manifest.graph.labels:
        raise TrainError(f"{place} has no labels; tokenize a dataset with labels and a task to train on")
    if splits == 0:
        raise TrainError(f"{place} has no splits; give the dataset train, val and test items")
    if config.split >= splits:
        raise ConfigError(f"split {config.split} does not exist; the store has splits 0..{splits - 1}")
    model = config.model
    if "encodings" in model.reads and model.encodings != "all":
        manifest.check_has("encoding", model.encodings, str(place))
    if "ordering" in model.reads and model.order not in ("random", "degree"):  # these need nothing stored
        manifest.check_has("ordering", model.order, str(place))


def check_folder(folder: Path | None, configs: Sequence[TrainConfig], seeds: Sequence[int]) -> None:
    """TrainError where --run-dir holds a run of other settings. configs: a run's, at each split."""
    if folder is None:
        return
    wanted = [replace(config, seed=seed) for config in configs for seed in seeds or [config.seed]]
    for config in wanted:
        path = folder if len(wanted) == 1 else folder_of_several(folder, config)
        there = RunFolder(path)
        if there.exists and config.precision == "float32":  # other words may turn out to mean it on this machine
            check_same_run(there, config)


def folder_of_several(folder: Path, config: TrainConfig) -> Path:
    """Where --run-dir puts one of several runs."""
    return folder / f"seed{config.seed}-split{config.split}"


OTHER_RUN = "choose another --run-dir, or pass --force to replace it"


def check_same_run(folder: RunFolder, config: TrainConfig) -> None:
    """TrainError where a folder holds a run of other settings."""
    there = folder.config()
    if identity(there) != identity(config):
        longer = _longer_hint(folder.path, there, config)
        raise TrainError(f"{folder.path} is a run with {_difference(there, config)}; {longer}{OTHER_RUN}")


def _difference(there: TrainConfig, wanted: TrainConfig) -> str:
    """The first setting in which two runs differ."""
    one, other = identity(there), identity(wanted)
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    if keys[0] == "fingerprint":
        return f"another store (fingerprint {str(one.get('fingerprint'))[:12]})"
    return f"other settings ({keys[0]} is {one.get(keys[0])}, not {other.get(keys[0])})"


def _longer_hint(path: Path, there: TrainConfig, wanted: TrainConfig) -> str:
    one, other = identity(there, without=("epochs",)), identity(wanted, without=("epochs",))
    if one != other or (wanted.epochs or 0) <= (there.epochs or 0):
        return ""
    return f"train it longer with gmn-train resume {path} --epochs {wanted.epochs}, "


def check_one_list(sources: Mapping[str, str], name: str, values: Sequence[int]) -> None:
    """ConfigError where both --seed and --seeds are given, or --split and --splits."""
    given = sources.get(name, "")
    if values and given.startswith("--"):
        raise ConfigError(f"{given} and --{name}s are both given; keep one of them")


def check_longer(path: Path, config: TrainConfig, epochs: int | None) -> None:
    """TrainError where a run is to have fewer epochs than it has."""
    if epochs is not None and config.epochs is not None and epochs < config.epochs:
        raise TrainError(f"{path} has {config.epochs} epochs; --epochs {epochs} is fewer; give more")


def check_threads(threads: int | None, procs: int | None) -> None:
    """ConfigError where one is given and is no count."""
    for name, value in (("threads", threads), ("procs", procs)):
        if value is not None and value < 1:
            raise ConfigError(f"--{name} is {value}; it must be at least 1")


def check_shared(path: Path, config: TrainConfig, procs: int) -> None:
    """TrainError where a run cannot go on in so many processes."""
    if config.grains is None and procs > 1:
        raise TrainError(f"{path} was started without grains, so it must continue in one process; leave --procs out")
    if procs > (config.grains or 1):
        raise TrainError(f"{path} has {config.grains} grains for {procs:,} processes; ask for no more than it has")


def check_own_store(config: TrainConfig, fingerprint: str | None = None) -> None:
    """Raise where the store of a run's settings is not there, or is another one now."""
    store_fingerprint = fingerprint or read_manifest(config.store).fingerprint
    if store_fingerprint != config.fingerprint:
        raise TrainError(
            f"{config.store} is another store now (fingerprint {store_fingerprint[:12]}, the run was made from "
            f"{str(config.fingerprint)[:12]}); use that store, or start another run"
        )


def check_use(run: Path, store: StorePlace | None, *, embeddings: bool = False) -> None:
    """Raise where a run has no weights yet, the store that it shall read is not there, or it has no such embeddings."""
    folder = RunFolder(run)
    config = folder.config()
    if store is None:
        check_own_store(config)
    else:
        read_manifest(store)
    check_best(folder)
    if embeddings:
        check_embeddings(TrainedOn.load(run).task)


def check_embeddings(task: Task) -> None:
    """TrainError where the items of a task have none."""
    if task.item == "link":
        raise TrainError("embeddings belong to nodes, and a link task predicts pairs; leave out --embeddings")


def check_best(folder: RunFolder) -> None:
    """TrainError where a run has no weights yet."""
    path = folder.path
    if not folder.best.exists():
        raise TrainError(f"{path} has no best checkpoint yet; continue with gmn-train resume {path}")


def read_pairs_for(run: Path, store: StorePlace | None, file: Path) -> IntArray:
    """(K, 2) nodes that --pairs names. Raises TrainError for a run that predicts no links, DatasetError."""
    from gmn_train.runs.predicting.pairs_file import name_nodes, read_pairs

    task = TrainedOn.load(run).task
    if task.item != "link":
        raise TrainError(f"--pairs is for a run that predicts links; {run} predicts a {task.item} task")
    pairs = read_pairs(file)
    from gmn_pipeline.store.reading.reader import TokenStore

    return name_nodes(file, pairs, TokenStore.open(RunFolder(run).config().store if store is None else store).graph)
