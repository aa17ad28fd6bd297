"""The executable `moorings`: all commands, and how errors are printed.

Installed as `kubectl-moorings` too, which kubectl runs as `kubectl moorings`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException

from contracts.errors import ContractsError
from moorings.cli.commands import LazyCommands
from moorings.cli.exit_codes import ExitCode
from moorings.cli.logs import quiet_logs
from moorings.cli.output import console, notify
from moorings.errors import MooringsError, UsageError
from nodeagent.errors import NodeAgentError
from publisher.errors import PublisherError
from runtime.errors import ServiceError
from runtime.kube.errors import KubernetesError
from solver.errors import SolverError

EXTRAS = {
    "aiohttp": "console",
    "cel_expr_python": "solver",
    "grpc": "nodeagent",
    "kubernetes_asyncio": "publisher",
    "numpy": "solver",
    "ortools": "solver",
    "re2": "solver",
}
"""The extra of pyproject.toml that brings a module, for those who installed none."""

app = typer.Typer(
    name="moorings",
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Allocate devices to gangs of pods, all together or not at all (Kubernetes "
    "DRA). Exit codes: 0 yes to everything asked, 1 no, 2 wrong usage, 3 error.",
)


def _show_version(*, asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415  # opens archives

        console.print(f"moorings {version('moorings')}")
        raise typer.Exit(ExitCode.YES)


@app.callback()
def _read_options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version; `moorings version` shows more.",
            callback=lambda value: _show_version(asked=value),
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


EXPECTED_ERRORS = (
    ContractsError,
    ServiceError,
    MooringsError,
    NodeAgentError,
    KubernetesError,
    PublisherError,
    SolverError,
)


def main() -> None:
    """Run the command line; never shows a traceback unless MOORINGS_DEBUG is set."""
    plugin = Path(sys.argv[0]).stem == "kubectl-moorings"
    program = "kubectl moorings" if plugin else "moorings"
    try:
        code = _run_command(program)
        console.file.flush()
    except BrokenPipeError:
        code = _close_output()
    except SystemExit as request:  # by which Click and Rich end where nobody reads
        if not isinstance(request.__context__, BrokenPipeError):
            raise
        code = _close_output()
    _end_process(code)


def _begin_command() -> None:
    """Get ready for a command that is imported: garbage is collected from now on."""
    gc.enable()
    quiet_logs()


def _run_command(program: str) -> int:
    """Run the command line and print errors; returns the exit code.

    Raises:
        BrokenPipeError: nobody reads the answer, or what is said of it.
        SystemExit: likewise.
    """
    try:
        code = app(standalone_mode=False, prog_name=program, obj=_begin_command)
    except typer.Abort:
        notify("aborted")
        code = ExitCode.ERROR
    except typer.Exit as request:
        code = request.exit_code
    except TyperException as error:
        # Nothing is said of a group without a command: its help was printed.
        if message := error.format_message():
            notify(f"error: {message.replace(': Value error,', ':')}")
            context = getattr(error, "ctx", None)
            if _asks_for_files(message, context):
                notify("give files with -f FILE")
            notify(f"try: {context.command_path if context else program} --help")
        code = ExitCode.USAGE
    except UsageError as error:
        notify(f"error: {error}")
        code = ExitCode.USAGE
    except EXPECTED_ERRORS as error:
        notify(f"error: {error}")
        code = ExitCode.ERROR
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception as error:
        if os.environ.get("MOORINGS_DEBUG"):
            raise
        notify(f"error: {_describe_unexpected(error)}")
        code = ExitCode.ERROR
    return code if isinstance(code, int) else ExitCode.YES


def _describe_unexpected(error: Exception) -> str:
    """Return what is printed of an error that no command foresaw."""
    missing = getattr(error, "name", None) or ""
    module = missing.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and module in EXTRAS:
        return f"{module} is missing: pip install 'moorings[{EXTRAS[module]}]'"
    return f"{type(error).__name__}: {error} (MOORINGS_DEBUG=1 shows where)"


def _close_output() -> int:
    """Drop all further output, as nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as it is where the process began with it closed
            os.dup2(nowhere, stream.fileno())
    return ExitCode.CLOSED


def _asks_for_files(message: str, context: Any) -> bool:
    """True if a command that takes files by -f got extra arguments."""
    if "unexpected extra argument" not in message or context is None:
        return False
    return any("-f" in option.opts for option in context.command.params)


def _end_process(code: int) -> NoReturn:
    """End the process, so that its memory goes back to the system as a whole.

    Object by object that took a second for each ten thousand nodes of a plan.
    """
    atexit._run_exitfuncs()  # noqa: SLF001  # as Python does before it gives back
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)
