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
from solver.judge.amounts import consumption_of
from solver.judge.devices import judge_device
from solver.judge.facts import DeviceFacts, Facts
from solver.judge.nodes import judge_node
from solver.judge.shared import Use
from solver.problem.gangs import ClaimPart, MemberPart, RequestPart, SubrequestPart
from solver.problem.problem import ExpectedPart

MOST_SHARES = 1 << 24
"""Of one device, for one request."""
Times = dict[DeviceID, int]
"""How often each device may serve a request."""


class NodeLoad(Struct, frozen=True):
    """What the pods of a decision take of one node."""

    needs: dict[str, int] = {}
    taken: frozenset[DeviceID] = frozenset()
    consumed: dict[DeviceID, dict[str, int]] = {}
    """1e-9 units, of devices that several may have."""


NOTHING = NodeLoad()


def value_lost(
    facts: Facts, pods: Iterable[tuple[NodeName, MemberPart]], uses: Iterable[Use]
) -> int:
    """Sum over the nodes that pods are on: their value before, less that after."""
    needs: dict[NodeName, Counter[str]] = defaultdict(Counter)
    for node, member in pods:
        needs[node].update({"pods": 1, **member.resources})
    uses_by_node: dict[NodeName, list[Use]] = defaultdict(list)
    for use in uses:
        if not use.subrequest.admin_access:
            uses_by_node[use.node].append(use)
    return sum(
        _value_lost_on(facts, node, _load_of(facts, amounts, uses_by_node[node]))
        for node, amounts in needs.items()
    )


def _load_of(facts: Facts, needs: Counter[str], uses: list[Use]) -> NodeLoad:
    shares: dict[DeviceID, dict[str, int]] = {}
    for use in uses:
        device = facts.find_device(use.node, use.device)
        if device is not None and use.shareable:
            total = shares.setdefault(use.device, {})
            for name, amount in _amounts(facts, use.subrequest, device).items():
                total[name] = total.get(name, 0) + amount
    taken = frozenset(use.device for use in uses if not use.shareable)
    return NodeLoad(dict(needs), taken, shares)


def _amounts(
    facts: Facts, subrequest: SubrequestPart, device: DeviceFacts
) -> dict[str, int]:
    fractional = facts.features.fractional_capacity_range
    requested = subrequest.capacity
    return consumption_of(device.device, requested, fractional=fractional) or {}


def _value_lost_on(facts: Facts, node: NodeName, load: NodeLoad) -> int:
    room, lost = _Room(facts, node), 0
    for kind in facts.problem.expected:
        if list(judge_node(facts.find_node(node), kind.member, "")):
            continue
        before = kind.size * room.after(kind.member, NOTHING)
        after = kind.size * room.after(kind.member, load)
        lost += kind.weight * (_worth(kind, before) - _worth(kind, after))
    return lost


def _worth(kind: ExpectedPart, size: int) -> int:
    """Weigh room: the first thousand counts five times for parts of devices."""
    return size + 4 * min(size, 1000) if kind.size < 1000 else size


