"""Node resources as whole levels: which of them a batch can run out of, and how fine.

A level is the largest amount that divides what every pod asks for. A resource that no
node can run out of is left out. Where levels make too many states they are made
coarser: pods are rounded up where an answer must fit and down where a bound must hold,
so both stay true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from msgspec import Struct


class Levels(Struct, frozen=True):
    """What pods take and nodes have of each resource that counts, in levels."""

    needs: tuple[tuple[int, ...], ...]
    """By member kind."""
    starts: tuple[tuple[int, ...], ...]
    """By node class."""
    most: tuple[tuple[int, ...], ...]
    """By resource, then state: what devices could ever use. More is as good."""
    endless: bool = False
    """Whether the most of a resource stands for no limit, which nothing lessens."""


class Resource(Struct, frozen=True):
    """One resource that counts."""

    number: int
    unit: int
    most: tuple[int, ...]
    """Amount by state."""


def scarce(
    free: Sequence[tuple[int | None, ...]],
    roots: Sequence[int],
    needs: Sequence[tuple[int, ...]],
    most: Callable[[int], Sequence[int]],
) -> list[Resource]:
    """Find the resources that some node class may run out of.

    `free` and `roots`: by node class; `needs`: by member kind; `most(resource)`: what
    the devices of each state could ever use.
    """
    found = []
    for number in range(len(needs[0]) if needs else 0):
        asked = [need[number] for need in needs]
        if not any(asked) or all(left[number] is None for left in free):
            continue
        caps = tuple(most(number))
        if any(
            left[number] is not None and left[number] < caps[root]  # type: ignore[operator]  # just asked
            for left, root in zip(free, roots, strict=True)
        ):
            found.append(Resource(number, gcd(*asked), caps))
    return found


def all_limited(
    free: Sequence[tuple[int | None, ...]],
    states: int,
    needs: Sequence[tuple[int, ...]],
) -> list[Resource]:
    """Take every resource that any class is limited in; the most means no limit.

    `needs`: of all pods that matter, those that may come included.
    """
    found = []
    for number in range(len(needs[0]) if needs else 0):
        asked = [need[number] for need in needs]
        amounts = [left[number] for left in free]
        limits = [amount for amount in amounts if amount is not None]
        if any(asked) and limits:
            most = max(limits) + 1
            found.append(Resource(number, gcd(*asked), (most,) * states))
    return found


def levels_of(
    resources: Sequence[Resource],
    free: Sequence[tuple[int | None, ...]],
    roots: Sequence[int],
    needs: Sequence[tuple[int, ...]],
    *,
    coarser: int,
    up: bool,
    endless: bool,
) -> Levels:
    """Count in levels `coarser` times as large as need be; `up`: round pods up."""
    units = [resource.unit * coarser for resource in resources]
    most = tuple(
        tuple(-(-cap // unit) for cap in resource.most)
        for resource, unit in zip(resources, units, strict=True)
    )
    starts = []
    for left, root in zip(free, roots, strict=True):
        row = []
        for resource, unit, caps in zip(resources, units, most, strict=True):
            amount = left[resource.number]
            level = caps[root] if amount is None else amount // unit
            row.append(min(level, caps[root]))
        starts.append(tuple(row))
    return Levels(
        needs=tuple(
            tuple(
                -(-need[resource.number] // unit)
                if up
                else need[resource.number] // unit
                for resource, unit in zip(resources, units, strict=True)
            )
            for need in needs
        ),
        starts=tuple(starts),
        most=most,
        endless=endless,
    )
