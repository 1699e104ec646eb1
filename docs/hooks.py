"""What MkDocs calls while it builds the site. `docs/cli.md` is filled from the commands themselves: it cannot drift."""

import re
from pathlib import Path
from typing import Any

MARK = "<!-- commands -->"


def on_config(config: Any, **_: Any) -> Any:
    """Every decision gets its place in the navigation."""
    decisions = sorted((Path(config.docs_dir) / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{file.name}" for file in decisions]})
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """MkDocs calls this for every page."""
    return markdown.replace(MARK, describe_programs()) if page.file.src_uri == "cli.md" else markdown


def on_page_content(html: str, **_: Any) -> str:
    """Code in tables: paths may break after `/`, `::` and `_`, and short names not at all."""

    def break_path(code: re.Match[str]) -> str:
        return re.sub(r"(?<!<)(/|::|_+)(?!code)", r"\1<wbr>", code[0])

    def mend_cell(cell: re.Match[str]) -> str:
        text = re.sub(r"<code>[^<]*/[^<]*</code>", break_path, cell[0])
        return re.sub(r"<code>([^<\s]{1,20})</code>", r'<code class="short">\1</code>', text)

    return re.sub(r"<td[ >].*?</td>", mend_cell, html, flags=re.S)


def describe_programs() -> str:
    """All commands of both programs as Markdown."""
    from typer.main import get_command

    from gmn_prep.cli import app as prep
    from gmn_train.cli import app as train

    parts = []
    for program, app in (("gmn-prep", prep), ("gmn-train", train)):
        group: Any = get_command(app)
        parts.append(f"## {program}\n\n{group.help}\n")
        parts += [describe_command(program, name, command) for name, command in group.commands.items()]
    return "\n".join(parts)


def describe_command(program: str, name: str, command: Any) -> str:
    """One command: its usage line, what it does, and a table of its options under their headings."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([program, name, *(p.metavar or p.name.upper() for p in arguments), "[OPTIONS]"])
    lines = [f"### {program} {name}\n", f"```\n{usage}\n```\n", f"{' '.join((command.help or '').split())}\n"]
    if not command.params:
        return "\n".join(lines)
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        panels.setdefault(parameter.rich_help_panel or "", []).append(parameter)
    lines.append("| option | meaning |\n|---|---|")
    for panel in sorted(panels, key=lambda title: not title):  # what stands under no heading comes last
        if len(panels) > 1:
            lines.append(f"| **{panel or 'Other'}** | |")
        lines += [describe_parameter(p) for p in panels[panel]]
    return "\n".join([*lines, ""])


def describe_parameter(parameter: Any) -> str:
    """A row: names with what they take, and the help text."""
    if parameter.param_type_name == "argument":
        shown = [parameter.metavar or parameter.name.upper()]
    else:
        takes = f" {parameter.metavar}" if parameter.metavar and not parameter.is_flag else ""
        shown = [f"{flag}{takes}" for flag in (*parameter.opts, *parameter.secondary_opts)]
    help = (parameter.help or "").replace("\\[", "[").replace("|", r"\|")
    required = " [required]" if parameter.required and "[required]" not in help else ""
    return f"| {', '.join(f'`{name}`' for name in shown)} | {help}{required} |"
