"""Logs of commands: of errors alone, on standard error; output is the answer's."""

from __future__ import annotations

import logging
import os
import sys


def quiet_logs() -> None:
    """Set up logs, if anything was imported that can write some.

    Commands that neither serve nor connect need none, and structlog is slow to import.
    """
    if "structlog" not in sys.modules:
        return
    from runtime.log import log_to_stderr  # noqa: PLC0415  # imports structlog

    log_to_stderr(logging.INFO if os.environ.get("MOORINGS_DEBUG") else logging.ERROR)
