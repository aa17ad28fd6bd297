"""Which devices `get nodes` and `get devices` are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moorings.errors import UsageError
from moorings.views.states import FREE, HEALTHS, STATES


class DeviceFilter(Struct, frozen=True, kw_only=True):
    """Filters of devices; empty: all."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    state: str = ""
    health: str = ""
    free: bool = False
    held: bool = False
    """Held as a whole or in part."""

    def __post_init__(self) -> None:
        for option, value, known in (
            ("--state", self.state, STATES),
            ("--health", self.health, HEALTHS),
        ):
            words = {word.lower() for word in known}
            if value and value.lower() not in words:
                listed = ", ".join(sorted(words))
                raise UsageError(
                    f"get: {option} {value!r} is unknown; use one of {listed}"
                )
        if self.free and self.held:
            raise UsageError("get: --free and --held exclude each other")

    def __bool__(self) -> bool:
        return self != DeviceFilter()

    @property
    def options(self) -> tuple[str, ...]:
        """The options that were given."""
        fields = self.__struct_fields__
        return tuple(f"--{field}" for field in fields if getattr(self, field))

    def lets_through(self, row: Mapping[str, Any]) -> bool:
        """True if a device is shown."""
        return (
            self.node in ("", row["node"])
            and self.driver in ("", row["driver"])
            and self.pool in ("", row["pool"])
            and self.state.lower() in ("", *(s.lower() for s in row["states"]))
            and self.health.lower() in ("", row["health"].lower())
            and (not self.free or FREE in row["states"])
            and (not self.held or bool(row["holders"]))
        )
