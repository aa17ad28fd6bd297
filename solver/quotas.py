"""How much each namespace may have, as configured: `NAMESPACE[/DRIVER]=NUMBER`.

`*` stands for every namespace that says nothing of its own. Knows neither what counts
nor how much of it there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.ids import DriverName, Namespace
from solver.errors import QuotaError

EVERY = Namespace("*")
ALL_DRIVERS = DriverName("")
MAX_LIMIT = 1_000_000_000


class Quotas:
    """Limits by namespace and driver."""

    def __init__(
        self, limits: Mapping[Namespace, Mapping[DriverName, int]] | None = None
    ) -> None:
        self._limits = limits or {}

    @classmethod
    def read(cls, lines: Iterable[str], *, of_drivers: bool) -> Quotas:
        """Read what is configured; `of_drivers`: whether a driver may be named.

        Raises:
            QuotaError: a line is not of that form, or is there twice.
        """
        limits: dict[Namespace, dict[DriverName, int]] = {}
        for line in lines:
            owner, equals, number = line.partition("=")
            name, slash, driver_name = owner.partition("/")
            namespace, driver = Namespace(name.strip()), DriverName(driver_name.strip())
            if not equals or not namespace or bool(slash) > (bool(driver) & of_drivers):
                form = "NAMESPACE[/DRIVER]=NUMBER" if of_drivers else "NAMESPACE=NUMBER"
                raise QuotaError(line, f"must be {form}")
            if driver in limits.get(namespace, {}):
                raise QuotaError(line, f"{owner.strip()} appears twice")
            limits.setdefault(namespace, {})[driver] = _read_limit(line, number)
        return cls(limits)

    def of(self, namespace: Namespace) -> dict[DriverName, int]:
        """Return the limits of a namespace by driver; its own count before `*`."""
        return {**self._limits.get(EVERY, {}), **self._limits.get(namespace, {})}


NO_QUOTAS = Quotas()


def _read_limit(line: str, number: str) -> int:
    text = number.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise QuotaError(line, f"{text!r} is no number")
    if int(text) > MAX_LIMIT:
        raise QuotaError(line, f"more than {MAX_LIMIT}")
    return int(text)
