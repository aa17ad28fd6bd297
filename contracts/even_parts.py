"""How pods are divided into equal parts, each in a domain of its own (`Even`). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from contracts.counts import counted


class EvenParts(Struct, frozen=True, kw_only=True):
    """One way to divide pods, and the domains that have room for a part."""

    parts: int
    size: int
    """The pods of each part."""
    found: int
    """Domains with room for a part, at most as many as there are parts."""

    def describe(self, key: str) -> str:
        """Say what is asked of the domains of a key, and how far they reach."""
        parts = counted(self.parts, f"part of {self.size}", f"parts of {self.size}")
        pods = counted(self.parts * self.size, "pod")
        return (
            f"its {pods} must be in equal parts, each in its own domain of {key}; at "
            f"best there is room for {self.found} of {parts}"
        )


def list_even_parts(pods: int) -> Iterator[tuple[int, int]]:
    """Yield the ways to divide pods: (parts, pods of each); the fewest parts first."""
    for parts in range(1, pods + 1):
        if pods % parts == 0:
            yield parts, pods // parts


def find_even_parts(
    pods: int, rooms: Iterable[int], most: int | None = None
) -> EvenParts:
    """Find the division of which most pods have a place, of equal ones the coarsest.

    `rooms`: pods that each domain has room for, of which it may have `most`.
    """
    found = list(rooms)
    ways = []
    for parts, size in list_even_parts(pods):
        is_small = most is None or size <= most
        having = sum(room >= size for room in found) if is_small else 0
        ways.append(EvenParts(parts=parts, size=size, found=min(having, parts)))
    whole = EvenParts(parts=0, size=0, found=0)
    return max(ways, key=lambda way: way.found * way.size, default=whole)
