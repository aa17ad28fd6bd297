"""What room on nodes is worth, as the judge counts it: device by device.

Room for an expected pod is the least of what bounds it: of each of the node's resources
that it needs, how often the need is there; of each request, how often its devices are
there; and of each matchAttribute, the same for each value, summed. Only first choices
that ask for a number of devices count, and counters, compatibility groups and
distinctAttribute do not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from contracts.ids import DeviceID, DeviceName, NodeName
from solver.judge.amounts import consumed
from solver.judge.devices import device_rules
from solver.judge.facts import DeviceFacts, Facts
from solver.judge.nodes import node_lets_in
from solver.judge.shared import Use
from solver.problem.problem import ClaimPart, MemberPart, RequestPart, SubrequestPart

MOST_SHARES = 1 << 24
"""Of one device, for one request."""
Times = dict[DeviceID, int]
"""How often each device may serve a request."""


class Given(Struct, frozen=True):
    """What the pods of a decision take of one node."""

    needs: dict[str, int] = {}
    taken: frozenset[DeviceID] = frozenset()
    consumed: dict[DeviceID, dict[str, int]] = {}
    """1e-9 units, of devices that several may have."""


NOTHING = Given()


def value_lost(
    facts: Facts, pods: Iterable[tuple[NodeName, MemberPart]], uses: Iterable[Use]
) -> int:
    """Sum over the nodes that pods are on: their value before, less that after."""
    needs: dict[NodeName, Counter[str]] = defaultdict(Counter)
    for node, member in pods:
        needs[node].update({"pods": 1, **member.resources})
    by_node: dict[NodeName, list[Use]] = defaultdict(list)
    for use in uses:
        if not use.asked.admin_access:
            by_node[use.node].append(use)
    return sum(
        _lost(facts, node, _given(facts, amounts, by_node[node]))
        for node, amounts in needs.items()
    )


def _given(facts: Facts, needs: Counter[str], uses: list[Use]) -> Given:
    shares: dict[DeviceID, dict[str, int]] = {}
    for use in uses:
        known = facts.device(use.node, use.device)
        if known is not None and use.shareable:
            total = shares.setdefault(use.device, {})
            for name, amount in _amounts(facts, use.asked, known).items():
                total[name] = total.get(name, 0) + amount
    taken = frozenset(use.device for use in uses if not use.shareable)
    return Given(dict(needs), taken, shares)


def _amounts(facts: Facts, asked: SubrequestPart, known: DeviceFacts) -> dict[str, int]:
    fractional = facts.features.fractional_capacity_range
    return consumed(known.device, asked.capacity, fractional=fractional) or {}


def _lost(facts: Facts, node: NodeName, given: Given) -> int:
    room, lost = _Room(facts, node), 0
    for kind in facts.problem.expected:
        if list(node_lets_in(facts.node(node), kind.member, "")):
            continue
        for sign, what in ((1, NOTHING), (-1, given)):
            size = kind.size * room.after(kind.member, what)
            lost += sign * kind.weight * (size + 2 * min(size, 1000))
    return lost


class _Room:
    """Counts the room on one node."""

    def __init__(self, facts: Facts, node: NodeName) -> None:
        self._facts = facts
        self._node = node
        self._able: dict[object, list[tuple[DeviceID, DeviceFacts]]] = {}
        """Devices that may serve a request if nobody of the decision has them."""

    def after(self, member: MemberPart, given: Given) -> int:
        """Count how many more pods the node takes by counting."""
        bounds = self._by_node(member, given)
        for claim in member.claims:
            bounds += self._by_claim(claim, given)
        return min(bounds, default=0)

    def _by_node(self, member: MemberPart, given: Given) -> list[int]:
        free, bounds = self._facts.node(self._node).free, []
        for name, need in {"pods": 1, **member.resources}.items():
            if free is None or (name == "pods" and name not in free) or not need:
                continue
            left = max(free.get(name, 0), 0) - given.needs.get(name, 0)
            bounds.append(left // need)
        return bounds

    def _by_claim(self, claim: ClaimPart, given: Given) -> list[int]:
        counted = [item for item in claim.requests if _counts(item)]
        times = {
            item.name: self._times(item.alternatives[0], given) for item in counted
        }
        bounds = [
            sum(times[item.name].values()) // item.alternatives[0].count
            for item in counted
        ]
        for constraint in claim.constraints:
            attribute = constraint.match_attribute
            if attribute is None:
                continue
            scope = [item for item in counted if _is_meant(item, constraint.requests)]
            if scope:
                by_value = [self._by_value(r, attribute, times[r.name]) for r in scope]
                values = set.intersection(*(set(found) for found in by_value))
                bounds.append(
                    sum(min(found[value] for found in by_value) for value in values)
                )
        return bounds

    def _by_value(
        self, request: RequestPart, attribute: str, times: Times
    ) -> dict[tuple[str, object], int]:
        """Count by value how often devices that have it can serve the request."""
        asked, found = request.alternatives[0], Counter[tuple[str, object]]()
        for name, often in times.items():
            known = self._facts.device(self._node, name)
            if known is not None:
                device = known.device
                for value in self._facts.elements(
                    asked, attribute, name.driver, device
                ):
                    found[value] += often
        return {value: often // asked.count for value, often in found.items()}

    def _times(self, asked: SubrequestPart, given: Given) -> Times:
        capacity = tuple(sorted((n, q.nano) for n, q in asked.capacity.items()))
        key = (asked.selectors, asked.tolerations, capacity)
        if key not in self._able:
            self._able[key] = list(self._able_to(asked))
        return {
            name: self._often(asked, known, given.consumed.get(name, {}))
            for name, known in self._able[key]
            if name not in given.taken
        }

    def _able_to(self, asked: SubrequestPart) -> Iterator[tuple[DeviceID, DeviceFacts]]:
        facts, node = self._facts, self._node
        for pool, seen in facts.pools_of(node):
            if not seen.usable:
                continue
            sound = all(left >= 0 for left in facts.counters_left(node, pool).values())
            for short in seen.devices:
                name = DeviceID(pool.driver, pool.pool, DeviceName(short))
                known = facts.device(node, name)
                if known is None:
                    continue
                shared = known.shareable and known.shares is not None
                if known.device.consumes_counters and not sound and not shared:
                    continue
                if not list(device_rules(facts, node, asked, (name, known), "")):
                    yield name, known

    def _often(
        self, asked: SubrequestPart, known: DeviceFacts, given: dict[str, int]
    ) -> int:
        """Count the uses of a device that nobody has for itself."""
        if not self._facts.features.consumable_capacity:
            return 1
        bounds = [MOST_SHARES]
        for name, amount in _amounts(self._facts, asked, known).items():
            left = known.device.capacity[name].value.nano
            left -= (known.shares or {}).get(name, 0)
            if known.shares is not None and amount > left:
                return 0
            if amount:
                bounds.append((left - given.get(name, 0)) // amount)
        return min(bounds) if known.shareable else 1


def _counts(request: RequestPart) -> bool:
    first = request.alternatives[0]
    return not first.all_devices and not first.admin_access and first.count > 0


def _is_meant(request: RequestPart, names: tuple[str, ...]) -> bool:
    first = request.alternatives[0].name
    mine = {request.name, f"{request.name}/{first}" if first else request.name}
    return not names or bool(mine & set(names))
