"""Where the executable begins: light, as the rest takes half a second to import."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""128 and the number of SIGINT, as shells count it."""


def main() -> None:
    """Import the command line and run it; Ctrl-C ends both without a traceback."""
    try:
        from moorings.cli.main import main as run  # noqa: PLC0415  # may be interrupted
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()
