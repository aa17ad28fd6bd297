"""Where the executable begins: light, as the rest takes half a second to import."""

from __future__ import annotations

import gc
import sys

from moorings.cli.exit_codes import ExitCode


def main() -> None:
    """Import the command line and run it; Ctrl-C ends both without a traceback."""
    gc.disable()  # until a command begins: what is imported stays
    try:
        from moorings.cli.main import main as run  # noqa: PLC0415  # may be interrupted
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    run()
