"""What the commands share: options made from config classes, and how errors and Ctrl-C end.

A command parses, calls one function, reports. Nothing heavy is imported here, so `--help` answers at once.
"""

import errno
import gc
import inspect
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from gmn_pipeline.console.config import flag_name
from gmn_pipeline.console.interrupt import forget_interrupts, remember_interrupts, was_interrupted
from gmn_pipeline.console.streams import READER_GONE, open_missing_streams, silence_stdout, stdout_error, tell_once
from gmn_pipeline.errors import GmnError, StoppedError
from gmn_pipeline.kernel_cache import explain_cache_fault
from gmn_pipeline.place import StoreUrl, as_place

INTERRUPTED = 130


class PlainFlags(TyperGroup):
    """Help without types: the parser would print `<bool>` at a flag that takes no value, `<Any>` at a store."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            help_option = command.get_help_option(ctx)
            _plain([*command.params, *([help_option] if help_option else [])])
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:  # the parser would take it for Ctrl-D
            raise OSError(errno.EIO, str(error) or "a file ends too early") from error


def _plain(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
        if parameter.param_type_name == "argument":  # its metavar stands in the column before
            parameter.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> None:  # noqa: ARG001
    return None


def make_app(help: str) -> typer.Typer:
    """An app in the house's manner."""
    app = typer.Typer(
        cls=PlainFlags,
        help=help,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        debug: Annotated[
            bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere on the line.")
        ] = False,
        version: Annotated[
            bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
        ] = False,
    ) -> None:
        pass

    return app


