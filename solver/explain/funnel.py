"""Why a gang is not in, by counting: how many devices were left after each rule.

One pass over the nodes for each kind of request: how many devices its selectors
choose, how many of those are on nodes that let the pod in, free, and tolerated, and
for how many pods those nodes have enough else. The first rule that leaves too few is
the reason. Always bounded; what counting cannot show is said as such, never guessed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import nsmallest

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.counts import counted
from contracts.ids import NodeName
from solver.cache import Cache
from solver.devices.gather import Cluster
from solver.explain.counts import (
    RequestCounts,
    Rooms,
    count_devices,
    count_rooms,
    describe_taints,
    is_selector_to_blame,
)
from solver.explain.gang_rules import (
    explain_gang_rules,
    explain_missing_label,
    explain_together,
)
from solver.explain.node_checks import (
    BESIDE,
    MOST_NAMED,
    NODE_RULES,
    PLENTY,
    NodeCheck,
    Scarcity,
    check_nodes,
    describe_refusals,
    explain_domains,
    explain_scarcity,
    find_scarcity,
    node_demand_of,
    room_of,
)
from solver.kinds.query import RequestKind, request_kind_of
from solver.problem.gangs import GangPart, MemberPart, SubrequestPart
from solver.problem.problem import Problem

MOST_COUNTED = 4096
"""Results of each sort that are remembered of one Problem."""


class Funnel:
    """Counts for one Problem, each made once; `placed`: the gangs of it that are in."""

    def __init__(self, problem: Problem, placed: Sequence[GangPart]) -> None:
        self._problem = problem
        self._placed = placed
        self._cluster = Cluster(problem.pages, problem.parameters.features)
        self._counts: Cache[RequestKind, RequestCounts] = Cache(MOST_COUNTED)
        self._node_checks: Cache[Hashable, dict[NodeName, NodeCheck]] = Cache(
            MOST_COUNTED
        )
        self._room_counts: Cache[Hashable, Rooms] = Cache(MOST_COUNTED)
        self._scarcities: Cache[Hashable, Scarcity] = Cache(MOST_COUNTED)
        self._labelled: Cache[str, bool] = Cache(MOST_COUNTED)
        self._outranked: Cache[Hashable, Reason | None] = Cache(MOST_COUNTED)

    def explain(self, gang: GangPart) -> tuple[Reason, ...]:
        """Return why a gang is not in."""
        nodes = len(self._cluster.nodes) if gang.topology else 0
        reason = explain_missing_label(gang, self._is_labelled, nodes)
        if reason is not None:
            return (reason,)
        reasons = [
            reason
            for member in gang.members
            for reason in (self._member_reason(member),)
            if reason is not None
        ]
        if reasons:
            return tuple(reasons)
        reason = explain_gang_rules(self._problem, gang)
        if reason is not None:
            return (reason,)
        if (reason := self._outranked_reason(gang)) is not None:
            return (reason,)
        reason = explain_domains(gang) or explain_together(gang)
        if reason is not None:
            return (reason,)
        message = "each pod fits on some node; all of them together do not"
        return (Reason(rule=Rule.JOINT, message=message, facts={"pods": gang.pods}),)

    def counts(self, kind: RequestKind) -> RequestCounts:
        """Count what is left for a kind of request."""
        counts = self._counts.get(kind)
        if counts is None:
            counted = count_devices(self._problem, self._cluster, kind)
            counts = self._counts.keep(kind, counted)
        return counts

    def _is_labelled(self, label: str) -> bool:
        """Whether any node has a label."""
        found = self._labelled.get(label)
        if found is None:
            nodes = self._cluster.nodes.values()
            found = any(label in node.node.labels for node in nodes)
            self._labelled.keep(label, found)
        return found

    def _outranked_reason(self, gang: GangPart) -> Reason | None:
        """Return who comes first, the same for all of one priority and classes."""
        wanted = _classes_of(gang)
        key = (gang.priority, wanted)
        if key not in self._outranked:
            ahead = [each for each in self._placed if each.priority >= gang.priority]
            reason = _explain_outranked(gang.priority, wanted, ahead)
            return self._outranked.keep(key, reason)
        return self._outranked[key]

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

    def _checks(self, member: MemberPart) -> dict[NodeName, NodeCheck]:
        """Check all nodes for what a member asks of them besides devices."""
        key = node_demand_of(member)
        node_checks = self._node_checks.get(key)
        if node_checks is None:
            checks = check_nodes(member, self._cluster)
            node_checks = self._node_checks.keep(key, checks)
        return node_checks

    def _nodes_reason(self, member: MemberPart) -> Reason | None:
        """Return what keeps a member without devices away."""
        checks = self._checks(member)
        for passed, rule in enumerate(NODE_RULES):
            reached = [check for check in checks.values() if check.passed >= passed]
            if any(check.passed > passed for check in reached):
                continue
            message = (
                f"of {counted(len(reached), 'node')} 0 {_LET_IN[rule]}"
                f"{describe_refusals(reached, passed)}"
            )
            facts = {"nodes": len(reached), "pods": member.count}
            reason = Reason(
                rule=rule, subject=member.name, message=message, facts=facts
            )
            return _name_rule(reason, reached)
        willing = [
            check for check in checks.values() if check.passed == len(NODE_RULES)
        ]
        if sum(map(room_of, willing)) < member.count:
            pods = {check.node.name: PLENTY for check in willing}
            return explain_scarcity(member, self._scarcity(member, pods, None))
        return None

    def _rooms(self, member: MemberPart, request: SubrequestPart) -> Rooms:
        kind = request_kind_of(request)
        key = (kind, request.count, node_demand_of(member))
        room_counts = self._room_counts.get(key)
        if room_counts is None:
            rooms = count_rooms(self.counts(kind), self._checks(member), request)
            room_counts = self._room_counts.keep(key, rooms)
        return room_counts

    def _scarcity(
        self,
        member: MemberPart,
        pods: dict[NodeName, int],
        request: SubrequestPart | None,
    ) -> Scarcity:
        kind = None if request is None else (request_kind_of(request), request.count)
        key = (kind, node_demand_of(member))
        scarcity = self._scarcities.get(key)
        if scarcity is None:
            scarce = find_scarcity(member, pods, self._checks(member))
            scarcity = self._scarcities.keep(key, scarce)
        return scarcity

    def _request_reason(
        self, member: MemberPart, request: SubrequestPart, subject: str
    ) -> Reason | None:
        if not request.all_devices and not request.count:
            return None
        rooms = self._rooms(member, request)
        for rule, room in zip(_RULES, rooms.by_rule, strict=True):
            if room >= member.count:
                continue
            counts = self.counts(request_kind_of(request))
            if rule is Rule.NO_CANDIDATE and is_selector_to_blame(
                counts, request, member.count
            ):
                return _explain_fault(request, subject, counts)
            where, refusing = "", list[NodeCheck]()
            if rule is Rule.TAINTED:
                where = describe_taints(counts)
            elif rule in NODE_RULES:
                checks, passed = self._checks(member), NODE_RULES.index(rule)
                selected_checks = [checks[name] for name, _ in counts.nodes]
                refusing = [c for c in selected_checks if c.passed == passed]
                where = describe_refusals(selected_checks, passed)
            failure = (rule, room, where)
            reason = _explain_count(failure, request, subject, (counts, rooms), member)
            return _name_rule(reason, refusing)
        if rooms.room < member.count:
            scarcity = self._scarcity(member, rooms.otherwise, request)
            return explain_scarcity(member, scarcity)
        return None

    def _constraint_reason(self, member: MemberPart) -> Reason | None:
        constraints = [c for claim in member.claims for c in claim.constraints]
        if not constraints:
            return None
        names = sorted(
            {c.match_attribute or c.distinct_attribute or "" for c in constraints}
        )
        message = (
            f"each request of its {counted(member.count, 'pod')} fits by count, but "
            f"not with the constraints on {', '.join(names)}"
        )
        facts = {"pods": member.count}
        return Reason(
            rule=Rule.CONSTRAINT, subject=member.name, message=message, facts=facts
        )


def _explain_outranked(
    priority: int, wanted: frozenset[str], ahead: Sequence[GangPart]
) -> Reason | None:
    """Name those that come first, of higher priority before others; None: nobody does.

    Who asks for the same devices stands before who does not.
    """
    if not ahead:
        return None
    first = nsmallest(
        MOST_NAMED,
        ahead,
        key=lambda other: (wanted.isdisjoint(_classes_of(other)), -other.priority),
    )
    words = ", ".join(f"{o.namespace}/{o.name} (priority {o.priority})" for o in first)
    hidden = len(ahead) - MOST_NAMED
    more = f" and {hidden} more" if hidden > 0 else ""
    message = (
        f"its pods would fit by count, but not beside the "
        f"{counted(len(ahead), 'gang')} decided with it that have its "
        f"priority {priority} or more: {words}{more}"
    )
    facts = {"gangs": len(ahead), "priority": priority}
    return Reason(rule=Rule.OUTRANKED, message=message, facts=facts)


def _classes_of(gang: GangPart) -> frozenset[str]:
    """Return the device classes that a gang asks for."""
    return frozenset(
        alternative.device_class
        for member in gang.members
        for claim in member.claims
        for request in claim.requests
        for alternative in request.alternatives
    )


def _name_rule(reason: Reason, refusing: Sequence[NodeCheck]) -> Reason:
    """Name the very rule between pods that keeps a member away."""
    if reason.rule is not BESIDE or not refusing:
        return reason
    return structs.replace(reason, rule=refusing[0].beside)


def _explain_fault(
    request: SubrequestPart, subject: str, counts: RequestCounts
) -> Reason:
    device, fault = min(counts.faults, key=lambda pair: pair[0])
    message = (
        f"{request.selector_name(fault.selector)} on device {device}: {fault.error}"
    )
    return Reason(
        rule=Rule.SELECTOR_ERROR,
        subject=subject,
        message=message,
        facts={"devices": len(counts.faults)},
    )


_LET_IN = {
    Rule.NODE: "are usable",
    Rule.NODE_TAINTED: "have only taints that it tolerates",
    Rule.NODE_SELECTION: "are nodes that it selects",
    BESIDE: "are nodes where it may be beside other pods",
}
_RULES = (
    Rule.NO_CANDIDATE,
    *NODE_RULES,
    Rule.DISABLED,
    Rule.TAKEN,
    Rule.TAINTED,
)
"""The rule of each step of counting."""
_LEFT = {
    Rule.NO_CANDIDATE: "devices match",
    Rule.NODE: "matching devices are on usable nodes",
    Rule.NODE_TAINTED: "matching devices are on nodes with only taints that it "
    "tolerates",
    Rule.NODE_SELECTION: "matching devices are on nodes that it selects",
    BESIDE: "matching devices are where it may be beside other pods",
    Rule.DISABLED: "matching devices are supported here (feature gates, features of "
    "the node)",
    Rule.TAKEN: "matching devices are free",
    Rule.TAINTED: "free devices have no taint in the way",
}


def _explain_count(
    failure: tuple[Rule, int, str],
    request: SubrequestPart,
    subject: str,
    counts_and_rooms: tuple[RequestCounts, Rooms],
    member: MemberPart,
) -> Reason:
    """Return which rule leaves too little; `failure`: it, the room left, an example."""
    (rule, room, where), (counts, rooms) = failure, counts_and_rooms
    devices_left = tuple(rooms.devices.values())[_RULES.index(rule)]
    each = "all matching devices" if request.all_devices else f"{request.count}"
    pods = counted(member.count, "pod")
    message = (
        f"asks for {each} of {request.device_class} on one node for each of "
        f"{pods}; {devices_left} {_LEFT[rule]}{where}, which is room for "
        f"{room} of {pods}"
    )
    if rule is Rule.NO_CANDIDATE and counts.faults:
        fault = _explain_fault(request, subject, counts)
        message += f"; besides, {fault.message}"
    if counts.unusable:
        pools = counted(len(counts.unusable), "pool")
        message += f"; {pools} unusable ({counts.unusable[0]})"
    facts = {
        "devices": counts.devices,
        **rooms.devices,
        "podsWithRoom": room,
        "pods": member.count,
    }
    return Reason(rule=rule, subject=subject, message=message, facts=facts)
