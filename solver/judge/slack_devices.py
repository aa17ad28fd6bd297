"""Devices as expected pods see them: those that look alike are judged once.

A look is all that the judge's rules read of a device for the requests of expected pods,
so that devices of one look serve each of these requests equally often. It leaves out
what none of them reads, such as a serial number. What matchAttribute compares is kept
apart from it: which values there are is no matter, only which devices share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from contracts.device import Device, DeviceCounterConsumption
from contracts.ids import DeviceID, NodeName, PoolID
from solver.judge.amounts import consumption_of
from solver.judge.devices import judge_device
from solver.judge.facts import DeviceFacts, Facts
from solver.judge.pools import VisiblePool
from solver.problem.gangs import SubrequestPart
from solver.selectors.footprint import Footprint, footprint_of
from solver.selectors.projection import find_faults, project_all

Draws = tuple[tuple[str, str, int], ...]
"""(counter set, counter, 1e-9 units)."""
MOST_SHARES = 1 << 24
"""The most uses of one device that are counted for one request."""
Consumed = tuple[tuple[str, int], ...]
"""1e-9 units by capacity, sorted."""
Left = tuple[int, Consumed, Draws, int]
"""(look of a device, what the pods of the decision consume of it, what it draws if it
is exclusive, how many that draw the same the counters suffice for)."""
Devices = tuple[Left, ...]
"""How some devices are left, sorted."""
Values = frozenset[tuple[str, object]]
"""(type, value) of an attribute."""
Comparison = tuple[str, SubrequestPart]
"""(matchAttribute, a request that it means)."""


class SeenDevice(Struct, frozen=True):
    """A device that a node sees."""

    name: DeviceID
    look: int
    values: tuple[Values, ...]
    """By comparison."""
    draws: Draws
    """What it would draw: a device that is shared already draws nothing more."""
    groups: tuple[tuple[str, frozenset[str]], ...]
    """(counter set, compatibility groups) of what it would draw from."""
    is_exclusive: bool


class DeviceLooks:
    """The looks that devices have for some requests, numbered as they are met."""

    def __init__(
        self,
        facts: Facts,
        requests: Sequence[SubrequestPart],
        comparisons: Sequence[Comparison],
    ) -> None:
        self._facts = facts
        self._requests = requests
        self._comparisons = comparisons
        expressions = {text for request in requests for text in request.selectors}
        self._footprint = _unite(map(footprint_of, expressions))
        self._numbers: dict[object, int] = {}
        self._examples: list[tuple[NodeName, DeviceID, DeviceFacts]] = []
        """A device of each look, and a node that sees it."""
        self._serves: list[list[bool]] = []
        """By look, then by request."""
        self._uses_of: dict[tuple[Left, int], int] = {}
        self._uses: dict[tuple[Devices, int], int] = {}

    # --- what a node sees ------------------------------------------------------------

    def on(self, node: NodeName) -> list[SeenDevice]:
        """List the devices that may be had on a node."""
        return [
            device
            for pool, visible in self._facts.pools_of(node)
            if visible.usable
            for device in self._list_pool(node, pool, visible)
        ]

    def _list_pool(
        self, node: NodeName, pool: PoolID, visible: VisiblePool
    ) -> Iterator[SeenDevice]:
        driver, devices = pool.driver, [each for each, _ in visible.devices.values()]
        faults = find_faults(devices)
        projections = project_all(self._footprint, driver, devices, faults)
        features = self._facts.find_node(node).declared_features
        draws = any(device.consumes_counters for device in devices)
        left = self._facts.counters_left_of(node, pool) if draws else {}
        overdrawn = any(amount < 0 for amount in left.values())
        for device, projection in zip(devices, projections, strict=True):
            name = DeviceID(driver, pool.pool, device.name)
            facts = self._facts.find_device(node, name)
            if facts is None:
                continue
            # A device that is shared already draws nothing more.
            shared = facts.shareable and facts.shares is not None
            lacks = overdrawn and bool(device.consumes_counters) and not shared
            look = (lacks, driver, projection, features, *_read_look(facts))
            number = self._numbers.setdefault(look, len(self._examples))
            if number == len(self._examples):
                self._examples.append((node, name, facts))
                self._serves.append(
                    [
                        not lacks and self._serves_request(number, r)
                        for r in self._requests
                    ]
                )
            is_drawn = self._facts.features.partitionable_devices and not shared
            drawn = device.consumes_counters if is_drawn else ()
            yield SeenDevice(
                name=name,
                look=number,
                values=self._values_of(driver, device),
                draws=_list_draws(drawn),
                groups=tuple(
                    (each.counter_set, frozenset(each.compatibility_groups or ()))
                    for each in drawn
                ),
                is_exclusive=not facts.shareable,
            )

    def _serves_request(self, look: int, request: SubrequestPart) -> bool:
        node, name, device = self._examples[look]
        return not any(judge_device(self._facts, node, request, (name, device), ""))

    def _values_of(self, driver: str, device: Device) -> tuple[Values, ...]:
        return tuple(
            frozenset(self._facts.compared_values(request, attribute, driver, device))
            for attribute, request in self._comparisons
        )

    # --- how often devices may serve -------------------------------------------------

    def count_uses(self, devices: Devices, request: int) -> int:
        """Count how often some devices may yet serve a request, by its number."""
        key = (devices, request)
        uses = self._uses.get(key)
        if uses is None:
            limited, limits = Counter[Draws](), dict[Draws, int]()
            for left in devices:
                _, _, draws, limit = left
                limited[draws] += self._uses_left(left, request)
                limits[draws] = limit
            uses = self._uses[key] = sum(
                min(total, limits[draws]) if draws else total
                for draws, total in limited.items()
            )
        return uses

    def _uses_left(self, left: Left, request: int) -> int:
        key = (left, request)
        uses = self._uses_of.get(key)
        if uses is None:
            serves = self._serves[left[0]][request]
            uses = self._uses_of[key] = self._count_uses(left, request) if serves else 0
        return uses

    def _count_uses(self, left: Left, request: int) -> int:
        """Count the uses of a device that nobody has for itself."""
        _, name_of_device, device = self._examples[left[0]]
        if not self._facts.features.consumable_capacity:
            return 1
        bounds, consumed = [MOST_SHARES], dict(left[1])
        driver = name_of_device.driver
        asked = amounts_of(self._facts, self._requests[request], driver, device)
        for name, amount in asked.items():
            free = device.device.capacity[name].value.nano
            free -= (device.shares or {}).get(name, 0)
            if device.shares is not None and amount > free:
                return 0
            if amount:
                bounds.append((free - consumed.get(name, 0)) // amount)
        return min(bounds) if device.shareable else 1


def amounts_of(
    facts: Facts, subrequest: SubrequestPart, driver: str, device: DeviceFacts
) -> dict[str, int]:
    """Compute what a request consumes of a device; nothing where it may not have it."""
    asked = subrequest.capacity
    return consumption_of(device.device, asked, facts.features, driver) or {}


def _read_look(facts: DeviceFacts) -> tuple[object, ...]:
    """Return what the rules read of a device besides selectors and counters."""
    device, shares = facts.device, facts.shares
    return (
        tuple(device.capacity.items()),
        bool(device.consumes_counters),
        bool(device.binding_conditions),
        facts.reachable,
        facts.taken,
        facts.shareable,
        None if shares is None else tuple(sorted(shares.items())),
        facts.taints,
        bool(facts.pool_slice.skip_node_operations),
    )


def _list_draws(drawn: Iterable[DeviceCounterConsumption]) -> Draws:
    return tuple(
        sorted(
            (each.counter_set, name, counter.value.nano)
            for each in drawn
            for name, counter in each.counters.items()
        )
    )


def _unite(footprints: Iterable[Footprint]) -> Footprint:
    """Return what any of some expressions can see."""
    listed = tuple(footprints)
    return Footprint(
        attributes=tuple(sorted({name for each in listed for name in each.attributes})),
        capacity=tuple(sorted({name for each in listed for name in each.capacity})),
        multiple=any(each.multiple for each in listed),
        everything=any(each.everything for each in listed),
    )
