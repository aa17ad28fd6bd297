"""The settings of a source `command` in the sources file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from nodeagent.sources.source_spec import (
    Argument,
    BrokenRule,
    DeviceSourceSpec,
    Seconds,
    check_command,
)


class CommandSpec(DeviceSourceSpec, frozen=True, kw_only=True, tag="command"):
    """Devices that an executable lists."""

    exec: Annotated[tuple[Argument, ...], Meta(min_length=1, max_length=64)]
    """Absolute path of the executable, and its arguments; no shell reads them."""
    read_seconds: Seconds = 5.0
    limit_seconds: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """It must have ended by then, or it is killed with all that it started."""

    def find_broken_rules(self) -> Iterator[BrokenRule]:
        """Require an absolute path."""
        yield from check_command("exec", self.exec)
