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


class LimitedResource(Struct, frozen=True):
    """One resource that limits what some node may take."""

    index: int
    """Into `Query.resources`."""
    unit: int
    """The amount of a level."""
    caps: tuple[int, ...]
    """By state, the amount that its devices could ever use: more is as good."""


class ResourceLevels(Struct, frozen=True):
    """What pods take and nodes have of each limited resource, in levels."""

    needs: tuple[tuple[int, ...], ...]
    """By member kind."""
    starts: tuple[tuple[int, ...], ...]
    """By node class."""
    caps: tuple[tuple[int, ...], ...]
    """By resource, then state."""
    cap_is_endless: bool = False
    """True if the cap of a resource stands for no limit, which nothing lessens."""


def find_scarce_resources(
    free: Sequence[tuple[int | None, ...]],
    roots: Sequence[int],
    needs: Sequence[tuple[int, ...]],
    caps_of: Callable[[int], Sequence[int]],
) -> list[LimitedResource]:
    """Find the resources that some node class may run out of.

    `free` and `roots`: by node class; `needs`: by member kind; `caps_of(resource)`:
    what the devices of each state could ever use.
    """
    resources = []
    for index in range(len(needs[0]) if needs else 0):
        amounts = [need[index] for need in needs]
        if not any(amounts) or all(left[index] is None for left in free):
            continue
        caps = tuple(caps_of(index))
        if any(
            left[index] is not None and left[index] < caps[root]  # type: ignore[operator]  # just asked
            for left, root in zip(free, roots, strict=True)
        ):
            resources.append(LimitedResource(index, gcd(*amounts), caps))
    return resources


def find_limited_resources(
    free: Sequence[tuple[int | None, ...]],
    states: int,
    needs: Sequence[tuple[int, ...]],
) -> list[LimitedResource]:
    """Find every resource that any class is limited in; its cap means no limit.

    `needs`: of all pods that matter, those that may come included.
    """
    resources = []
    for index in range(len(needs[0]) if needs else 0):
        amounts = [need[index] for need in needs]
        limits = [left[index] for left in free]
        finite = [limit for limit in limits if limit is not None]
        if any(amounts) and finite:
            no_limit = max(finite) + 1
            caps = (no_limit,) * states
            resources.append(LimitedResource(index, gcd(*amounts), caps))
    return resources


def to_levels(
    resources: Sequence[LimitedResource],
    free: Sequence[tuple[int | None, ...]],
    roots: Sequence[int],
    needs: Sequence[tuple[int, ...]],
    *,
    coarseness: int,
    round_up: bool,
    cap_is_endless: bool,
) -> ResourceLevels:
    """Count in levels of `coarseness` units; `round_up`: what pods need, not down."""
    units = [resource.unit * coarseness for resource in resources]
    caps = tuple(
        tuple(-(-cap // unit) for cap in resource.caps)
        for resource, unit in zip(resources, units, strict=True)
    )
    # Nodes have as many whole levels as their amount holds, but no more than the cap.
    starts = []
    for left, root in zip(free, roots, strict=True):
        start = []
        for resource, unit, caps_by_state in zip(resources, units, caps, strict=True):
            cap, amount = caps_by_state[root], left[resource.index]
            level = cap if amount is None else amount // unit
            start.append(min(level, cap))
        starts.append(tuple(start))
    return ResourceLevels(
        needs=tuple(
            tuple(
                -(-need[resource.index] // unit)
                if round_up
                else need[resource.index] // unit
                for resource, unit in zip(resources, units, strict=True)
            )
            for need in needs
        ),
        starts=tuple(starts),
        caps=caps,
        cap_is_endless=cap_is_endless,
    )
