"""`moorings man`: the manual pages of all commands, made from their help."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from contracts.counts import counted
from moorings.cli.exit_codes import MEANINGS
from moorings.cli.output import say
from moorings.errors import BadInputError


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(man)


def man(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(help="Where the pages go; it is made if need be.")
    ],
) -> None:
    """Write the manual pages of all commands into a folder.

    moorings man ~/.local/share/man/man1 && man moorings-get
    """
    root = ctx.find_root()
    pages = dict(list_pages(root.command, root, "moorings"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, page in pages.items():
            (folder / f"{name}.1").write_text(page)
    except OSError as error:
        raise BadInputError(str(folder), str(error.strerror)) from error
    say(f"wrote {counted(len(pages), 'page')} to {folder}")


def list_pages(command: Any, ctx: Any, name: str) -> Iterator[tuple[str, str]]:
    """Make the page of a command, and those of all below it, by their names."""
    load = getattr(command, "load", None) or getattr(command, "commands", {}).get
    inner = {each: load(each) for each in getattr(command, "commands", ())}
    yield name, write_page(command, ctx, name, inner)
    for each, found in inner.items():
        below = type(ctx)(found, info_name=each, parent=ctx)
        yield from list_pages(found, below, f"{name}-{each}")


def write_page(command: Any, ctx: Any, name: str, inner: dict[str, Any]) -> str:
    """Write one page in the language of man(7)."""
    summary, *paragraphs = (command.help or "").split("\n\n")
    usage = name.replace("-", " ") if not inner else name
    words = " ".join((usage, *command.collect_usage_pieces(ctx)))
    program = f"moorings {version('moorings')}"
    lines = [
        f'.TH "{_escape(name.upper())}" 1 "" "{program}" "Moorings"',
        ".SH NAME",
        rf"{_escape(name)} \- {_escape(summary.removesuffix('.'))}",
        ".SH SYNOPSIS",
        f".B {_escape(words)}",
        ".SH DESCRIPTION",
        _escape(summary),
    ]
    for paragraph in paragraphs:
        lines += [".PP", _escape(paragraph)]
    records = [param.get_help_record(ctx) for param in command.get_params(ctx)]
    if any(records):
        lines.append(".SH OPTIONS")
    for record in filter(None, records):
        lines += [".TP", f".B {_escape(record[0])}", _escape(record[1]) or "\\&"]
    if inner:
        lines.append(".SH COMMANDS")
    for each, found in inner.items():
        about = (found.help or "").split("\n\n")[0]
        lines += [".TP", f".BR {_escape(f'{name}-{each}')} (1)", _escape(about)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in MEANINGS.items():
        lines += [".TP", f".B {code}", _escape(meaning)]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Write a text so that nothing in it is taken for a request or a hyphen."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    lines = (line.strip() for line in escaped.splitlines())
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in lines)
