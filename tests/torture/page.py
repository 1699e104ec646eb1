"""Puts the table into the page of the documentation."""

from pathlib import Path

BEGIN, END = "<!-- torture: written by python -m tests.torture --write -->", "<!-- torture: end -->"


def write_table(page: Path, table: list[str], failures: list[str], arguments: list[str]) -> None:
    """Replace what stands between the marks; the page must have them."""
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    command = " ".join(a if " " not in a else f"'{a}'" for a in arguments if a not in ("--write", str(page)))
    parts = [BEGIN, "", "```", f"python -m tests.torture {command}", "```", "", *table, ""]
    if failures:
        parts += ["Failed:", "", "```", *failures, "```", ""]
    page.write_text(before + "\n".join([*parts, END]) + after)
