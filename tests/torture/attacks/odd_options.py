"""Odd values for every option of every command."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.torture.cases import REAL, TEXT, WHOLE, draw_cases
from tests.torture.children import explain, run
from tests.torture.world import SMALL, TOKENS, World

BASES = {
    "gmn-prep tokenize": f"--dataset g.npz {TOKENS} --out new.zarr",
    "gmn-prep plan": f"--dataset g.npz {TOKENS} --out new.zarr",
    "gmn-prep part": "s.zarr 0",
    "gmn-prep inspect": "s.zarr",
    "gmn-prep verify": "s.zarr",
    "gmn-prep repair": "s.zarr",
    "gmn-prep datasets": "",
    "gmn-train run": f"--store s.zarr --epochs 1 {SMALL} --run-dir new",
    "gmn-train resume": "r",
    "gmn-train evaluate": "r",
    "gmn-train predict": "r --out p.parquet",
    "gmn-train report": "r",
    "gmn-train runs": "",
    "gmn-train settings": "--store s.zarr",
    "gmn-train models": "",
}
LONG_WORK = {"--epochs", "--nodes", "--graphs", "--m", "--M", "--s", "--eval-draws", "--rwse", "--lap-pe", "--seeds"}
"""Large values of these ask for much work, which is no fault: they get small and wrong ones."""
VALUE = st.one_of(WHOLE.map(str), REAL.map(str), TEXT)
SMALL_VALUE = st.sampled_from(
    ["0", "-1", "-0", "1.5", "1e400", "nan", "inf", "-inf", "x", "", " 1", "1_0", "٣", "0x2", "1e0", "+1"]
)
PLACE = st.integers(0, 1000)
CASE = st.tuples(
    st.sampled_from(sorted(BASES)),
    st.lists(st.tuples(PLACE, VALUE, SMALL_VALUE, st.booleans()), min_size=1, max_size=2),
)
SETTINGS = [
    "model.width",
    "model.states",
    "model.node_layers",
    "model.dropout",
    "model.mpnn",
    "model.encoder",
    "lr",
    "x.y",
    "model",
]


def make_cases(seed: int, count: int) -> list[Any]:
    return draw_cases(CASE, seed, count)


def list_options(line: str) -> list[Any]:
    """The options of a command, from its own parser."""
    import typer.main

    from tests.torture.children import _apps

    program, name = line.split()
    group = typer.main.get_command(_apps()[program])
    return [p for p in group.commands[name].params if getattr(p, "opts", [""])[0].startswith("--")]


def try_case(case: Any, world: World, folder: Path) -> tuple[int, str | None]:
    line, choices = case
    here = world.copy("raw", folder / "here")
    program, name = line.split()
    arguments = [name, *BASES[line].split()]
    peak = world.remember(f"peak {line}", lambda: run(program, arguments, world.copy("raw", folder / "honest")).peak)
    options = list_options(line)
    for place, value, small, joined in choices:
        if not options or place % 17 == 0:
            arguments.append(value)
            continue
        option = options[place % len(options)]
        flag = option.opts[0]
        if option.is_flag:
            arguments.append(flag)
            continue
        value = small if flag in LONG_WORK else value
        if flag == "--set":
            value = f"{SETTINGS[place % len(SETTINGS)]}={value}"
            if "width" in value or "states" in value or "layers" in value:
                value = value.split("=")[0] + "=" + small
        arguments += [f"{flag}={value}"] if joined else [flag, value]
    if any("\0" in a or "/" in a.partition("=")[2][:1] or a.startswith("/") for a in arguments) or _is_surrogate(
        arguments
    ):
        return 0, None  # no shell can pass these; and nothing is to be written outside the folder
    return 1, explain(run(program, arguments, here), max(peak, 1))


def _is_surrogate(arguments: list[str]) -> bool:
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError:
        return True
    return False
