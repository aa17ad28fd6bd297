"""Why a gang is not in, by counting: how many devices were left after each rule.

One pass over the nodes for each kind of request: how many devices its selectors
choose, how many of those are on usable nodes, free, and tolerated. The first rule
that leaves too few is the reason. Always bounded; what counting cannot show is said
as such, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.ids import NodeName
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
from solver.problem.problem import GangPart, MemberPart, Problem, SubrequestPart


class NodeCounts(Struct, frozen=True):
    """Devices of one node that are left for one kind of request."""

    node: NodeName
    unavailable: str
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
        return self._constraint_reason(member)

    def _request_reason(
        self, member: MemberPart, request: SubrequestPart, subject: str
    ) -> Reason | None:
        counts = self.counts(request_kind(request))
        asked = 1 if request.all_devices else request.count
        steps: tuple[tuple[Rule, Callable[[NodeCounts], int]], ...] = (
            (Rule.NO_CANDIDATE, lambda node: node.selected),
            (Rule.NODE, lambda node: 0 if node.unavailable else node.selected),
            (Rule.DISABLED, lambda node: 0 if node.unavailable else node.supported),
            (Rule.TAKEN, lambda node: 0 if node.unavailable else node.free),
            (Rule.TAINTED, lambda node: 0 if node.unavailable else node.eligible),
        )
        if not asked:
            return None
        for rule, count in steps:
            if request.all_devices:
                room = sum(1 for n in counts.nodes if count(n) == n.selected > 0)
            else:
                room = sum(count(n) // asked for n in counts.nodes)
            if room < member.count:
                if rule is Rule.NO_CANDIDATE and counts.faults:
                    return _fault_reason(request, subject, counts)
                return _count_reason(rule, request, subject, counts, (room, member))
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
                why = node.node.unavailable
                counts = NodeCounts(node.name, why, chosen, able, available, usable)
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


def _count_reason(
    rule: Rule,
    request: SubrequestPart,
    subject: str,
    counts: RequestCounts,
    room_of: tuple[int, MemberPart],
) -> Reason:
    room, member = room_of
    nodes = counts.nodes
    usable = [node for node in nodes if not node.unavailable]
    facts = {
        "devices": counts.devices,
        "selected": sum(node.selected for node in nodes),
        "onUsableNodes": sum(node.selected for node in usable),
        "supported": sum(node.supported for node in usable),
        "free": sum(node.free for node in usable),
        "eligible": sum(node.eligible for node in usable),
        "podsWithRoom": room,
        "pods": member.count,
    }
    each = "all matching devices" if request.all_devices else f"{request.count}"
    what = {
        Rule.NO_CANDIDATE: f"{facts['selected']} devices match",
        Rule.NODE: f"{facts['onUsableNodes']} matching devices are on usable nodes",
        Rule.DISABLED: f"{facts['supported']} matching devices are supported here "
        "(feature gates, features of the node)",
        Rule.TAKEN: f"{facts['free']} matching devices are free",
        Rule.TAINTED: f"{facts['eligible']} free devices have no taint in the way",
    }[rule]
    message = (
        f"asks for {each} of {request.device_class} on one node for each of "
        f"{member.count} pods; {what}, which is room for {room} pods"
    )
    if counts.unusable:
        message += f"; {len(counts.unusable)} pools unusable ({counts.unusable[0]})"
    return Reason(rule=rule, subject=subject, message=message, facts=facts)
