"""What shells need to complete `moorings`, and `kubectl moorings` in kubectl's way.

kubectl takes a line a word, then a directive. It runs `kubectl_complete-moorings` with
the words of the line so far, the last one unfinished. Source: kubectl's plugin
completion; cobra's ShellCompDirective.
"""

from __future__ import annotations

import os
import shlex
import sys
from enum import StrEnum
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from moorings.cli.output import console, say

FILES_OTHERWISE = ":0"
"""Where there is nothing to complete, file names are."""


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(completion)


def completion(
    shell: Annotated[Shell, typer.Argument(help="Whose script.", show_default=False)],
) -> None:
    """Print the completion script of a shell: bash, zsh or fish.

    source <(moorings completion bash)
    """
    script = get_completion_script(
        prog_name="moorings", complete_var="_MOORINGS_COMPLETE", shell=shell.value
    )
    console.file.write(f"{script}\n")


def main() -> None:
    """Print the words that the last one may become, for kubectl."""
    from moorings.cli.main import app  # noqa: PLC0415  # which imports this module

    words = sys.argv[1:] or [""]
    os.environ |= {
        "_MOORINGS_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(["moorings", *words]),
        "COMP_CWORD": str(len(words)),
    }
    try:
        app(prog_name="moorings")
    finally:
        say(FILES_OTHERWISE)
