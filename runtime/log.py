"""Logs: JSON lines on stdout, or readable lines where a person watches.

Decides only how lines look. What is bound with `structlog.contextvars` is on every
line of that task.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Any

# structlog would load rich (3 MiB), for tracebacks that no service prints.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type] # as if not installed
import structlog  # noqa: E402
from structlog.processors import ExceptionRenderer  # noqa: E402
from structlog.tracebacks import ExceptionDictTransformer  # noqa: E402
from structlog.typing import FilteringBoundLogger, Processor  # noqa: E402

if sys.modules["rich"] is None:
    del sys.modules["rich"]


def get_logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a module."""
    logger: FilteringBoundLogger = structlog.get_logger(module=name)
    return logger


class _StdoutLogger(structlog.PrintLogger):
    """Prints lines; what stdout does not take, such as on a full disk, is lost.

    A service that cannot say what it does still does it.
    """

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError):
            super().msg(message)

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


def configure_logging(service: str, *, level: str = "info") -> None:
    """Set up the process's logs; the first thing that a service does."""
    readable = sys.stdout.isatty()
    last: Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if readable
        else structlog.processors.JSONRenderer(default=str)
    )
    # Without the values of variables: they are others' words, and a whole cluster.
    traceback = ExceptionDictTransformer(show_locals=False)
    errors: list[Processor] = [] if readable else [ExceptionRenderer(traceback)]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *errors,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=lambda *_: _StdoutLogger(sys.stdout),
        cache_logger_on_first_use=False,
    )
    bind_facts(service=service)


def log_to_stderr(level: int = logging.ERROR) -> None:
    """Print what is at least so grave to stderr: output is the answer's."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def be_quiet() -> None:
    """Print errors alone, unless the program has set up structlog itself."""
    if not structlog.is_configured():
        log_to_stderr()


def bind_facts(**facts: Any) -> None:
    """Put facts, such as ids, on every further line of this task."""
    structlog.contextvars.bind_contextvars(**facts)
