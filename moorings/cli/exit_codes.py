"""Exit codes of commands."""

from __future__ import annotations


class ExitCode:
    """The codes of all commands."""

    YES = 0
    NO = 1
    USAGE = 2
    ERROR = 3
    CLOSED = 141
    """128 and the number of SIGPIPE: the reader of the answer went away."""
    INTERRUPTED = 130
    """128 and the number of SIGINT, as shells count it."""
