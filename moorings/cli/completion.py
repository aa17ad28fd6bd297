"""Completion of `kubectl moorings`, in kubectl's way: a line a word, then a directive.

kubectl runs `kubectl_complete-moorings` with the words of the line so far, the last one
unfinished. Source: kubectl's plugin completion; cobra's ShellCompDirective.
"""

from __future__ import annotations

import os
import shlex
import sys

from moorings.cli.main import app
from moorings.cli.output import say

FILES_OTHERWISE = ":0"
"""Where there is nothing to complete, file names are."""


def main() -> None:
    """Print the words that the last one may become."""
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