def _print_version(asked: bool) -> None:
    if asked:
        from gmn_pipeline import __version__

        print(f"gmn-pipeline {__version__}")
        raise typer.Exit


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Run the app and end the process.

    Exit codes: 0 done, 2 a user's mistake (one line), 130 interrupted, 141 nobody reads any more, 143 terminated.
    """
    open_missing_streams()
    remember_interrupts()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    try:
        code = _run(app, [a for a in arguments if a != "--debug"], debug=debug)
    finally:
        forget_interrupts()
    if (error := stdout_error()) is not None:
        code = _end_of_output(error)
    sys.exit(code or 0)


def command_line() -> str:
    """What the user typed, as it can be typed again; the command by its name alone."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def _run(app: typer.Typer, arguments: list[str], *, debug: bool) -> int | None:
    """The exit code of one command; an error that is no user's mistake comes through."""
    try:
        code: int | None = _call(app, arguments)
        if code == INTERRUPTED:  # the parser turns Ctrl-C into this code
            raise KeyboardInterrupt
        return code
    except StoppedError as error:
        tell_once(str(error))
        return error.exit_code
    except GmnError as error:
        if debug:
            raise
        fail(str(error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted; run the same command again to continue where it stopped")
        return INTERRUPTED
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich makes this of `| head`
            return READER_GONE
        raise
    except OSError as error:
        if (broken := stdout_error(after_failure=True)) is not None or isinstance(error, BrokenPipeError):
            return _end_of_output(broken or error)
        return _explain(error, debug=debug)
    except Exception as error:
        if not _is_usage_error(error):
            return _explain(error, debug=debug)
        return _say_usage(error)


def _call(app: typer.Typer, arguments: list[str]) -> Any:
    """What the command returns. An error after Ctrl-C is the interruption: compilers make errors of their own of it."""
    try:
        return app(args=arguments, standalone_mode=False)
    except StoppedError:
        raise
    except Exception as error:
        if was_interrupted():
            raise KeyboardInterrupt from error
        raise


def _explain(error: Exception, *, debug: bool) -> int:
    """One line for an error of the machine; an error of this program comes through."""
    message = explain_cache_fault(error)
    if isinstance(error, MemoryError):
        message = f"there is not enough memory ({str(error) or 'none is left'}); give more, or ask for less at once"
    elif isinstance(error, RuntimeError) and "can't start new thread" in str(error):  # Python has no class for it
        message = "cannot start more threads; close other programs or ask for fewer threads, then run this again"
    elif message is None and isinstance(error, OSError) and error.errno is not None:
        place = f" ({error.filename})" if error.filename is not None else ""
        message = f"system error: {error.strerror}{place}; fix it and run the same command again"
    if message is None or debug:
        raise error
    fail(message)
    _let_go(error)
    return GmnError.exit_code


def _let_go(error: BaseException) -> None:
    """Destroy what the failed work had half made. Destructors that fail for the same reason have nothing to add."""
    hook_before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts: BaseException | None = error
            while parts is not None:
                traceback.clear_frames(parts.__traceback__)
                parts.__traceback__, parts = None, parts.__context__
            gc.collect()
    finally:
        sys.unraisablehook = hook_before


def _end_of_output(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):  # `gmn-prep inspect ... | head`
        silence_stdout()
        return READER_GONE
    fail(f"cannot print the result: {error.strerror or error}; make room, or send the output elsewhere")
    return GmnError.exit_code


def fail(message: str) -> None:
    """Print one line to stderr."""
    tell_once(f"error: {' '.join(message.split())}")


def _say_usage(error: Any) -> int:
    """One line for a mistake on the command line: the parser would print three."""
    context = getattr(error, "ctx", None)
    message, usage = error.format_message().rstrip(".").replace("Value error, ", ""), ""
    if not message:  # no command at all: the help was asked for
        error.show()
        return int(error.exit_code)
    if context is not None:
        usage = f"; {context.command_path} -h shows what there is"
        names = [name for parameter in context.command.params for name in parameter.opts]
        option = next((name for name in ("--dataset", "--store") if name in names), None)
        if "unexpected extra argument" in message and option:
            usage = f"; did you mean {option} {message.split('(')[-1].rstrip(')')}?"
        elif message.startswith("No such command") and "mean" not in message:
            usage = f"; commands: {', '.join(context.command.commands)}"
    fail(message[0].lower() + message[1:] + usage)
    return int(error.exit_code)


def _is_usage_error(error: Exception) -> bool:
    """Whether the argument parser raised this (typer carries its own click, so the class is known by its methods)."""
    return callable(getattr(error, "show", None)) and hasattr(error, "exit_code")


def takes_config(config_class: type, *, partly: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn `command((file, flags), *, extra options)` into a command with one option per field of `config_class`.

    file is that of `--config`; flags holds the options given, by field. A field of tuple type takes values separated by
    commas. partly: the command needs no option, not even those of fields without a default.
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
        parameters = [_option(item, hints[name], partly=partly) for name, item in items.items()]
        parameters.append(_parameter("config", Annotated[Path | None, file_option], None))
        parameters += own
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        return wrapper

    return decorate


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(item: "Field[Any]", hint: Any, *, partly: bool) -> inspect.Parameter:
    """One command-line option for one field; its default is shown but left to the config class."""
    flag, help, base = flag_name(item), item.metadata["help"], _flag_type(hint)
    if get_origin(base) is Literal:
        help = f"{' | '.join(get_args(base))}: {help}"
    if item.default is MISSING:
        help += "" if partly else r" \[required]"
    elif item.default is not None and item.default is not False and item.default != ():
        shown = ",".join(item.default) if isinstance(item.default, tuple) else item.default
        help += rf" \[default: {shown}]"
    names = [f"{flag}/--no-{flag[2:]}"] if base is bool else [flag]
    group = item.metadata["group"]
    parser = as_place if base is StoreUrl else None
    option = typer.Option(
        *names, help=help, show_default=False, metavar=_metavar(base), rich_help_panel=group, parser=parser
    )
    return _parameter(item.name, Annotated[base | None, option], None)


def _metavar(base: Any) -> str:
    """A short word for what an option takes; long ones squeeze the help text."""
    words = {int: "N", float: "X", str: "TEXT", Path: "PATH", StoreUrl: "PATH", bool: ""}
    return words.get(base, "NAME")


def _flag_type(hint: Any) -> Any:
    """The type a flag is parsed as: the field's own without None; text for tuples; a URL where one is allowed."""
    if StoreUrl in get_args(hint):
        return StoreUrl
    parts = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is not Literal and type(None) in get_args(hint):
        hint = parts[0]
    return str if get_origin(hint) is tuple else hint


def _parse(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
