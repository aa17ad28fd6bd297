"""How many waiting gangs of each namespace are tried: `NAMESPACE=NUMBER`.

`*` stands for every namespace that says nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.ids import Namespace
from solver.errors import QuotaError

EVERY = Namespace("*")
MAX_LIMIT = 1_000_000_000


class Quotas:
    """Limits by namespace."""

    def __init__(self, limits: Mapping[Namespace, int] | None = None) -> None:
        self._limits = limits or {}

    @classmethod
    def read(cls, lines: Iterable[str]) -> Quotas:
        """Read what is configured.

        Raises:
            QuotaError: a line is not of that form, or is there twice.
        """
        limits: dict[Namespace, int] = {}
        for line in lines:
            owner, equals, number = line.partition("=")
            namespace = Namespace(owner.strip())
            if not equals or not namespace or "/" in namespace:
                raise QuotaError(line, "must be NAMESPACE=NUMBER")
            if namespace in limits:
                raise QuotaError(line, f"{namespace} appears twice")
            limits[namespace] = _read_limit(line, number)
        return cls(limits)

    def of(self, namespace: Namespace) -> int | None:
        """Return the limit of a namespace, its own before that of `*`; None: none."""
        own = self._limits.get(namespace)
        return self._limits.get(EVERY) if own is None else own


NO_QUOTAS = Quotas()


def _read_limit(line: str, number: str) -> int:
    text = number.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise QuotaError(line, f"{text!r} is no number")
    if int(text) > MAX_LIMIT:
        raise QuotaError(line, f"more than {MAX_LIMIT}")
    return int(text)
