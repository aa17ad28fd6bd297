"""Each command is where it is said to be, and imports no more than it needs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from typer.main import get_group
from typer.testing import CliRunner

from moorings.cli.commands import COMMANDS
from moorings.cli.main import app
from tests.lab.command_line import moorings

NARROW = 60
"""Columns, where Typer shortens the longest options, as --kubernetes-version."""
SERVERS = ("aiohttp", "grpc", "kubernetes_asyncio", "nats", "prometheus_client")
DECIDING = ("cel_expr_python", "numpy", "ortools", "pydantic", "solver.engines")
SLOW = (*SERVERS, *DECIDING, "pandas", "opentelemetry", "structlog", "uvloop")
"""What takes a noticeable part of a second to import."""
IN_PLAN = {"numpy", "ortools", "pydantic", "solver.engines"}
"""What it cannot do without; CEL has a process of its own."""
EXAMPLE = "docs/examples/gpu-nic-workers.yaml"


@pytest.mark.parametrize("name", sorted({each.module for each in COMMANDS.values()}))
def test_a_module_has_the_commands_that_are_looked_for_in_it(name: str) -> None:
    """All of them, and no others."""
    part = typer.Typer()
    import_module(f"moorings.cli.{name}").register(part)
    said = {command for command, each in COMMANDS.items() if each.module == name}
    assert set(get_group(part).commands) == said


@pytest.mark.parametrize("name", COMMANDS)
def test_lists_say_of_a_command_what_its_help_begins_with(name: str) -> None:
    """In the same words, though its module is not imported for lists."""
    group = get_group(app)
    context = typer.Context(group)
    listed = group.get_command(context, name)
    _, command, _ = group.resolve_command(context, [name])
    assert listed is not None
    assert command is not None
    assert listed is not command
    assert (command.help or "").split("\n\n")[0] == listed.help


def test_all_commands_are_in_the_help() -> None:
    """Those that are imported late, and those that are not."""
    help_text = CliRunner().invoke(app, ["--help"]).stdout
    words = set(help_text.split())
    assert words >= {*COMMANDS}


def list_commands() -> list[tuple[str, ...]]:
    """List all commands, and the groups that they are in."""
    group = get_group(app)
    context = typer.Context(group)
    found: list[tuple[str, ...]] = [()]
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        found.append((name,))
        found += [(name, inner) for inner in getattr(command, "commands", ())]
    return found


@pytest.mark.parametrize("width", [NARROW, 80, 120])
def test_help_is_wrapped_once_and_cuts_nothing_off(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line ends where the next word would not fit, and no option is shortened."""
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in list_commands():
        text = CliRunner().invoke(app, [*arguments, "--help"]).stdout
        if width > NARROW:
            assert "\u2026" not in text, arguments
        assert not re.search(r"\.\.\.\s*[]}]\s*\.\.\.", text), arguments
        lines = [line.strip() for line in text.split("\u256d")[0].splitlines()]
        for line, after in pairwise(lines):
            if line and after and not line.startswith("Usage:"):
                assert len(f"{line} {after.split()[0]}") > width - 2, (arguments, line)


def test_a_misspelled_command_is_answered_with_the_one_that_is_meant() -> None:
    """Whether or not that was imported before."""
    result = CliRunner().invoke(app, ["submti"])
    assert result.exit_code == 2
    assert "submit" in result.output


@pytest.mark.parametrize("arguments", [(), ("bus",), ("solves",)])
def test_a_group_without_a_command_is_answered_with_its_help_alone(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = moorings(*arguments, home=tmp_path)
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr
    assert not {"error:", "try:"} & set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ((), set()),
        (("--help",), set()),
        (("plan", "-h"), {"pydantic"}),
        (("lint", "-h"), {"pydantic"}),
        (("version",), {"pydantic"}),
        (("get", "-h"), {"pydantic"}),
        (("explain", "-h"), {"pydantic"}),
        (("describe", "-h"), {"pydantic"}),
        (("submit", "-h"), {"pydantic"}),
        (("watch", "-h"), {"pydantic"}),
        (("solves", "list", "-h"), {"pydantic"}),
        (("replay", "-h"), {"pydantic"}),
        (("plan", "-f", EXAMPLE), IN_PLAN),
    ],
)
def test_what_a_command_does_not_need_is_not_imported(
    arguments: tuple[str, ...], needed: set[str]
) -> None:
    """In a fresh interpreter, which says what it has in the end."""
    program = (
        "import atexit, sys; from moorings.cli.entry import main;"
        f"had = lambda: [name for name in {SLOW} if name in sys.modules];"
        "atexit.register(lambda: print('imported', *had(), file=sys.stderr));"
        "main()"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if not arguments else 0), done.stderr
    assert set(done.stderr.splitlines()[-1].split()[1:]) == needed
