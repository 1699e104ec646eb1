"""The tutorial's own commands: `python -m tests.tutorial` runs them and writes what they print into the page."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
PICTURES = {"tokens.png": PAGE.parent / "images" / "tutorial-tokens.png"}
BLOCK = re.compile(r'```(python|console)(?: title="([^"]+)")?\n(.*?)```', re.S)


def steps(page: str) -> Iterator[tuple[str, str, list[str]]]:
    """("file", name, its lines) and ("run", command, the output shown), in order."""
    for kind, title, body in BLOCK.findall(page):
        if kind == "python":
            yield "file", title, body.splitlines()
        else:
            for typed, shown in commands(body):
                yield "run", typed.replace("\\\n", " "), shown


def commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, as typed, with the output shown below it."""
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        lines = part.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
        yield "\n".join(lines[:end]), lines[end:]


def shape(line: str) -> str:
    """A line with its numbers and spacing taken out: those may differ between machines."""
    return " ".join(re.sub(r"\d[\d.,]*", "#", line).split())


def is_shown_whole(command: str) -> bool:
    """Whether the page shows all that the command prints; of ours it shows some lines."""
    return not command.startswith("gmn-")


def renew(page: str, folder: Path) -> str:
    """The page with its outputs as they are now. The commands are run in `folder`."""

    def renew_block(match: re.Match[str]) -> str:
        kind, title, body = match.groups()
        if kind == "python":
            if title:
                (folder / title).write_text(body, encoding="utf-8")
            return match[0]
        lines = []
        for typed, shown in commands(body):
            lines += [f"$ {typed}", *renew_output(typed, shown, run(typed, folder))]
        return "\n".join(["```console", *lines, "```"])

    return BLOCK.sub(renew_block, page)


def renew_output(command: str, shown: list[str], printed: list[str]) -> list[str]:
    """The lines shown, each replaced by the printed line of the same shape; one with `...` stays."""
    if is_shown_whole(command):
        return printed
    lines, left = [], list(printed)
    for line in shown:
        same = [candidate for candidate in left if shape(candidate) == shape(line)]
        if "..." not in line and not same:
            raise SystemExit(f"{command}\nprints no line like: {line}\nbut:\n" + "\n".join(printed))
        lines.append(line if "..." in line else same[0])
        if same:
            left.remove(same[0])
    return lines


def run(command: str, folder: Path) -> list[str]:
    print(f"$ {command}", flush=True)
    program, *words = shlex.split(command.replace("\\\n", " "))
    beside = Path(sys.executable).parent / program
    done = subprocess.run(
        [str(beside) if beside.exists() else program, *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(renew(PAGE.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
        for name, picture in PICTURES.items():
            shutil.copy(Path(folder) / name, picture)


if __name__ == "__main__":
    main()
