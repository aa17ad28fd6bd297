"""Devices that nobody holds and that still lack something: counters, room for a share.

Each is looked at by itself, as if it were the only one asked for: several that draw
from the same counters may lack together what each has alone.
"""

from __future__ import annotations

from contracts.features import Features
from contracts.ids import DeviceName
from contracts.quantity import Quantity
from solver.devices.candidates import indices_of, is_shareable, sum_shares
from solver.devices.pools import PoolView, SeenPool
from solver.kinds.query import RequestKind
from solver.kinds.traits import (
    NO_GROUPS,
    Counters,
    costs_of,
    find_drawing,
    find_with_room,
)
from solver.snapshot.parts import UsePart

MANY = 1 << 16
"""Uses of a device that nothing limits."""


def find_with_enough(
    seen: SeenPool, free: int, kind: RequestKind, features: Features
) -> tuple[int, str]:
    """Narrow free devices to those that lack nothing; and what the first other lacks.

    Admin access takes nothing of a device.
    """
    if kind.admin:
        return free, ""
    enough = find_with_room(seen, free, kind, features)
    lacking = free & ~enough
    why = _describe_share(seen, lacking, kind, features) if lacking else ""
    if not seen.view.counters or not features.partitionable_devices:
        return enough, why
    counters, drawing = Counters(), enough & find_drawing(seen, features)
    counters.add(seen)
    if drawing and counters.unknown:
        return enough & ~drawing, why or _describe_unknown(seen, counters.unknown)
    for index in indices_of(drawing):
        found = _describe_draw(seen, index, counters, features)
        if found:
            enough &= ~(1 << index)
            why = why or found
    return enough, why


def count_further_uses(
    view: PoolView,
    usable: int,
    kind: RequestKind,
    features: Features,
    use: UsePart | None = None,
) -> int:
    """Count the uses beyond the first that devices allow which pods may share.

    `use`: what others hold of them; None: nothing.
    """
    if kind.admin:
        return MANY if usable else 0
    uses = 0
    for index in indices_of(usable & view.facts.marks.shareable):
        device = view.devices[index]
        if is_shareable(device, features):
            used = sum_shares(use).get(device.name, {})
            costs = costs_of(device, kind.capacity, features) or {}
            uses += min(
                (
                    (device.capacity[name].value.nano - used.get(name, 0)) // cost - 1
                    for name, cost in costs.items()
                    if cost
                ),
                default=MANY,
            )
    return min(uses, MANY)


def _describe_share(
    seen: SeenPool, lacking: int, kind: RequestKind, features: Features
) -> str:
    """Say of the first of these devices which capacity shares have left too little."""
    device = seen.view.devices[next(indices_of(lacking))]
    used = sum_shares(seen.use).get(device.name, {})
    for name, asked in sorted(
        (costs_of(device, kind.capacity, features) or {}).items()
    ):
        total = device.capacity[name].value.nano
        left = total - used.get(name, 0)
        if asked > left:
            has, of, need = map(Quantity.of_nano, (left, total, asked))
            return f"{device.name} has {has} of {of} {name} left, and {need} is needed"
    return ""


def _describe_unknown(seen: SeenPool, names: list[DeviceName]) -> str:
    """Say which device in use is published no more, so that its draw is not known."""
    uses = seen.use.unpublished if seen.use is not None else ()
    holder = next((use.holder for use in uses if use.device == names[0]), "somebody")
    return (
        f"{holder} holds {names[0]} of pool {seen.view.pool}, which is no longer "
        "published: what it draws is unknown"
    )


def _describe_draw(
    seen: SeenPool, index: int, counters: Counters, features: Features
) -> str:
    """Say which counter of a device has too little left; empty: all have enough."""
    device = seen.view.devices[index]
    names = {number: key[3] for key, number in counters.keys.items()}
    for number, asked in counters.draws(seen, device):
        left = counters.left[number]
        if asked > left:
            return (
                f"{device.name} draws {Quantity.of_nano(asked)} of {names[number]}, "
                f"{Quantity.of_nano(max(left, 0))} left"
            )
    if features.compatibility_groups:
        for number, groups in counters.groups(seen, device):
            allowed = counters.allowed[number]
            if allowed is not None and not set(allowed) & set(groups):
                return (
                    f"{device.name} is {_name(groups)}, those in use {_name(allowed)}"
                )
    return ""


def _name(groups: tuple[str, ...]) -> str:
    if groups in (NO_GROUPS, ()):
        return "in no compatibility group"
    return f"in compatibility group {' or '.join(groups)}"
