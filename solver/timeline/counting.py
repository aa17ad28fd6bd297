"""What each gang's end makes room for, node by node, by counting.

A relaxation: whatever set of gangs lets the gang that waits in also does so by these
counts, so the cheapest set by them costs no more than any that does. Rules between
pods, constraints, counters and all topology but "in one domain of a node label"
are left out; the engines are asked about those. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct, structs

from contracts.gang_rules import GangTopology
from contracts.ids import DeviceID, NodeName
from contracts.pods.pod_rules import PodRules
from solver.devices.gather import Cluster
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.nodes import find_node_kinds
from solver.kinds.shapes import NodeView
from solver.kinds.topology import PREFERRED
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.growth.standing import StandingRules
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart, UsePart
from solver.timeline.holdings import Holding, free_all


class Limit(Struct, frozen=True):
    """Pods of a node need no more than is left of something and is given back."""

    needs: tuple[tuple[int, int], ...]
    """(kind of pod, what each needs)."""
    left: int
    given: tuple[tuple[int, int], ...] = ()
    """(gang, what its end gives back)."""


class NodeRoom(Struct, frozen=True):
    """How many pods of each kind a node may hold, and what limits them."""

    name: NodeName
    most: tuple[tuple[int, int], ...]
    """(kind of pod, most of them); kinds that it cannot hold are left out."""
    limits: tuple[Limit, ...]
    blocked: tuple[tuple[int, int], ...] = ()
    """(kind of pod, gang): none of these pods before that gang has ended."""


class Region(Struct, frozen=True, dict=True):
    """Nodes that may hold the whole gang: all of them, or those of one domain."""

    nodes: tuple[NodeRoom, ...]

    @cached_property
    def gangs(self) -> tuple[int, ...]:
        """Whose end gives room in it."""
        given = {g for n in self.nodes for limit in n.limits for g, _ in limit.given}
        return tuple(sorted(given.union(g for n in self.nodes for _, g in n.blocked)))


class _SharedDevice(Struct, frozen=True):
    """A device that may be shared: what is left of it, and whose end gives how much."""

    left: Mapping[str, int]
    """1e-9 units by capacity, as below."""
    costs: Mapping[str, Mapping[int, int]]
    """What one share takes, by kind of request."""
    given: tuple[tuple[int, Mapping[str, int]], ...]


class Counts(Struct, frozen=True):
    """A gang that waits, and where it may go."""

    pods: tuple[int, ...]
    """That it needs, by kind of pod."""
    regions: tuple[Region, ...]


def count_room(problem: Problem, gang: GangPart, holdings: Sequence[Holding]) -> Counts:
    """Count what a gang of a Problem needs, and what would make room for it.

    As if it were the only one.
    """
    demand = Demand((_strip(gang),))
    keys = tuple(rule.key for rule in gang.topology if _is_about_all(rule, gang))
    return Counts(demand.pods, _list_regions(problem, demand, holdings, keys))


class JointCounts(Struct, frozen=True):
    """Several gangs that are to have places beside each other."""

    pods: tuple[tuple[tuple[int, int], ...], ...]
    """Of each gang: (kind of pod, pods that it needs)."""
    kinds: int
    nodes: tuple[NodeRoom, ...]
    """All nodes that may hold some pod."""


def count_joint_room(
    problem: Problem, gangs: Sequence[GangPart], holdings: Sequence[Holding]
) -> JointCounts:
    """Count what gangs need together, and what the end of others makes room for."""
    demand = Demand(map(_strip, gangs))
    pods = []
    for cells in demand.cells_of:
        counts = Counter[int]()
        for cell in chain.from_iterable(cells):
            counts[cell.kind] += cell.pods
        pods.append(tuple(sorted(counts.items())))
    regions = _list_regions(problem, demand, holdings, ())
    nodes = regions[0].nodes if regions else ()
    return JointCounts(tuple(pods), len(demand.member_kinds), nodes)


def _list_regions(
    problem: Problem, demand: Demand, holdings: Sequence[Holding], keys: tuple[str, ...]
) -> tuple[Region, ...]:
    """List the nodes that may hold some pod, by their domains."""
    emptied = problem.with_pages(free_all(problem.pages, holdings))
    kinds = find_node_kinds(emptied.with_gangs(demand.gangs), demand.query)
    reader = _RoomReader(problem, demand, holdings)
    by_domain: dict[tuple[str, ...], list[NodeRoom]] = {}
    for kind in kinds:
        most = tuple(bound_pods(m, kind.shape) for m in demand.member_kinds)
        for view in kind.nodes if any(most) else ():
            domain = reader.find_domain(view.name, keys)
            if domain is not None:
                by_domain.setdefault(domain, []).append(reader.read(view, most))
    return tuple(
        Region(tuple(sorted(by_domain[domain], key=lambda room: room.name)))
        for domain in sorted(by_domain)
    )


def _strip(gang: GangPart) -> GangPart:
    """Keep of a gang the pods that it must have, with what is counted of them."""
    members = (_strip_member(m) for m in gang.core.members if m.least)
    return structs.replace(
        gang,
        members=tuple(members),
        constraints=(),
        topology=(),
        standing=(),
        standing_rules=StandingRules(),
        refused=(),
    )


def _strip_member(member: MemberPart) -> MemberPart:
    claims = tuple(claim for claim in member.claims if not claim.claim_name)
    return structs.replace(member, claims=claims, pod_rules=PodRules(), labels={})


def _is_about_all(rule: GangTopology, gang: GangPart) -> bool:
    """True if all pods must be in one domain of a node label."""
    return (
        rule.mode != PREFERRED
        and rule.attribute is None
        and rule.group_size is None
        and rule.max_per_domain is None
        and all(rule.is_about(member.name) for member in gang.members)
    )


class _RoomReader:
    """Reads what limits the pods of a node."""

    def __init__(
        self, problem: Problem, demand: Demand, holdings: Sequence[Holding]
    ) -> None:
        self._kinds = demand.member_kinds
        self._query = demand.query
        self._nodes = Cluster(problem.pages, problem.parameters.features).nodes
        self._taken = _list_taken(problem)
        self._holders: dict[DeviceID, list[int]] = {}
        self._amounts: dict[NodeName, list[tuple[int, Mapping[str, int]]]] = {}
        self._sharers: dict[DeviceID, list[tuple[int, Mapping[str, int]]]] = {}
        self._shared = _list_shared(problem)
        for gang, holding in enumerate(holdings):
            for device, consumed in holding.shares.items():
                self._sharers.setdefault(device, []).append((gang, consumed))
            for device in holding.devices:
                self._holders.setdefault(device, []).append(gang)
            for node, amounts in holding.amounts.items():
                self._amounts.setdefault(node, []).append((gang, amounts))

    def find_domain(
        self, name: NodeName, keys: Iterable[str]
    ) -> tuple[str, ...] | None:
        """Find the domain of a node; None: it has none by some key."""
        labels = self._nodes[name].node.labels
        domain = [labels.get(key) for key in keys]
        known = tuple(value for value in domain if value is not None)
        return known if len(known) == len(domain) else None

    def read(self, view: NodeView, most: tuple[int, ...]) -> NodeRoom:
        """Read what limits the pods of a node that holds so many of each kind."""
        here = [kind for kind, pods in enumerate(most) if pods]
        limits = list(self._limit_by_resources(self._nodes[view.name].node, here))
        limits += self._limit_by_devices(view, here)
        limits += self._limit_by_shares(view, here)
        return NodeRoom(
            name=view.name,
            most=tuple((k, min(most[k], _MOST_PODS)) for k in here),
            limits=tuple(limits),
            blocked=tuple(sorted(self._list_blocked(view, here))),
        )

    def _limit_by_resources(self, node: NodePart, here: list[int]) -> list[Limit]:
        limits = []
        for number, resource in enumerate(self._query.resources):
            needs = [(kind, self._kinds[kind].needs[number]) for kind in here]
            needs = [(kind, need) for kind, need in needs if need]
            if not needs or node.free is None or resource not in node.free:
                continue
            given = [
                (gang, amounts[resource])
                for gang, amounts in self._amounts.get(node.name, ())
                if amounts.get(resource)
            ]
            limits.append(Limit(tuple(needs), node.free[resource], tuple(given)))
        return limits

    def _limit_by_devices(self, view: NodeView, here: list[int]) -> list[Limit]:
        """Limit the pods by devices that serve some request, and by no others."""
        asked: dict[frozenset[int], dict[int, int]] = {}
        for kind in here:
            for groups, _, count in _list_counted(self._kinds[kind], view):
                needs = asked.setdefault(groups, {})
                needs[kind] = needs.get(kind, 0) + count
        limits = []
        for groups in asked:
            needs = {}
            for others, more in asked.items():
                for kind, count in more.items() if others <= groups else ():
                    needs[kind] = needs.get(kind, 0) + count
            left, given = 0, dict[int, int]()
            for group in groups:
                for device in view.groups[group].devices:
                    holders = self._holders.get(device, ())
                    left += not holders or device not in self._taken
                    for gang in holders if device in self._taken else ():
                        given[gang] = given.get(gang, 0) + 1
            limits.append(Limit(tuple(needs.items()), left, tuple(given.items())))
        return limits

    def _limit_by_shares(self, view: NodeView, here: list[int]) -> list[Limit]:
        """Limit the pods by what shares may consume of devices, by each capacity."""
        asked: dict[frozenset[int], list[tuple[int, tuple[int, ...], int]]] = {}
        for kind in here:
            uses = _list_counted(self._kinds[kind], view, in_shares=True)
            for groups, kinds, count in uses:
                asked.setdefault(groups, []).append((kind, kinds, count))
        limits = []
        for groups in asked:
            devices = [self._read_shared(view, group) for group in sorted(groups)]
            inside = [u for others, of in asked.items() if others <= groups for u in of]
            for name in sorted({name for device in devices for name in device.costs}):
                needs, given = dict[int, int](), dict[int, int]()
                for kind, kinds, count in inside:
                    costs = [device.costs.get(name, {}) for device in devices]
                    least = min(of.get(each, 0) for of in costs for each in kinds)
                    needs[kind] = needs.get(kind, 0) + count * least
                for device in devices:
                    for gang, amounts in device.given:
                        given[gang] = given.get(gang, 0) + amounts.get(name, 0)
                left = sum(device.left.get(name, 0) for device in devices)
                limits.append(Limit(_list_some(needs), left, _list_some(given)))
        return [limit for limit in limits if limit.needs]

    def _read_shared(self, view: NodeView, group: int) -> _SharedDevice:
        """Read what is left of the one device of a group, and who has shares of it."""
        (name,) = view.groups[group].devices
        traits = view.shape.groups[group].traits
        found = self._nodes[view.name].find(name)
        # In the order of `Traits.left` and its costs.
        capacities = [] if found is None else sorted(found[0].capacity)
        used = self._shared.get(name, {})
        whole = dict(zip(capacities, traits.left or (), strict=False))
        return _SharedDevice(
            left={each: most - used.get(each, 0) for each, most in whole.items()},
            costs={
                each: {kind: of[number] for kind, of in enumerate(traits.costs) if of}
                for number, each in enumerate(capacities)
            },
            given=tuple(self._sharers.get(name, ())),
        )

    def _list_blocked(self, view: NodeView, here: list[int]) -> set[tuple[int, int]]:
        """List the gangs that hold one of all the devices that a pod needs."""
        return {
            (kind, gang)
            for kind in here
            for group in _list_needed_whole(self._kinds[kind], view)
            for device in view.groups[group].devices
            if device in self._taken
            for gang in self._holders.get(device, ())[:1]
        }


_MOST_PODS = 1 << 20


def _list_taken(problem: Problem) -> frozenset[DeviceID]:
    """List the devices that somebody has, for itself or in shares."""
    uses = [
        part.value
        for page in problem.pages
        for part in page.parts()
        if isinstance(part.value, UsePart)
    ]
    return frozenset(
        DeviceID(use.driver, use.pool, device)
        for use in uses
        for device in (*use.taken, *(share.device for share in use.shared))
    )


def _list_shared(problem: Problem) -> dict[DeviceID, dict[str, int]]:
    """List what shares consume of each device: 1e-9 units by capacity."""
    uses = (part.value for page in problem.pages for part in page.parts())
    return {
        DeviceID(use.driver, use.pool, share.device): {
            name: amount.nano for name, amount in share.consumed
        }
        for use in uses
        if isinstance(use, UsePart)
        for share in use.shared
    }


def _list_some(amounts: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((key, amount) for key, amount in amounts.items() if amount)


def _list_counted(
    kind: MemberKind, view: NodeView, *, in_shares: bool = False
) -> list[tuple[frozenset[int], tuple[int, ...], int]]:
    """List the requests that take devices of the node for themselves, or in shares.

    Each with the groups that may serve it, its kinds of request, and how many devices
    it takes at least.
    """
    found = []
    for request in range(kind.requests):
        asks = [kind.asks[i] for i in kind.alternatives(request)]
        if any(ask.all_devices or ask.admin or not ask.count for ask in asks):
            continue
        groups = _find_groups([ask.kind for ask in asks], view)
        shapes = [view.shape.groups[group] for group in groups]
        if all(shape.is_shareable == in_shares for shape in shapes):
            kinds = tuple(ask.kind for ask in asks)
            found.append((groups, kinds, min(ask.count for ask in asks)))
    return found


def _list_needed_whole(kind: MemberKind, view: NodeView) -> frozenset[int]:
    """List the groups of which some request takes every device for itself."""
    needed: set[int] = set()
    for request in range(kind.requests):
        asks = [kind.asks[i] for i in kind.alternatives(request)]
        if len(asks) == 1 and asks[0].all_devices and not asks[0].admin:
            groups = _find_groups([asks[0].kind], view)
            if not any(view.shape.groups[group].is_shareable for group in groups):
                needed |= groups
    return frozenset(needed)


def _find_groups(kinds: Sequence[int], view: NodeView) -> frozenset[int]:
    """Find the groups of devices that may serve one of these kinds of request."""
    return frozenset(
        number
        for number, shape in enumerate(view.shape.groups)
        if any(shape.mask >> kind & 1 for kind in kinds)
    )
