"""Devices and room that are left after each rule; nodes that are alike count once.

What a request asks of devices is counted by kind of request; together with what its
pod asks of nodes that gives the pods that there is room for. Words are made elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping

from msgspec import Struct

from contracts.allocation import MAX_DEVICES
from contracts.ids import NodeName
from solver.cache import Cache
from solver.devices.candidates import (
    SelectorFault,
    find_blocking_taints,
    find_free,
    find_supported,
    indices_of,
    select_devices,
)
from solver.devices.gather import Cluster, NodePools
from solver.devices.likeness import MOST_ALIKE, likeness_of
from solver.explain.amounts import count_further_uses, find_with_enough
from solver.explain.node_checks import (
    NodeCheck,
    describe_nodes,
    format_taint,
    room_of,
)
from solver.kinds.node_cache import NodeCache
from solver.kinds.query import RequestKind
from solver.kinds.traits import find_targets
from solver.problem.gangs import SubrequestPart
from solver.problem.problem import Problem


class NodeCounts(Struct, frozen=True, cache_hash=True):
    """Devices of one node that are left for one kind of request."""

    selected: int
    supported: int
    free: int
    eligible: int
    shares: int = 0
    """Further uses that selected devices allow which several pods may have."""
    shares_left: int = 0
    """Those that eligible devices have left."""
    taint: str = ""
    """One that keeps devices away which would do otherwise; empty: none does."""
    shortage: str = ""
    """What free devices lack: `gpu-0 draws 40Gi of mem, 30Gi are left`;
    empty: nothing."""
    faulty: int = 0
    """Devices on which a selector failed, in pools of drivers that have others."""
    is_plain: bool = True
    """True if no eligible device draws from counters or has several users."""


class RequestCounts(Struct, frozen=True):
    """What is left for one kind of request, node by node."""

    devices: int
    """All devices of all usable pools."""
    nodes: tuple[tuple[NodeName, NodeCounts], ...]
    """Nodes where anything is selected."""
    faults: tuple[tuple[str, SelectorFault], ...]
    """Selectors that failed, each with its device."""
    unusable: tuple[str, ...]
    """Pools and devices that may not be used, and why."""
    contests: tuple[str, ...]
    """Pools that nobody may use because several nodes announce them, in words."""
    is_plain: bool
    """True if counting one such request of a pod is exact."""


class Rooms(Struct, frozen=True):
    """How many pods there is room for after each rule, and the devices behind it."""

    by_rule: tuple[int, ...]
    """By `STEPS`."""
    largest: tuple[tuple[int, NodeName], ...]
    """By `STEPS`: the most devices that one node has left, and which node; 0: none."""
    devices: dict[str, int]
    """Devices left on all nodes, by step."""
    otherwise: dict[NodeName, int]
    """Nodes with room for a pod as far as devices go, and for how many."""
    room: int
    """What is left of that room once nodes must have enough of everything else."""


class _NodeResult(Struct, frozen=True):
    """The counts of one node for one kind of request, and its faults."""

    devices: int
    counts: NodeCounts | None
    """None: nothing is selected there."""
    faults: dict[str, SelectorFault]
    unusable: tuple[str, ...]


_COUNTS: NodeCache[_NodeResult] = NodeCache()


def count_devices(
    problem: Problem, cluster: Cluster, kind: RequestKind
) -> RequestCounts:
    """Count what is left for a kind of request, rule by rule, node by node."""
    results, devices = _COUNTS.of(kind), 0
    nodes: list[tuple[NodeName, NodeCounts]] = []
    alike: Cache[Hashable, _NodeResult] = Cache(MOST_ALIKE)
    faults: dict[str, SelectorFault] = {}
    unusable: dict[str, None] = {}
    for name, node in cluster.nodes.items():
        entry = results.get(name)
        if entry is None or entry[0] is not node:
            result = _count_alike(problem, node, kind, alike)
            entry = results[name] = (node, result)
        result = entry[1]
        devices += result.devices
        if result.faults:
            faults.update(result.faults)
        if result.unusable:
            unusable.update(dict.fromkeys(result.unusable))
        if result.counts is not None:
            nodes.append((name, result.counts))
    return RequestCounts(
        devices,
        tuple(nodes),
        tuple(faults.items()),
        tuple(unusable),
        cluster.contests,
        is_plain=all(counts.is_plain for _, counts in nodes),
    )


def _count_alike(
    problem: Problem,
    node: NodePools,
    kind: RequestKind,
    alike: Cache[Hashable, _NodeResult],
) -> _NodeResult:
    """Count what is left on a node, or was on one like it; faults name devices."""
    key = likeness_of(node, kind.selectors, by_amounts=bool(kind.capacity))
    if key is None:
        return _count_on_node(problem, node, kind)
    result = alike.get(key)
    if result is None:
        result = _count_on_node(problem, node, kind)
        if not (result.faults or result.unusable):
            alike.keep(key, result)
    return result


def _count_on_node(problem: Problem, node: NodePools, kind: RequestKind) -> _NodeResult:
    """Count what is left on one node."""
    features = problem.parameters.features
    devices = chosen = able = available = usable = shares = left = 0
    taint = shortage = ""
    is_plain = True
    drivers: set[str] = set()
    faulty: Counter[str] = Counter()
    faults: dict[str, SelectorFault] = {}
    unusable: list[str] = []
    for view in node.pools:
        if not view.usable:
            why = view.invalid or "incomplete"
            unusable.append(f"{view.driver}/{view.pool}: {why}")
            continue
        devices += view.reachable.bit_count()
        if features.partitionable_devices:
            unusable += [
                f"{view.driver}/{view.pool}/{view.devices[index].name}: "
                "draws a negative amount of a counter"
                for index in indices_of(view.reachable & view.facts.marks.negative)
            ]
        selection = select_devices(view.part, kind.selectors, problem.selectors)
        for fault in selection.faults:
            if view.targeting >> fault.device & 1:
                name = view.devices[fault.device].name
                faults[f"{view.driver}/{view.pool}/{name}"] = fault
                faulty[view.driver] += 1
        remaining = find_targets(view, selection.bits, kind, features)
        chosen += remaining.bit_count()
        shares += count_further_uses(view, remaining, kind, features)
        if remaining:
            drivers.add(view.driver)
        remaining &= find_supported(view, node.node, features)
        able += remaining.bit_count()
        remaining &= find_free(view, features, admin=kind.admin)
        remaining, lacking = find_with_enough(view, remaining, kind, features)
        shortage = shortage or lacking
        available += remaining.bit_count()
        for index, blocking in find_blocking_taints(view, kind.tolerations, features):
            if remaining >> index & 1:
                remaining &= ~(1 << index)
                taint = taint or format_taint(blocking)
        usable += remaining.bit_count()
        marks = view.facts.marks
        is_plain = is_plain and not remaining & (marks.counting | marks.shareable)
        left += count_further_uses(view, remaining, kind, features, view.use)
    counts = None
    if chosen:
        # A selector that fails where nothing is wanted has nothing to do with it.
        beside = sum(faulty[driver] for driver in drivers)
        amounts = (chosen, able, available, usable)
        counts = NodeCounts(*amounts, shares, left, taint, shortage, beside, is_plain)
    return _NodeResult(devices, counts, faults, tuple(unusable))


STEPS = (
    ("selected", 0),
    ("onSelectedNodes", 1),
    ("onCapableNodes", 2),
    ("onUsableNodes", 3),
    ("onToleratedNodes", 4),
    ("besideOtherPods", 5),
    ("supported", 5),
    ("free", 5),
    ("eligible", 5),
)
"""(step, rules that a node must pass to be counted), in order."""
ON_NODES = STEPS[: [name for name, _ in STEPS].index("supported")]
"""The steps that count what matches, on fewer and fewer nodes."""
FREE = [name for name, _ in STEPS].index("free")
"""From this step on what others hold does not count."""


def count_rooms(
    counts: RequestCounts,
    checks: Mapping[NodeName, NodeCheck],
    request: SubrequestPart,
) -> Rooms:
    """Count the pods that there is room for, rule by rule; linear in the nodes."""
    names_by_count: dict[tuple[NodeCounts, int, int], list[NodeName]] = {}
    for name, node in counts.nodes:
        check = checks[name]
        key = (node, check.passed, room_of(check))
        names_by_count.setdefault(key, []).append(name)
    rooms, devices = [0] * len(STEPS), [0] * len(STEPS)
    largest = [(0, NodeName(""))] * len(STEPS)
    otherwise: dict[NodeName, int] = {}
    room = 0
    for (node, passed, most), found in names_by_count.items():
        chosen = node.selected
        pods = 0
        amounts = (*(chosen,) * len(ON_NODES), node.supported, node.free)
        for step, amount in enumerate((*amounts, node.eligible)):
            if passed < STEPS[step][1]:
                break
            devices[step] += amount * len(found)
            if amount > largest[step][0]:
                largest[step] = (amount, min(found))
            shares = node.shares if step < FREE else node.shares_left
            pods = _count_pods(amount, node.selected, shares, request)
            rooms[step] += pods * len(found)
        else:
            if pods:
                otherwise.update(dict.fromkeys(found, pods))
                room += min(pods, most) * len(found)
    names = (name for name, _ in STEPS)
    totals = dict(zip(names, devices, strict=True))
    return Rooms(tuple(rooms), tuple(largest), totals, otherwise, room)


def _count_pods(
    devices: int, selected: int, shares: int, request: SubrequestPart
) -> int:
    """Count the pods that so many devices of a node are enough for, at most."""
    if request.all_devices:
        is_whole = devices == selected > 0 and selected <= MAX_DEVICES
        return int(is_whole) * (1 + shares)
    return (devices + shares) // request.count if devices else 0


def is_selector_to_blame(
    counts: RequestCounts, request: SubrequestPart, pods: int
) -> bool:
    """True if there may be enough devices where a selector fails on some.

    Where it selects none at all, what it would have selected is unknown.
    """
    if not counts.nodes:
        return bool(counts.faults)
    if request.all_devices:
        return any(node.faulty for _, node in counts.nodes)
    room = sum((n.selected + n.faulty) // request.count for _, n in counts.nodes)
    return room >= pods and any(node.faulty for _, node in counts.nodes)


def describe_taints(counts: RequestCounts) -> str:
    """Name the taints that keep devices away which would do otherwise.

    `a=b:NoSchedule on 3 of 4 nodes, such as node-1`; empty: none does.
    """
    return _describe_each(counts, lambda node: node.taint)


def describe_shortages(counts: RequestCounts) -> str:
    """Describe what free devices lack: counters, or room for a share."""
    return _describe_each(counts, lambda node: node.shortage)


def _describe_each(counts: RequestCounts, why_of: Callable[[NodeCounts], str]) -> str:
    names_by_why: dict[str, list[NodeName]] = {}
    for name, node in counts.nodes:
        if why := why_of(node):
            names_by_why.setdefault(why, []).append(name)
    return describe_nodes(names_by_why, len(counts.nodes))
