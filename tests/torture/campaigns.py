"""All campaigns, in the order of the table."""

from tests.torture.attacks import (
    bit_flips,
    crowds,
    failing_disks,
    forged_stores,
    kills,
    malformed_inputs,
    odd_options,
    raw_files,
    run_folders,
    small_disks,
    told_to_end,
)  # fmt: skip
from tests.torture.ledger import Campaign

CLEAR = "one clear line or the work done: no crash, hang, traceback, foreign code, or twice the honest memory"
CAMPAIGNS = [
    Campaign(
        "kills of tokenize", "started again, the store has the same bytes; --force leaves the old one or the new one",
        kills.make_store_kills, kills.try_store_kill, batch=4, mark=200,
    ),
    Campaign(
        "kills of training", "resumed, weights, scores and metrics are the same bits",
        kills.make_run_kills, kills.try_run_kill, batch=4, mark=100,
    ),
    Campaign(
        "kills at every file event", "both stages, one event after another: the same bytes once started again",
        kills.make_event_kills, kills.try_event_kill, batch=8, mark=400,
    ),
    Campaign(
        "Ctrl-C and SIGTERM", "one line and its exit code; the same command then does its work to the same bytes",
        told_to_end.make_cases, told_to_end.try_case, batch=4, mark=100,
    ),
    Campaign("bit flips", "found by verify", bit_flips.make_cases, bit_flips.try_case, batch=4, mark=3_000),
    Campaign("forged stores", CLEAR, forged_stores.make_cases, forged_stores.try_case, batch=10, mark=400),
    Campaign("malformed inputs", CLEAR, malformed_inputs.make_cases, malformed_inputs.try_case, batch=10, mark=250),
    Campaign("raw files of public datasets", CLEAR, raw_files.make_cases, raw_files.try_case, batch=10, mark=200),
    Campaign("damaged run folders", CLEAR, run_folders.make_cases, run_folders.try_case, batch=10, mark=120),
    Campaign("odd options", CLEAR, odd_options.make_cases, odd_options.try_case, batch=10, mark=220),
    Campaign(
        "failing disks and limits", "one clear line; the same command then does its work to the same bytes",
        failing_disks.make_cases, failing_disks.try_case, batch=5, mark=200,
    ),
    Campaign(
        "a tmpfs that fills up", "one clear line; with more room the same command does its work to the same bytes",
        small_disks.make_cases, small_disks.try_case, batch=2, mark=40,
    ),
    Campaign(
        "crowds", "16 processes on one store: writers end with the same bytes, readers see one whole store",
        crowds.make_cases, crowds.try_case, batch=1, mark=160,
    ),
    Campaign(
        "crowds of one run", "5 processes are asked for one run, one is killed: the same bits, and one line for each",
        crowds.make_rivals, crowds.try_rivals, batch=1, mark=50,
    ),
]  # fmt: skip
