"""Options that several commands of `gmn-train` share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gmn_pipeline.place import as_place

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run: its folder, or its name.")]
Store = Annotated[
    Any,
    typer.Option(metavar="PATH", help="Store to use instead. Default: the run's.", parser=as_place),
]


ModelName = Annotated[
    str | None,
    typer.Option("--model", help=r"Model to train; `gmn-train models` lists them. \[default: gmn]", metavar="NAME"),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any setting, such as lr=0.01 or model.width=96; `gmn-train settings` lists them. May be repeated.",
        metavar="KEY=VALUE",
    ),
]
