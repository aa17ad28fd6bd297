"""Whether a decision is right: every rule again, in plain Python, on its own.

Looks at the Problem and the Decision only; knows no engine, no kinds, no counts.
A violation names the rule and what breaks it. Here: gangs, nodes, claims, requests and
the value; what nodes ask of pods is in `nodes.py`, what pods ask of each other in
`between.py`, gangs of their pods in `gang_rules.py`, single devices in `devices.py`,
what pods share in `shared.py`, what namespaces hold in `quotas.py`, slack value in
`slack.py`, what is written down in `results.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator

from msgspec import Struct

from contracts.claim import DeviceConstraint
from contracts.ids import DeviceID, NodeName
from contracts.messages import MemberAllocated
from solver.decision import Decision
from solver.judge.between import pods_agree
from solver.judge.devices import judge_device, judge_device_alone
from solver.judge.facts import DeviceFacts, Facts, Violations
from solver.judge.gang_rules import (
    GangPod,
    count_extra,
    gang_is_whole,
    judge_gang,
    preference_cost,
)
from solver.judge.nodes import judge_node, nodes_suffice
from solver.judge.quotas import quotas_are_kept
from solver.judge.results import results_are_written
from solver.judge.shared import Use, judge_sharing
from solver.judge.slack import value_lost
from solver.problem.problem import (
    ClaimPart,
    GangPart,
    MemberPart,
    Problem,
    RequestPart,
    SubrequestPart,
)
from solver.tiers import Tier

LIMIT = 32


class ServedRequest(Struct, frozen=True):
    """The devices that one request of a pod got."""

    subrequest: SubrequestPart
    rank: int
    names: frozenset[str]
    """By which constraints may mean it."""
    devices: tuple[DeviceID, ...]
    facts: tuple[DeviceFacts | None, ...]
    """What there is to know of each device; None: it cannot be allocated there."""


def judge(problem: Problem, decision: Decision) -> tuple[str, ...]:
    """List what is wrong with a decision; empty: it is right."""
    facts, uses, ranks, cost = Facts(problem), list[Use](), 0, 0
    violations = list(_gangs_answered(problem, decision))
    # First gang by gang and pod by pod ...
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if not decided.members:
            continue
        violations.extend(gang_is_whole(gang, decided.members))
        placed = []
        for member in decided.members:
            pod = _Pod(facts, gang, member)
            violations.extend(pod.violations())
            uses.extend(pod.uses)
            ranks += pod.rank
            placed.extend(pod.list_placed())
        violations.extend(judge_gang(facts, gang, placed))
        cost += preference_cost(facts, gang, placed)
    # ... then what pods have together, and what all of it is worth.
    violations.extend(_shares_differ(decision))
    violations.extend(_value_is_true(problem, decision, ranks))
    violations.extend(_preferences_are_counted(problem, decision, cost))
    violations.extend(_later_values_are_true(facts, decision, uses))
    violations.extend(judge_sharing(facts, uses))
    violations.extend(quotas_are_kept(problem, decision))
    violations.extend(nodes_suffice(facts, problem, decision))
    violations.extend(pods_agree(facts, problem, decision))
    return tuple(violations)


def _gangs_answered(problem: Problem, decision: Decision) -> Violations:
    """Each gang of the problem has one answer, in order: members or reasons."""
    asked = [(gang.namespace, gang.uid) for gang in problem.gangs]
    answered = [(gang.namespace, gang.uid) for gang in decision.gangs]
    if asked != answered:
        yield "gangsAnswered: the decision is not about the gangs of the problem"
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.reasons and decided.members:
            yield f"gangsAnswered: {gang.name} has members and reasons"
        if not decided.reasons and not decided.members:
            yield f"gangsAnswered: {gang.name} has neither members nor reasons"
        if gang.refused and decided.members:
            yield f"gangsAnswered: {gang.name} was refused beforehand"


def _value_is_true(problem: Problem, decision: Decision, ranks: int) -> Violations:
    """Each tier says what the answer is worth, and no bound is past its value."""
    weight_in, extra_in = Counter[int](), Counter[int]()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.members:
            weight_in[gang.priority] += gang.weight
            extra_in[gang.priority] += count_extra(gang, decided.members)
    valued = {tier.priority for tier in decision.objective if tier.tier is Tier.GANGS}
    for priority in sorted({g.priority for g in problem.gangs if not g.refused}):
        if priority not in valued:
            yield f"valueIsTrue: priority {priority} has no value"
    extras = {tier.priority for tier in decision.objective if tier.tier is Tier.EXTRA}
    is_asked = problem.parameters.last_tier is not Tier.GANGS
    for priority in sorted(p for p, extra in extra_in.items() if extra and is_asked):
        if priority not in extras:
            yield f"valueIsTrue: priority {priority} has extra pods without value"
    for tier in decision.objective:
        if tier.tier is Tier.GANGS and tier.value != weight_in[tier.priority or 0]:
            yield f"valueIsTrue: priority {tier.priority} has not value {tier.value}"
        if tier.tier is Tier.EXTRA and tier.value != extra_in[tier.priority or 0]:
            yield f"valueIsTrue: priority {tier.priority} has not {tier.value} extra"
        if tier.tier is Tier.ALTERNATIVES and tier.value != ranks:
            yield f"valueIsTrue: alternatives have not value {tier.value}"
        if tier.bound is None:
            continue
        is_more = tier.tier in (Tier.GANGS, Tier.EXTRA)
        if tier.bound < tier.value if is_more else tier.bound > tier.value:
            yield f"valueIsTrue: bound {tier.bound} is past value {tier.value}"


def _preferences_are_counted(
    problem: Problem, decision: Decision, cost: int
) -> Violations:
    """What preferences about topology cost is what the tier says, if there are any."""
    said = [tier.value for tier in decision.objective if tier.tier is Tier.TOPOLOGY]
    is_asked = problem.parameters.last_tier.place >= Tier.TOPOLOGY.place and any(
        topology.mode == "Preferred"
        for gang in problem.gangs
        if not gang.refused
        for topology in gang.topology
    )
    if said != ([cost] if is_asked else []):
        yield f"valueIsTrue: preferences cost {cost}, not {said}"


def _later_values_are_true(
    facts: Facts, decision: Decision, uses: list[Use]
) -> Violations:
    """The slack value lost and the nodes touched are what the tiers say."""
    problem, pods = facts.problem, list[tuple[NodeName, MemberPart]]()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        members = {member.name: member for member in gang.members}
        for pod in decided.members:
            if pod.member in members:
                pods.append((pod.node, members[pod.member]))
    said = {tier.tier: tier.value for tier in decision.objective}
    last = problem.parameters.last_tier.place
    if last >= Tier.LEFTOVER.place and problem.expected:
        lost = value_lost(facts, pods, uses)
        if said.get(Tier.LEFTOVER) != lost:
            found = said.get(Tier.LEFTOVER)
            yield f"valueIsTrue: {lost} is lost of what is left, not {found}"
    if last >= Tier.NODES.place:
        nodes = len({node for node, _ in pods})
        if said.get(Tier.NODES) != nodes:
            yield f"valueIsTrue: {nodes} nodes are touched, not {said.get(Tier.NODES)}"


def _shares_differ(decision: Decision) -> Violations:
    """No share id is given twice."""
    counts = Counter(
        result.share_id
        for gang in decision.gangs
        for member in gang.members
        for claim in member.claims
        for result in claim.allocation.devices.results
        if result.share_id is not None
    )
    for share_id, count in counts.items():
        if count > 1:
            yield f"shareId: {share_id} is given {count} times"


def _result_name(request: RequestPart, alternative: SubrequestPart) -> str:
    """Name a request as results do: with the alternative, if it has names for them."""
    if not alternative.name:
        return request.name
    return f"{request.name}/{alternative.name}"


def _rank_without_devices(request: RequestPart) -> int:
    """Find the alternative of a request without devices: the first that asks for none.

    Where each asks for some it is the first, which then has too few.
    """
    for rank, alternative in enumerate(request.alternatives):
        if not alternative.count:
            return rank
    return 0


class _Pod:
    """One pod: its node may be used, and each claim is served there.

    Read `violations` to the end first: it fills `uses` and `rank`.
    """

    def __init__(self, facts: Facts, gang: GangPart, pod: MemberAllocated) -> None:
        self._facts = facts
        self._pod = pod
        self._subject = f"{gang.name}/{pod.member}/{pod.index}"
        parts = {member.name: member for member in gang.members}
        self._part = parts.get(pod.member)
        self.uses: list[Use] = []
        self.rank = 0

    def list_placed(self) -> list[GangPod]:
        """Describe the pod for the rules of its gang; nothing where it is no member."""
        if self._part is None:
            return []
        node = self._facts.find_node(self._pod.node)
        return [GangPod(self._part, self._pod.index, node, tuple(self.uses))]

    def violations(self) -> Violations:
        """List what is wrong with the pod."""
        node, subject = self._facts.find_node(self._pod.node), self._subject
        if self._part is None:
            return
        # First the node.
        if node.unavailable:
            yield f"nodeUsable: {subject} is on {node.name}, {node.unavailable}"
        if not self._facts.has_node(node.name):
            yield f"nodeUsable: {subject} is on {node.name}, which does not exist"
        if not self._facts.is_readable(node.name):
            yield f"nodeUsable: {subject} is on {node.name}, whose slices are malformed"
        yield from judge_node(node, self._part, subject)
        # Then claim by claim; each of the pod is there, in order.
        claims = self._part.claims
        if [c.name for c in claims] != [c.claim for c in self._pod.claims]:
            yield f"gangIsWhole: {subject} has other claims than it asked for"
            return
        for number, claim in enumerate(claims):
            yield from self._claim(claim, number)

    def _claim(self, claim: ClaimPart, number: int) -> Violations:
        where = f"{self._subject}/{claim.name}"
        served, devices = self._serve(claim, number)
        if served is None or sum(len(each.devices) for each in served) != devices:
            yield f"requestKnown: {where} has results for other requests"
            return
        if devices > LIMIT:
            yield f"claimLimit: {where} holds more than {LIMIT} devices"
        all_exist = yield from self._devices(claim, number, served, where)
        # Constraints and results compare what devices say, so all must exist.
        if all_exist:
            for constraint in claim.constraints:
                yield from self._constraint(constraint, served, where)
            yield from results_are_written(
                self._facts,
                claim,
                [(each.subrequest, each.rank) for each in served],
                [facts for each in served for facts in each.facts if facts is not None],
                (self._pod.node, self._pod.claims[number].allocation, where),
            )

    def _serve(
        self, claim: ClaimPart, number: int
    ) -> tuple[list[ServedRequest] | None, int]:
        """Sort the results of a claim by request; None: an alternative is unclear."""
        results = self._pod.claims[number].allocation.devices.results
        devices_by_name: dict[str, list[DeviceID]] = {}
        for result in results:
            devices_by_name.setdefault(result.request, []).append(result.device_id)
        served = []
        for request in claim.requests:
            names = [_result_name(request, each) for each in request.alternatives]
            taken = [rank for rank, name in enumerate(names) if name in devices_by_name]
            if len(taken) > 1:
                return None, len(results)
            rank = taken[0] if taken else _rank_without_devices(request)
            self.rank += rank
            devices = tuple(devices_by_name.get(names[rank], ()))
            scope = frozenset({request.name, names[rank]})
            node = self._pod.node
            facts = tuple(self._facts.find_device(node, device) for device in devices)
            alternative = request.alternatives[rank]
            served.append(ServedRequest(alternative, rank, scope, devices, facts))
        return served, len(results)

    def _devices(
        self, claim: ClaimPart, number: int, served: list[ServedRequest], where: str
    ) -> Generator[str, None, bool]:
        """Judge each device on its own; returns whether all of them exist here."""
        all_exist, node = True, self._pod.node
        for position, each in enumerate(served):
            subject = f"{where}/{claim.requests[position].name}"
            yield from self._count(each, subject)
            for name, facts in zip(each.devices, each.facts, strict=True):
                if facts is None:
                    all_exist = False
                    if self._facts.has_device(name):
                        yield f"oneNode: {subject} has {name}, not to be had on {node}"
                    else:
                        yield f"deviceExists: {subject} has {name}, unknown"
                    continue
                yield from judge_device(
                    self._facts, node, each.subrequest, (name, facts), subject
                )
                use = Use(
                    pod=self._subject,
                    node=node,
                    device=name,
                    claim=number,
                    request=position,
                    subrequest=each.subrequest,
                    facts=facts,
                )
                self.uses.append(use)
        return all_exist

    def _count(self, served: ServedRequest, subject: str) -> Violations:
        """A request has as many devices as it asks for, or all that it means."""
        subrequest = served.subrequest
        if len(set(served.devices)) < len(served.devices):
            yield f"devicesDiffer: {subject} has a device twice"
        if not subrequest.all_devices:
            if len(served.devices) != subrequest.count:
                yield f"requestsFilled: {subject} has {len(served.devices)} devices"
            return
        meant: set[DeviceID] = set()
        for pool, visible in self._facts.pools_of(self._pod.node):
            if not visible.usable:
                yield f"allDevices: {subject} is where {pool} is not whole"
            for name, (device, _) in visible.devices.items():
                device_id = DeviceID(pool.driver, pool.pool, device.name)
                selected = self._facts.is_selected(subrequest, pool.driver, device)
                if selected is None:
                    yield f"allDevices: {subject} is where a selector fails on {name}"
                elif selected and self._is_meant(subrequest, device_id):
                    meant.add(device_id)
        if set(served.devices) != meant or not meant:
            yield f"allDevices: {subject} has not all devices of {self._pod.node}"

    def _is_meant(self, subrequest: SubrequestPart, name: DeviceID) -> bool:
        node = self._pod.node
        facts = self._facts.find_device(node, name)
        if facts is None:
            return False
        alone = judge_device_alone(self._facts, node, subrequest, (name, facts), "")
        return not list(alone)

    def _constraint(
        self, constraint: DeviceConstraint, served: list[ServedRequest], where: str
    ) -> Violations:
        """All devices in scope have the attribute: one in common, or none twice."""
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        scope = set(constraint.requests)
        values = [
            self._facts.compared_values(
                each.subrequest, name, device.driver, facts.device
            )
            for each in served
            if not scope or each.names & scope
            for device, facts in zip(each.devices, each.facts, strict=True)
            if facts is not None
        ]
        if not all(values):
            yield f"attributePresent: {where} has a device without {name}"
        elif constraint.match_attribute is not None:
            if values and not set.intersection(*values):
                yield f"attributesMatch: {where} has no value of {name} in common"
        elif len(set().union(*values)) < sum(map(len, values)):
            yield f"attributesDistinct: {where} repeats a value of {name}"
