"""python -m tests.torture --minutes 20 --seed 0 [--jobs 2] [--only NAME] [--write FILE] [--repeat CASE]."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SHIM = "GMN_TORTURE_SHIM"


def main() -> int:
    """Start again with the failing C library loaded; then prepare, fork the workers, and count."""
    options = read_options()
    if SHIM not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="gmn-torture-"))
        try:
            return subprocess.call([sys.executable, "-m", "tests.torture", *sys.argv[1:]], env=_environment(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    from tests.torture.campaigns import CAMPAIGNS
    from tests.torture.ledger import Ledger, list_failures, make_table
    from tests.torture.world import World

    place = Path(os.environ[SHIM]).parent
    world, ledger = World.make(place / "world"), Ledger(Path(options.ledger or place / "ledger"))
    campaigns = [c for c in CAMPAIGNS if not options.only or c.name in options.only.split(",")]
    if options.repeat:
        return max(repeat(case, world, place) for case in options.repeat.split(","))
    end = time.monotonic() + 60 * options.minutes
    workers = [_fork(options, job, world, ledger, campaigns, end) for job in range(options.jobs)]
    for worker in workers:
        os.waitpid(worker, 0)
    entries = ledger.entries()
    table, failures = make_table(entries, campaigns), list_failures(entries)
    print("\n".join([*table, "", *failures]))
    if options.write:
        from tests.torture.page import write_table

        write_table(Path(options.write), table, failures, sys.argv[1:])
    return 1 if failures else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Tries to break the pipeline.")
    parser.add_argument(
        "--minutes", type=float, default=20, help="how long at most; it ends when all marks are reached"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes that try cases side by side")
    parser.add_argument("--only", help="campaigns, separated by commas")
    parser.add_argument("--forever", action="store_true", help="use all of the minutes, also behind the marks")
    parser.add_argument("--write", metavar="FILE", help="put the table into this page")
    parser.add_argument("--ledger", metavar="FILE", help="keep the count here; what held there is not tried again")
    parser.add_argument("--repeat", metavar="CASE", help="try a case again, or several with commas, and show all")
    return parser.parse_args()


def _environment(folder: Path) -> dict[str, str]:
    shim = folder / "faults.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", shim, HERE / "faults.c", "-ldl"], check=True)
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    quiet = {"COLUMNS": "120", "OMP_WAIT_POLICY": "passive"}
    return {**os.environ, **one, **quiet, "LD_PRELOAD": str(shim), SHIM: str(shim)}


def _fork(options: argparse.Namespace, job: int, world: object, ledger: object, campaigns: list, end: float) -> int:
    """A worker: every `jobs`-th round of every campaign. It never returns."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work(options, job, world, ledger, campaigns, end)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)


def work(options: argparse.Namespace, job: int, world, ledger, campaigns: list, end: float) -> None:
    from tests.torture.ledger import Entry

    held = {entry.case: entry for entry in ledger.entries() if entry.fault is None}
    tried = {c.name: sum(e.trials for e in held.values() if e.campaign == c.name) // options.jobs for c in campaigns}
    number = job
    while time.monotonic() < end:
        open_ones = [c for c in campaigns if options.forever or tried[c.name] < c.mark / options.jobs]
        if not open_ones:
            return
        for campaign in open_ones:
            seed = options.seed + number
            for i, case in enumerate(campaign.make_cases(seed, campaign.batch)):
                if f"{campaign.name}:{seed}:{i}" in held:
                    continue
                if time.monotonic() > end:
                    return
                trials, fault = try_one(campaign, case, world, Path(os.environ[SHIM]).parent)
                tried[campaign.name] += trials
                ledger.add(Entry(campaign.name, f"{campaign.name}:{seed}:{i}", trials, fault))
                if fault is not None:
                    print(f"{campaign.name}:{seed}:{i}  {fault}", flush=True)
        number += options.jobs


def try_one(campaign, case, world, place: Path) -> tuple[int, str | None]:
    folder = Path(tempfile.mkdtemp(dir=place))
    try:
        return campaign.try_case(case, world, folder)
    except (
        Exception
    ) as error:  # an honest command that failed, or a mistake of the campaign: to be looked at, either way
        return 1, f"not tried to its end: {type(error).__name__}: {str(error)[-400:]}"
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def repeat(text: str, world, place: Path) -> int:
    """Try one case again; all that its commands print is shown."""
    from tests.torture import children
    from tests.torture.campaigns import CAMPAIGNS

    name, seed, number = text.rsplit(":", 2)
    campaign = next(c for c in CAMPAIGNS if c.name == name)
    case = campaign.make_cases(int(seed), campaign.batch)[int(number)]
    print(case)
    children.show = True
    trials, fault = try_one(campaign, case, world, place)
    print(f"{trials} trials: {fault or 'held'}")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
