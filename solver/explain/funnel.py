"""Why a gang is not in: by counting, then by trying one pod, then the whole gang.

Counting comes first: one pass over the nodes for each kind of request says how many
devices each rule leaves (`requests.py`). Where that leaves enough, one pod of a member
is looked at by itself (`pods.py`), then the rules of the gang over its pods
(`topology.py`). Always bounded: what was not looked at is not said.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from heapq import nsmallest

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.codec import encode
from contracts.counts import counted
from contracts.ids import NodeName
from solver.cache import Cache
from solver.devices.gather import Cluster
from solver.explain.affinity import explain_domains
from solver.explain.counts import (
    RequestCounts,
    Rooms,
    count_devices,
    count_rooms,
    is_selector_to_blame,
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
    explain_scarcity,
    find_scarcity,
    node_demand_of,
    room_of,
)
from solver.explain.pods import Fits, add_room, explain_joint, explain_pod
from solver.explain.requests import (
    TooFewDevices,
    explain_fault,
    explain_too_few,
    find_rule,
)
from solver.explain.topology import (
    explain_gang_rules,
    explain_missing_label,
    explain_together,
)
from solver.explain.values import describe_nearest
from solver.kinds.query import RequestKind, request_kind_of
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)
from solver.problem.problem import Problem

MOST_COUNTED = 4096
"""Results of each sort that are remembered of one Problem."""
NO_NODES = "no nodes are known: no Node and no ResourceSlice names one"
_LET_IN = {
    Rule.NODE_SELECTION: "matches its node selector",
    Rule.NODE_FEATURES: "has a kubelet that declares the features it needs",
    Rule.NODE: "is usable",
    Rule.NODE_TAINTED: "has only taints that it tolerates",
    BESIDE: "lets it run beside other pods",
}


class Funnel:
    """Explains gangs of one Problem; each count is made once."""

    def __init__(
        self, problem: Problem, placed: Sequence[GangPart], fits: Fits
    ) -> None:
        """`placed`: the gangs of it that are in; `fits`: see `pods.py`."""
        self._problem = problem
        self._placed = placed
        self._fits = fits
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
        if not self._cluster.nodes:
            return (Reason(rule=Rule.NODE, message=NO_NODES),)
        nodes = len(self._cluster.nodes) if gang.topology else 0
        reason = explain_missing_label(gang, self._is_labelled, nodes)
        if reason is not None:
            return (reason,)
        reasons = [self._member_reason(member) for member in gang.members]
        if not any(reasons):
            # Members that ask for the same need room for all of their pods.
            reasons = [self._member_reason(each) for each in _unite(gang.members)]
        if not any(reasons):
            reasons = [self._pod_reason(gang, member) for member in gang.members]
        if any(reasons):
            return tuple(filter(None, reasons))
        reason = explain_gang_rules(self._problem, gang)
        if reason is None and self._may_fit_alone(gang):
            reason = self._outranked_reason(gang)
        if reason is None:
            reason = explain_domains(gang)
        if reason is None and (together := explain_together(gang)) is not None:
            reason = add_room(together, gang, self._fits)
        return (reason or explain_joint(gang, self._fits),)

    def counts(self, kind: RequestKind) -> RequestCounts:
        """Count what is left for a kind of request."""
        counts = self._counts.get(kind)
        if counts is None:
            counted = count_devices(self._problem, self._cluster, kind)
            counts = self._counts.keep(kind, counted)
        return counts

    def _is_labelled(self, label: str) -> bool:
        """True if any node has a label."""
        found = self._labelled.get(label)
        if found is None:
            nodes = self._cluster.nodes.values()
            found = any(label in node.node.labels for node in nodes)
            self._labelled.keep(label, found)
        return found

    def _outranked_reason(self, gang: GangPart) -> Reason | None:
        """Return who comes first, the same for all of one priority and classes.

        A gang that is in and asks for more is not ahead of itself.
        """
        wanted = _classes_of(gang)
        key = (gang.priority, wanted, gang.key if gang.is_in else None)
        if key not in self._outranked:
            ahead = [
                other
                for other in self._placed
                if other.priority >= gang.priority and other.key != gang.key
            ]
            reason = _explain_outranked(gang.priority, wanted, ahead)
            return self._outranked.keep(key, reason)
        return self._outranked[key]

    # --- by counting ------------------------------------------------------------------

    def _member_reason(self, member: MemberPart) -> Reason | None:
        for claim in member.claims:
            for request in claim.requests:
                subject = f"{member.name}/{claim.name}/{request.name}"
                reason = self._request_reason(member, request, subject)
                if reason is not None:
                    return reason
        if not any(claim.requests for claim in member.claims):
            return self._nodes_reason(member)
        return None

    def _pod_reason(self, gang: GangPart, member: MemberPart) -> Reason | None:
        """Return why no node takes even one pod; None: some does, or it is unknown."""
        if self._is_counted_exactly(member):
            return None

        def describe(claim: ClaimPart) -> str:
            checks = self._check_nodes(member)
            return describe_nearest(self._problem, self._cluster, checks, claim)

        return explain_pod(gang, member, self._fits, describe)

    def _may_fit_alone(self, gang: GangPart) -> bool:
        """True if a gang, whose pods have room by count, may fit as the only one."""
        is_ruled = gang.topology or gang.constraints or gang.separated
        is_single = len(gang.members) == 1 and not is_ruled
        if is_single and self._is_counted_exactly(gang.members[0]):
            return True
        return self._fits(gang, False) is not False

    def _is_counted_exactly(self, member: MemberPart) -> bool:
        """True if its pods have a place wherever counting finds room for them.

        So it is of one request for devices that take nothing from each other.
        """
        asked = [
            alternative
            for claim in member.claims
            for request in claim.requests
            for alternative in request.alternatives
        ]
        has_constraints = any(claim.constraints for claim in member.claims)
        has_rules = has_constraints or member.resolved.takes or member.resolved.roles
        if len(asked) > 1 or has_rules:
            return False
        return all(self.counts(request_kind_of(each)).is_plain for each in asked)

    def _check_nodes(self, member: MemberPart) -> dict[NodeName, NodeCheck]:
        """Check all nodes for what a member asks of them besides devices."""
        key = node_demand_of(member)
        node_checks = self._node_checks.get(key)
        if node_checks is None:
            checks = check_nodes(member, self._cluster)
            node_checks = self._node_checks.keep(key, checks)
        return node_checks

    def _nodes_reason(self, member: MemberPart) -> Reason | None:
        """Return what keeps a member without devices away."""
        checks = self._check_nodes(member)
        for passed, rule in enumerate(NODE_RULES):
            reached = [check for check in checks.values() if check.passed >= passed]
            if any(check.passed > passed for check in reached):
                continue
            message = (
                f"none of {counted(len(reached), 'node')} {_LET_IN[rule]}"
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
            return explain_scarcity(member, self._find_scarcity(member, pods, None))
        return None

    def _count_rooms(self, member: MemberPart, request: SubrequestPart) -> Rooms:
        kind = request_kind_of(request)
        key = (kind, request.count, node_demand_of(member))
        room_counts = self._room_counts.get(key)
        if room_counts is None:
            rooms = count_rooms(self.counts(kind), self._check_nodes(member), request)
            room_counts = self._room_counts.keep(key, rooms)
        return room_counts

    def _find_scarcity(
        self,
        member: MemberPart,
        pods: dict[NodeName, int],
        request: SubrequestPart | None,
    ) -> Scarcity:
        kind = None if request is None else (request_kind_of(request), request.count)
        key = (kind, node_demand_of(member))
        scarcity = self._scarcities.get(key)
        if scarcity is None:
            scarce = find_scarcity(member, pods, self._check_nodes(member))
            scarcity = self._scarcities.keep(key, scarce)
        return scarcity

    def _request_reason(
        self, member: MemberPart, request: RequestPart, subject: str
    ) -> Reason | None:
        """Return what keeps a request from being served; None: counting finds nothing.

        Pods may have different alternatives, so their room adds up.
        """
        asked = [a for a in request.alternatives if a.all_devices or a.count]
        if len(asked) < len(request.alternatives):
            return None
        rooms = [self._count_rooms(member, alternative) for alternative in asked]
        total = sum(room.room for room in rooms)
        if total >= member.count:
            return None
        reason = self._explain_alternative(member, asked[0], rooms[0], subject)
        others = [
            f"{alternative.name} has room for {room.room}"
            for alternative, room in zip(asked[1:], rooms[1:], strict=True)
        ]
        if not others:
            return reason
        if total > max(room.room for room in rooms):
            others.append(f"all together for {total} of {counted(member.count, 'pod')}")
        message = f"{asked[0].name}: {reason.message}; {', '.join(others)}"
        return structs.replace(reason, message=message)

    def _explain_alternative(
        self, member: MemberPart, request: SubrequestPart, rooms: Rooms, subject: str
    ) -> Reason:
        counts = self.counts(request_kind_of(request))
        rule = find_rule(rooms, member.count)
        if rule is None:
            scarcity = self._find_scarcity(member, rooms.otherwise, request)
            return explain_scarcity(member, scarcity)
        if rule is Rule.NO_CANDIDATE and is_selector_to_blame(
            counts, request, member.count
        ):
            return explain_fault(request, subject, counts)
        checks = self._check_nodes(member)
        selected = [checks[name] for name, _ in counts.nodes]
        too_few = TooFewDevices(request, counts, rooms, rule)
        reason = explain_too_few(too_few, subject, member, selected)
        if rule not in NODE_RULES:
            return reason
        passed = NODE_RULES.index(rule)
        refusing = [check for check in selected if check.passed == passed]
        return _name_rule(reason, refusing)


def _explain_outranked(
    priority: int, wanted: frozenset[str], ahead: Sequence[GangPart]
) -> Reason | None:
    """Name those that come first, higher priorities before others; None: none does.

    Who asks for the same devices stands before who does not.
    """
    if not ahead:
        return None
    first = nsmallest(
        MOST_NAMED,
        ahead,
        key=lambda other: (wanted.isdisjoint(_classes_of(other)), -other.priority),
    )
    words = ", ".join(map(_name_with_priority, first))
    hidden = len(ahead) - MOST_NAMED
    more = f" and {hidden} more" if hidden > 0 else ""
    gangs = "gang" if len(ahead) == 1 else counted(len(ahead), "gang")
    message = (
        f"its pods would fit by count, but not beside the {gangs} of priority "
        f"{priority} or higher decided with it: {words}{more}"
    )
    facts = {"gangs": len(ahead), "priority": priority}
    return Reason(rule=Rule.OUTRANKED, message=message, facts=facts)


def _name_with_priority(gang: GangPart) -> str:
    by_age = f", {gang.aged} of it by age" if gang.aged else ""
    return f"{gang.namespace}/{gang.name} (priority {gang.priority}{by_age})"


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


def _unite(members: Iterable[MemberPart]) -> list[MemberPart]:
    """Make one member of several that ask for the same, in the first one's name."""
    alike: dict[Hashable, list[MemberPart]] = {}
    for member in members:
        key = (encode(member.claims), node_demand_of(member))
        alike.setdefault(key, []).append(member)
    return [
        structs.replace(each[0], count=sum(member.count for member in each))
        for each in alike.values()
        if len(each) > 1
    ]
