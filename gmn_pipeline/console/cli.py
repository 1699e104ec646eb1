"""What the commands share: options made from config classes, and how errors and Ctrl-C end.

A command parses, calls one function, reports. Nothing heavy is imported here, so `--help` answers at once.
"""

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from gmn_pipeline.console.config import flag_name
from gmn_pipeline.errors import GmnError

INTERRUPTED = 130


def make_app(help: str) -> typer.Typer:
    """An app in the house's manner."""
    app = typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )

    @app.callback()
    def root(
        debug: Annotated[
            bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere on the line.")
        ] = False,
    ) -> None:
        pass

    return app


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Run the app and end the process: 0 done, 2 a user's mistake (one line), 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        code = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # the parser turns Ctrl-C into this code
            raise KeyboardInterrupt
    except GmnError as error:
        if debug:
            raise
        fail(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted; run the same command again to continue where it stopped")
        code = INTERRUPTED
    except BrokenPipeError:  # `gmn-prep inspect ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if _is_usage_error(error):
            error.show()  # type: ignore[attr-defined]
            code = error.exit_code  # type: ignore[attr-defined]
        else:
            raise
    sys.exit(code or 0)


def fail(message: str) -> None:
    """Print one line to stderr."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)


def _is_usage_error(error: Exception) -> bool:
    """Whether the argument parser raised this (typer carries its own click, so the class is known by its methods)."""
    return callable(getattr(error, "show", None)) and hasattr(error, "exit_code")


def takes_config(config_class: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn `command((file, flags), *, extra options)` into a command with one option per field of `config_class`.

    file is that of `--config`; flags holds the options given, by field. A field of tuple type takes values separated by
    commas.
    """
    hints = get_type_hints(config_class)
    items = {f.name: f for f in fields(config_class) if f.metadata["flag"] != "" and not is_dataclass(hints[f.name])}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        def wrapper(**given: Any) -> Any:
            file = given.pop("config")
            extra = {p.name: given.pop(p.name) for p in own}
            flags = {name: _parse(hints[name], value) for name, value in given.items() if value is not None}
            return command((file, flags), **extra)

        file_option = typer.Option(
            "--config", help="TOML file with any of these settings. Flags override it.", metavar="PATH"
        )
        parameters = [_option(item, hints[name]) for name, item in items.items()]
        parameters.append(_parameter("config", Annotated[Path | None, file_option], None))
        parameters += own
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        return wrapper

    return decorate


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(item: "Field[Any]", hint: Any) -> inspect.Parameter:
    """One command-line option for one field; its default is shown but left to the config class."""
    flag, help, base = flag_name(item), item.metadata["help"], _flag_type(hint)
    if get_origin(base) is Literal:
        help = f"{' | '.join(get_args(base))}: {help}"
    if item.default is MISSING:
        help += r" \[required]"
    elif item.default not in (None, (), False):
        shown = ",".join(item.default) if isinstance(item.default, tuple) else item.default
        help += rf" \[default: {shown}]"
    names = [f"{flag}/--no-{flag[2:]}"] if base is bool else [flag]
    group = item.metadata["group"]
    option = typer.Option(*names, help=help, show_default=False, metavar=_metavar(base), rich_help_panel=group)
    return _parameter(item.name, Annotated[base | None, option], None)


def _metavar(base: Any) -> str:
    """A short word for what an option takes; long ones squeeze the help text."""
    words = {int: "N", float: "X", str: "TEXT", Path: "PATH", bool: ""}
    return words.get(base, "NAME")


def _flag_type(hint: Any) -> Any:
    """The type a flag is parsed as: the field's own without None; text for tuples."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is not Literal and type(None) in get_args(hint):
        hint = parts[0]
    return str if get_origin(hint) is tuple else hint


def _parse(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
