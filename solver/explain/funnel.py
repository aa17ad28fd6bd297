"""Why a gang is not in, by counting: how many devices were left after each rule.

One pass over the nodes for each kind of request: how many devices its selectors
choose, how many of those are on nodes that let the pod in, free, and tolerated, and
for how many pods those nodes have enough else. The first rule that leaves too few is
the reason. Always bounded; what counting cannot show is said
as such, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.ids import NodeName
from solver.explain.node_checks import (
    PLENTY,
    NodeCheck,
    check_nodes,
    room_of,
    scarce_reason,
)
from solver.problem.candidates import (
    SelectorFault,
    free,
    selected,
    supported,
    tolerated,
)
from solver.problem.demand import RequestKind, request_kind
from solver.problem.devices import targets, with_room
from solver.problem.gather import Cluster
from solver.problem.node_fit import fit_of
from solver.problem.problem import GangPart, MemberPart, Problem, SubrequestPart


class NodeCounts(Struct, frozen=True):
    """Devices of one node that are left for one kind of request."""

    node: NodeName
    selected: int
    supported: int
    free: int
    eligible: int


class RequestCounts(Struct, frozen=True):
    """What is left for one kind of request, node by node."""

    devices: int
    """All devices of all usable pools."""
    nodes: tuple[NodeCounts, ...]
    """Nodes where anything is selected."""
    faults: tuple[tuple[str, SelectorFault], ...]
    """Selectors that failed, each with its device."""
    unusable: tuple[str, ...]
    """Pools that may not be used, and why."""


class Funnel:
    """Counts for one Problem, each made once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._features = problem.parameters.features
        self._cluster = Cluster(problem.pages, self._features)
        self._known: dict[RequestKind, RequestCounts] = {}
        self._checked: dict[Hashable, dict[NodeName, NodeCheck]] = {}

    def reasons(self, gang: GangPart, *, beaten_by: int) -> tuple[Reason, ...]:
        """Say why a gang is not in; `beaten_by`: gangs of the batch that are."""
        reasons = [
            reason
            for member in gang.members
            for reason in (self._member_reason(member),)
            if reason is not None
        ]
        if reasons:
            return tuple(reasons)
        if beaten_by:
            message = (
                "its pods would fit by count, but not beside the "
                f"{beaten_by} gangs decided with it that come first"
            )
            return (
                Reason(
                    rule=Rule.OUTRANKED, message=message, facts={"gangs": beaten_by}
                ),
            )
        message = "each pod fits on some node; all of them together do not"
        return (Reason(rule=Rule.JOINT, message=message, facts={"pods": gang.pods}),)

    def counts(self, kind: RequestKind) -> RequestCounts:
        """Count what is left for a kind of request."""
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = self._counts(kind)
        return known

    def _member_reason(self, member: MemberPart) -> Reason | None:
        for claim in member.claims:
            for request in claim.requests:
                subject = f"{member.name}/{claim.name}/{request.name}"
                reasons = [
                    self._request_reason(member, alternative, subject)
                    for alternative in request.alternatives
                ]
                if all(reasons):
                    return reasons[0]
        if not any(claim.requests for claim in member.claims):
            return self._nodes_reason(member)
        return self._constraint_reason(member)

    def checks(self, member: MemberPart) -> dict[NodeName, NodeCheck]:
        """Check all nodes for what a member asks of them besides devices."""
        key = (fit_of(member), tuple(sorted(member.resources.items())))
        known = self._checked.get(key)
        if known is None:
            nodes = (pools.node for pools in self._cluster.nodes.values())
            known = self._checked[key] = check_nodes(member, nodes)
        return known

    def _nodes_reason(self, member: MemberPart) -> Reason | None:
        """Say what keeps a member without devices away."""
        checks = self.checks(member)
        left = list(checks.values())
        for rule, what in _NODE_RULES.items():
            before, left = left, [check for check in left if check.passes(rule)]
            if left:
                continue
            message = f"of {len(before)} nodes 0 {what}{_example(before)}"
            facts = {"nodes": len(before), "pods": member.count}
            return Reason(rule=rule, subject=member.name, message=message, facts=facts)
        if sum(map(room_of, left)) < member.count:
            pods = {check.node.name: PLENTY for check in left}
            return scarce_reason(member, pods, checks)
        return None

    def _request_reason(
        self, member: MemberPart, request: SubrequestPart, subject: str
    ) -> Reason | None:
        counts, checks = self.counts(request_kind(request)), self.checks(member)
        asked = 1 if request.all_devices else request.count
        if not asked:
            return None
        for rule, passed, count in _STEPS:
            pods = {
                node.node: _pods(node, count(node), request)
                for node in counts.nodes
                if checks[node.node].passes(*passed)
            }
            room = sum(pods.values())
            if room < member.count:
                if rule is Rule.NO_CANDIDATE and counts.faults:
                    return _fault_reason(request, subject, counts)
                steps = (rule, checks, room)
                return _count_reason(request, subject, counts, steps, member)
        pods = {name: most for name, most in pods.items() if most}
        if (
            sum(min(n, room_of(checks[name])) for name, n in pods.items())
            < member.count
        ):
            return scarce_reason(member, pods, checks)
        return None

    def _constraint_reason(self, member: MemberPart) -> Reason | None:
        constraints = [c for claim in member.claims for c in claim.constraints]
        if not constraints:
            return None
        names = sorted(
            {c.match_attribute or c.distinct_attribute or "" for c in constraints}
        )
        message = (
            f"each request of its {member.count} pods fits by count, but not with the "
            f"constraints on {', '.join(names)}"
        )
        facts = {"pods": member.count}
        return Reason(
            rule=Rule.CONSTRAINT, subject=member.name, message=message, facts=facts
        )

    def _counts(self, kind: RequestKind) -> RequestCounts:
        devices, nodes = 0, []
        faults: dict[str, SelectorFault] = {}
        unusable: dict[str, None] = {}
        for node in self._cluster.nodes.values():
            chosen = able = available = usable = 0
            for seen in node.pools:
                view = seen.view
                if not view.usable:
                    why = view.invalid or "incomplete"
                    unusable[f"{view.driver}/{view.pool}: {why}"] = None
                    continue
                devices += view.reachable.bit_count()
                found = selected(view.part, kind.selectors, self._problem.selectors)
                for fault in found.faults:
                    if view.targeting >> fault.device & 1:
                        name = view.devices[fault.device].name
                        faults[f"{view.driver}/{view.pool}/{name}"] = fault
                left = targets(view, found.bits, kind, self._features)
                chosen += left.bit_count()
                left &= supported(seen, node.node, self._features)
                able += left.bit_count()
                left &= free(seen, self._features, admin=kind.admin)
                left = with_room(seen, left, kind, self._features)
                available += left.bit_count()
                left &= tolerated(seen, kind.tolerations, self._features)
                usable += left.bit_count()
            if chosen:
                counts = NodeCounts(node.name, chosen, able, available, usable)
                nodes.append(counts)
        return RequestCounts(
            devices, tuple(nodes), tuple(faults.items()), tuple(unusable)
        )


