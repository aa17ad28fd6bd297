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


MEANINGS = {
    ExitCode.YES: "Yes to everything that was asked, or done.",
    ExitCode.NO: "No: a gang waits or was rejected, something was found, bytes differ.",
    ExitCode.USAGE: "Wrong usage: an option, an argument or a command.",
    ExitCode.ERROR: "An error: no answer, a file, a server, or nothing of that name.",
    ExitCode.INTERRUPTED: "Interrupted by Ctrl-C.",
    ExitCode.CLOSED: "Whoever read the answer went away.",
}
"""What they mean to who runs a command."""
