"""Devices by class and by what they are doing, counted node by node; pure.

A node is counted again when something of it changed, so a count costs what changed
since the last one. What a selector says of a device is asked of the caller; until it is
known the device is in no class that has this selector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from contracts.device import Device
from contracts.ids import DeviceName
from solver.cache import Slot
from solver.snapshot.pages import NodeParts, Page
from solver.snapshot.parts import ClassPart, NodePart, Part, PoolPart, UsePart

MOST_CLASSES = 32
"""Classes that are counted, by name; the others are not."""
STATES = ("free", "held", "held_unhealthy", "unavailable", "unhealthy")
FREE_STEPS = (1, 2, 4, 8, 16)
"""Nodes are counted by whether they have so many free devices, or more."""

Judge = Callable[[str, str, Device], bool | None]
"""(expression, driver, device) -> whether it is true; None: nobody knows yet."""
Classes = tuple[ClassPart, ...]


class DeviceCounts(Struct, frozen=True):
    """Devices by (class, state), and nodes by (class, free devices at least)."""

    devices: Counter[tuple[str, str]]
    nodes: Counter[tuple[str, int]]

    @classmethod
    def of_none(cls) -> DeviceCounts:
        """Count nothing."""
        return cls(Counter(), Counter())

    def add(self, other: DeviceCounts) -> None:
        """Count what another one has counted, too."""
        self.devices.update(other.devices)
        self.nodes.update(other.nodes)


class _Pool(Struct, frozen=True):
    """The devices of a pool as bits: by name, and those of each class."""

    classes: Classes
    bits: dict[DeviceName, int]
    members: tuple[int, ...]
    """In the order of the classes."""
    is_complete: bool
    """True if every selector was known."""


class _Counted(Struct, frozen=True):
    """The counts of a node or of a page."""

    classes: Classes
    counts: DeviceCounts


_POOL: Slot[_Pool] = Slot()
_NODE: Slot[_Counted] = Slot()
_PAGE: Slot[_Counted] = Slot()


def list_classes(parts: Iterable[object]) -> Classes:
    """List the classes that are counted."""
    found = [part for part in parts if isinstance(part, ClassPart)]
    return tuple(sorted(found, key=lambda part: part.name)[:MOST_CLASSES])


def count_page(page: Page, classes: Classes, judge: Judge) -> DeviceCounts:
    """Count the devices of all nodes of a page."""
    known = _PAGE.get(page.memory)
    if known is not None and known.classes is classes:
        return known.counts
    counts = DeviceCounts.of_none()
    for node in page.nodes.values():
        counts.add(_count_node(node, classes, judge))
    if all(_is_known(node, classes) for node in page.nodes.values()):
        _PAGE.keep(page.memory, _Counted(classes, counts))
    return counts


def _is_known(node: NodeParts, classes: Classes) -> bool:
    known = _NODE.get(node.memory)
    return known is not None and known.classes is classes


def _count_node(node: NodeParts, classes: Classes, judge: Judge) -> DeviceCounts:
    """Count the devices of a node, or (owner "") those of no node."""
    known = _NODE.get(node.memory)
    if known is not None and known.classes is classes:
        return known.counts
    values = [part.value for part in node.parts.values()]
    uses = {(v.driver, v.pool): v for v in values if isinstance(v, UsePart)}
    is_away = any(isinstance(v, NodePart) and v.unavailable for v in values)
    counts, is_complete = DeviceCounts.of_none(), True
    for part in node.parts.values():
        if isinstance(part.value, PoolPart):
            pool = _pool_of(part, part.value, classes, judge)
            use = uses.get((part.value.driver, part.value.pool))
            _count_pool(pool, use, counts.devices, is_away=is_away)
            is_complete = is_complete and pool.is_complete
    if node.owner:
        counts.nodes.update(
            (device_class.name, step)
            for device_class in classes
            for step in FREE_STEPS
            if counts.devices[device_class.name, "free"] >= step
        )
    if is_complete:
        _NODE.keep(node.memory, _Counted(classes, counts))
    return counts


def _pool_of(part: Part, pool: PoolPart, classes: Classes, judge: Judge) -> _Pool:
    """Find which devices of a pool are in which class."""
    known = _POOL.get(part.memory)
    if known is not None and known.classes is classes:
        return known
    is_complete, members = True, []
    for device_class in classes:
        member = 0
        for index, device in enumerate(pool.devices):
            verdict = _is_member(device_class.selectors, pool.driver, device, judge)
            is_complete = is_complete and verdict is not None
            member |= bool(verdict) << index
        members.append(member)
    bits = {device.name: 1 << index for index, device in enumerate(pool.devices)}
    found = _Pool(classes, bits, tuple(members), is_complete)
    return _POOL.keep(part.memory, found) if is_complete else found


def _is_member(
    selectors: Sequence[str], driver: str, device: Device, judge: Judge
) -> bool | None:
    """True if all selectors are true of a device; None: one is not known yet."""
    verdicts = [judge(selector, driver, device) for selector in selectors]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _count_pool(
    pool: _Pool,
    use: UsePart | None,
    devices: Counter[tuple[str, str]],
    *,
    is_away: bool,
) -> None:
    held = sick = 0
    if use is not None:
        for name in (*use.taken, *(share.device for share in use.shared)):
            held |= pool.bits.get(name, 0)
        for name, _ in use.taints:
            sick |= pool.bits.get(name, 0)
    for device_class, member in zip(pool.classes, pool.members, strict=True):
        idle = member & ~held & ~sick
        numbers = {
            "held": (member & held & ~sick).bit_count(),
            "held_unhealthy": (member & held & sick).bit_count(),
            "unhealthy": (member & ~held & sick).bit_count(),
            "unavailable" if is_away else "free": idle.bit_count(),
        }
        for state, number in numbers.items():
            if number:
                devices[device_class.name, state] += number
