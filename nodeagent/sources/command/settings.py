"""The settings of a source `command` in the sources file."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import isabs, normpath
from typing import Annotated

from msgspec import Meta

from nodeagent.sources.source_spec import BrokenRule, DeviceSourceSpec, Seconds

_Argument = Annotated[str, Meta(max_length=4096)]


class CommandSpec(DeviceSourceSpec, frozen=True, kw_only=True, tag="command"):
    """Devices that an executable lists."""

    exec: Annotated[tuple[_Argument, ...], Meta(min_length=1, max_length=64)]
    """Absolute path of the executable, and its arguments; no shell reads them."""
    read_seconds: Seconds = 5.0
    limit_seconds: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """It must have ended by then, or it is killed with all that it started."""

    def find_broken_rules(self) -> Iterator[BrokenRule]:
        """Require an absolute path."""
        program = self.exec[0]
        if not isabs(program) or normpath(program) != program:
            yield (
                "exec[0]",
                f"{program!r}: must be an absolute path without `.` and `..`",
            )
        for index, argument in enumerate(self.exec):
            if "\0" in argument:
                yield f"exec[{index}]", "must have no NUL"