class _Room:
    """Counts the room on one node, before a decision and after it."""

    def __init__(self, facts: Facts, node: NodeName) -> None:
        self._facts = facts
        self._node = node
        self._able: dict[object, list[tuple[DeviceID, DeviceFacts]]] = {}
        """Devices that may serve a request if nobody of the decision has them."""
        self._counted: dict[object, Times] = {}
        """What was counted already: many expected pods ask for the same devices."""

    def after(self, member: MemberPart, load: NodeLoad) -> int:
        """Count how many more pods the node takes by counting."""
        bounds = self._bounds_by_node(member, load)
        for claim in member.claims:
            bounds += self._bounds_by_claim(claim, load)
        return min(bounds, default=0)

    def _bounds_by_node(self, member: MemberPart, load: NodeLoad) -> list[int]:
        free, bounds = self._facts.find_node(self._node).free, []
        for name, need in {"pods": 1, **member.resources}.items():
            if free is None or (name == "pods" and name not in free) or not need:
                continue
            left = max(free.get(name, 0), 0) - load.needs.get(name, 0)
            bounds.append(left // need)
        return bounds

    def _bounds_by_claim(self, claim: ClaimPart, load: NodeLoad) -> list[int]:
        # First each request on its own: how often its devices are there.
        counted = [request for request in claim.requests if _is_counted(request)]
        times = {
            request.name: self._times(request.alternatives[0], load)
            for request in counted
        }
        bounds = [
            sum(times[request.name].values()) // request.alternatives[0].count
            for request in counted
        ]
        # Then each matchAttribute: the same value by value, summed.
        for constraint in claim.constraints:
            attribute = constraint.match_attribute
            if attribute is None:
                continue
            scope = [
                request
                for request in counted
                if _is_meant(request, constraint.requests)
            ]
            if scope:
                pods_by_value = [
                    self._pods_by_value(request, attribute, times[request.name])
                    for request in scope
                ]
                values = set.intersection(*(set(pods) for pods in pods_by_value))
                bounds.append(
                    sum(min(pods[value] for pods in pods_by_value) for value in values)
                )
        return bounds

    def _pods_by_value(
        self, request: RequestPart, attribute: str, times: Times
    ) -> dict[tuple[str, object], int]:
        """Count by value how often devices that have it can serve the request."""
        subrequest, uses = request.alternatives[0], Counter[tuple[str, object]]()
        for name, often in times.items():
            facts = self._facts.find_device(self._node, name)
            if facts is not None:
                for value in self._facts.compared_values(
                    subrequest, attribute, name.driver, facts.device
                ):
                    uses[value] += often
        return {value: often // subrequest.count for value, often in uses.items()}

    def _times(self, subrequest: SubrequestPart, load: NodeLoad) -> Times:
        capacity = tuple(sorted((n, q.nano) for n, q in subrequest.capacity.items()))
        key = (subrequest.selectors, subrequest.tolerations, capacity)
        if key not in self._able:
            self._able[key] = list(self._devices_able(subrequest))
        counted = (key, load is NOTHING)
        if counted not in self._counted:
            self._counted[counted] = {
                name: self._uses_left(subrequest, device, load.consumed.get(name, {}))
                for name, device in self._able[key]
                if name not in load.taken
            }
        return self._counted[counted]

    def _devices_able(
        self, subrequest: SubrequestPart
    ) -> Iterator[tuple[DeviceID, DeviceFacts]]:
        facts, node = self._facts, self._node
        for pool, visible in facts.pools_of(node):
            if not visible.usable:
                continue
            left = facts.counters_left_of(node, pool)
            overdrawn = any(amount < 0 for amount in left.values())
            for short in visible.devices:
                name = DeviceID(pool.driver, pool.pool, DeviceName(short))
                device = facts.find_device(node, name)
                if device is None:
                    continue
                # A device that is shared already draws nothing more.
                draws = device.device.consumes_counters and not (
                    device.shareable and device.shares is not None
                )
                if draws and overdrawn:
                    continue
                if not list(judge_device(facts, node, subrequest, (name, device), "")):
                    yield name, device

    def _uses_left(
        self,
        subrequest: SubrequestPart,
        device: DeviceFacts,
        consumed: dict[str, int],
    ) -> int:
        """Count the uses of a device that nobody has for itself."""
        if not self._facts.features.consumable_capacity:
            return 1
        bounds = [MOST_SHARES]
        for name, amount in _amounts(self._facts, subrequest, device).items():
            left = device.device.capacity[name].value.nano
            left -= (device.shares or {}).get(name, 0)
            if device.shares is not None and amount > left:
                return 0
            if amount:
                bounds.append((left - consumed.get(name, 0)) // amount)
        return min(bounds) if device.shareable else 1


def _is_counted(request: RequestPart) -> bool:
    first = request.alternatives[0]
    return not first.all_devices and not first.admin_access and first.count > 0


def _is_meant(request: RequestPart, names: tuple[str, ...]) -> bool:
    first = request.alternatives[0].name
    own = {request.name, f"{request.name}/{first}" if first else request.name}
    return not names or bool(own & set(names))