def _fault_reason(
    request: SubrequestPart, subject: str, counts: RequestCounts
) -> Reason:
    device, fault = min(counts.faults, key=lambda item: item[0])
    own = fault.selector - request.class_selectors
    if own < 0:
        place = f"class {request.device_class}: selector #{fault.selector}"
    else:
        place = f"selector #{own}"
    message = f"{place} on device {device}: {fault.error}"
    return Reason(
        rule=Rule.SELECTOR_ERROR,
        subject=subject,
        message=message,
        facts={"devices": len(counts.faults)},
    )


_NODE_RULES = {
    Rule.NODE: "are usable",
    Rule.NODE_TAINTED: "have only taints that it tolerates",
    Rule.NODE_SELECTION: "are nodes that it selects",
}
"""What keeps a member from nodes, in kube-scheduler's order."""
_NODES = tuple(_NODE_RULES)
_STEPS: tuple[tuple[Rule, tuple[Rule, ...], Callable[[NodeCounts], int]], ...] = (
    (Rule.NO_CANDIDATE, (), lambda node: node.selected),
    (Rule.NODE, _NODES[:1], lambda node: node.selected),
    (Rule.NODE_TAINTED, _NODES[:2], lambda node: node.selected),
    (Rule.NODE_SELECTION, _NODES, lambda node: node.selected),
    (Rule.DISABLED, _NODES, lambda node: node.supported),
    (Rule.TAKEN, _NODES, lambda node: node.free),
    (Rule.TAINTED, _NODES, lambda node: node.eligible),
)
"""(rule, rules that the nodes counted must pass, devices that are left on a node)."""


def _pods(node: NodeCounts, devices: int, request: SubrequestPart) -> int:
    """Count the pods that so many devices of a node are enough for."""
    if request.all_devices:
        return int(devices == node.selected > 0)
    return devices // request.count


def _example(refusing: Iterable[NodeCheck]) -> str:
    """Name one of the nodes that keep a member away, and why."""
    said = [check for check in refusing if check.why]
    return f" ({said[0].node.name}: {said[0].why})" if said else ""


def _count_reason(
    request: SubrequestPart,
    subject: str,
    counts: RequestCounts,
    steps: tuple[Rule, dict[NodeName, NodeCheck], int],
    member: MemberPart,
) -> Reason:
    rule, checks, room = steps
    on = [
        [node for node in counts.nodes if checks[node.node].passes(*_NODES[:passed])]
        for passed in range(len(_NODES) + 1)
    ]
    facts = {
        "devices": counts.devices,
        "selected": sum(node.selected for node in on[0]),
        "onUsableNodes": sum(node.selected for node in on[1]),
        "onToleratedNodes": sum(node.selected for node in on[2]),
        "onSelectedNodes": sum(node.selected for node in on[3]),
        "supported": sum(node.supported for node in on[3]),
        "free": sum(node.free for node in on[3]),
        "eligible": sum(node.eligible for node in on[3]),
        "podsWithRoom": room,
        "pods": member.count,
    }
    each = "all matching devices" if request.all_devices else f"{request.count}"
    what = {
        Rule.NO_CANDIDATE: f"{facts['selected']} devices match",
        Rule.NODE: f"{facts['onUsableNodes']} matching devices are on usable nodes",
        Rule.NODE_TAINTED: f"{facts['onToleratedNodes']} matching devices are on "
        "nodes with only taints that it tolerates",
        Rule.NODE_SELECTION: f"{facts['onSelectedNodes']} matching devices are on "
        "nodes that it selects",
        Rule.DISABLED: f"{facts['supported']} matching devices are supported here "
        "(feature gates, features of the node)",
        Rule.TAKEN: f"{facts['free']} matching devices are free",
        Rule.TAINTED: f"{facts['eligible']} free devices have no taint in the way",
    }[rule]
    if rule in _NODES:
        what += _example(
            checks[node.node]
            for node in counts.nodes
            if checks[node.node].refusal is rule
        )
    message = (
        f"asks for {each} of {request.device_class} on one node for each of "
        f"{member.count} pods; {what}, which is room for {room} pods"
    )
    if counts.unusable:
        message += f"; {len(counts.unusable)} pools unusable ({counts.unusable[0]})"
    return Reason(rule=rule, subject=subject, message=message, facts=facts)
