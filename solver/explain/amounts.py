"""Free devices that still lack something: counters, or room for a share.

Each is looked at by itself, as if it were the only one asked for: several that draw
from the same counters may lack together what each has alone.
"""

from __future__ import annotations

from contracts.features import Features
from contracts.ids import DeviceName
from contracts.quantity import Quantity
from solver.devices.candidates import indices_of, is_shareable, shares_of
from solver.devices.pools import PoolView
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
    view: PoolView, free: int, kind: RequestKind, features: Features
) -> tuple[int, str]:
    """Narrow free devices to those that lack nothing; and what the first other lacks.

    Admin access takes nothing of a device.
    """
    if kind.admin:
        return free, ""
    enough = find_with_room(view, free, kind, features)
    lacking = free & ~enough
    why = _describe_share(view, lacking, kind, features) if lacking else ""
    if not view.counters or not features.partitionable_devices:
        return enough, why
    counters, drawing = Counters(), enough & find_drawing(view, features)
    counters.add(view)
    if drawing and counters.unknown:
        return enough & ~drawing, why or _describe_unknown(view, counters.unknown)
    for index in indices_of(drawing):
        found = _describe_draw(view, index, counters, features)
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
            used = shares_of(view, device, use, features) or {}
            costs = costs_of(device, kind.capacity, features, view.driver) or {}
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
    view: PoolView, lacking: int, kind: RequestKind, features: Features
) -> str:
    """Describe what shares have left too little of, on the first of these devices."""
    device = view.devices[next(indices_of(lacking))]
    used = shares_of(view, device, view.use, features) or {}
    costs = costs_of(device, kind.capacity, features, view.driver) or {}
    for name, asked in sorted(costs.items()):
        total = device.capacity[name].value.nano
        left = total - used.get(name, 0)
        if asked > left:
            has, of, need = map(Quantity.of_nano, (left, total, asked))
            return f"{need} {name} needed, {has} of {of} left in {device.name}"
    return ""


def _describe_unknown(view: PoolView, names: list[DeviceName]) -> str:
    """Describe a device in use that is no longer published, so its draw is unknown."""
    uses = view.use.unpublished if view.use is not None else ()
    holder = next((use.holder for use in uses if use.device == names[0]), "somebody")
    return (
        f"{names[0]} of pool {view.pool}, held by {holder}, is no longer "
        "published, so its draw is unknown"
    )


def _describe_draw(
    view: PoolView, index: int, counters: Counters, features: Features
) -> str:
    """Describe a counter of a device with too little left; empty: all have enough."""
    device = view.devices[index]
    names = {number: key[3] for key, number in counters.keys.items()}
    for number, asked in counters.draws(view, device):
        left = counters.left[number]
        if asked > left:
            return (
                f"{device.name} draws {Quantity.of_nano(asked)} of {names[number]}, "
                f"{Quantity.of_nano(max(left, 0))} left"
            )
    if features.compatibility_groups:
        for number, groups in counters.groups(view, device):
            allowed = counters.allowed[number]
            if allowed is not None and not set(allowed) & set(groups):
                used = _name_groups(allowed)
                return f"{device.name} is {_name_groups(groups)}, those in use {used}"
    return ""


def _name_groups(groups: tuple[str, ...]) -> str:
    if groups in (NO_GROUPS, ()):
        return "in no compatibility group"
    return f"in compatibility group {' or '.join(groups)}"
