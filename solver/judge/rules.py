"""Whether a decision is right: every rule again, in plain Python, on its own.

Looks at the Problem and the Decision only; knows no engine, no kinds, no counts.
A violation names the rule and what breaks it. Here: gangs, nodes, claims, requests and
the value; what nodes ask of pods is in `nodes.py`, single devices in `devices.py`, what
pods share in `shared.py`, what is left over in `leftover.py`, what is written down in
`results.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator

from msgspec import Struct

from contracts.claim import DeviceConstraint
from contracts.ids import DeviceID, NodeName
from contracts.messages import MemberAllocated
from solver.decision import Decision
from solver.judge.devices import device_rules, static_rules
from solver.judge.facts import DeviceFacts, Facts
from solver.judge.nodes import node_lets_in, nodes_suffice
from solver.judge.results import results_are_written
from solver.judge.shared import Use, shared_rules
from solver.judge.slack import value_lost
from solver.problem.problem import (
    ClaimPart,
    GangPart,
    MemberPart,
    Problem,
    SubrequestPart,
)

Violations = Iterator[str]
LIMIT = 32
LEFT, TOUCHED = 3, 5
"""Tiers."""


class Given(Struct, frozen=True):
    """The devices that one request of a pod got."""

    asked: SubrequestPart
    rank: int
    names: frozenset[str]
    """By which constraints may mean it."""
    devices: tuple[DeviceID, ...]
    known: tuple[DeviceFacts | None, ...]
    """What there is to know of each device; None: it cannot be allocated there."""


def judge(problem: Problem, decision: Decision) -> tuple[str, ...]:
    """List what is wrong with a decision; empty: it is right."""
    facts, uses, ranks = Facts(problem), list[Use](), 0
    found = list(_gangs_answered(problem, decision))
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if not decided.members:
            continue
        found.extend(_gang_is_whole(gang, decided.members))
        for member in decided.members:
            pod = _Pod(facts, gang, member)
            found.extend(pod.violations())
            uses.extend(pod.uses)
            ranks += pod.rank
    found.extend(_shares_differ(decision))
    found.extend(_value_is_true(problem, decision, ranks))
    found.extend(_later_values_are_true(facts, decision, uses))
    found.extend(shared_rules(facts, uses))
    found.extend(nodes_suffice(facts, problem, decision))
    return tuple(found)


def _gangs_answered(problem: Problem, decision: Decision) -> Violations:
    """Each gang of the problem has one answer, in order: members or reasons."""
    asked = [gang.uid for gang in problem.gangs]
    answered = [gang.uid for gang in decision.gangs]
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
    admitted: Counter[int] = Counter()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.members:
            admitted[gang.priority] += gang.weight
    valued = {tier.priority for tier in decision.objective if tier.tier == 1}
    for priority in sorted({g.priority for g in problem.gangs if not g.refused}):
        if priority not in valued:
            yield f"valueIsTrue: priority {priority} has no value"
    for tier in decision.objective:
        if tier.tier == 1 and tier.value != admitted[tier.priority or 0]:
            yield f"valueIsTrue: priority {tier.priority} has not value {tier.value}"
        if tier.tier == 2 and tier.value != ranks:
            yield f"valueIsTrue: alternatives have not value {tier.value}"
        if tier.bound is None:
            continue
        if tier.bound < tier.value if tier.tier == 1 else tier.bound > tier.value:
            yield f"valueIsTrue: bound {tier.bound} is past value {tier.value}"


def _later_values_are_true(
    facts: Facts, decision: Decision, uses: list[Use]
) -> Violations:
    """What is left over and the nodes touched are as they are said to be."""
    problem, pods = facts.problem, list[tuple[NodeName, MemberPart]]()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        members = {member.name: member for member in gang.members}
        for pod in decided.members:
            if pod.member in members:
                pods.append((pod.node, members[pod.member]))
    said = {tier.tier: tier.value for tier in decision.objective}
    if problem.parameters.tiers >= LEFT and problem.expected:
        lost = value_lost(facts, pods, uses)
        if said.get(LEFT) != lost:
            yield f"valueIsTrue: {lost} is lost of what is left, not {said.get(LEFT)}"
    if problem.parameters.tiers >= TOUCHED:
        nodes = len({node for node, _ in pods})
        if said.get(TOUCHED) != nodes:
            yield f"valueIsTrue: {nodes} nodes are touched, not {said.get(TOUCHED)}"


def _shares_differ(decision: Decision) -> Violations:
    """No share id is given twice."""
    given = Counter(
        result.share_id
        for gang in decision.gangs
        for member in gang.members
        for claim in member.claims
        for result in claim.allocation.devices.results
        if result.share_id is not None
    )
    for share_id, count in given.items():
        if count > 1:
            yield f"shareId: {share_id} is given {count} times"


def _gang_is_whole(gang: GangPart, members: tuple[MemberAllocated, ...]) -> Violations:
    """Every pod of the gang is there, once."""
    wanted = Counter(
        (member.name, index) for member in gang.members for index in range(member.count)
    )
    if wanted != Counter((member.member, member.index) for member in members):
        yield f"gangIsWhole: {gang.name} has other pods than it asked for"


class _Pod:
    """One pod: its node may be used, and each claim is served there."""

    def __init__(self, facts: Facts, gang: GangPart, pod: MemberAllocated) -> None:
        self._facts = facts
        self._pod = pod
        self._subject = f"{gang.name}/{pod.member}/{pod.index}"
        parts = {member.name: member for member in gang.members}
        self._part = parts.get(pod.member)
        self.uses: list[Use] = []
        self.rank = 0

    def violations(self) -> Violations:
        """List what is wrong with the pod."""
        node, subject = self._facts.node(self._pod.node), self._subject
        if self._part is None:
            return
        if node.unavailable:
            yield f"nodeUsable: {subject} is on {node.name}, {node.unavailable}"
        if not self._facts.knows(node.name):
            yield f"nodeUsable: {subject} is on {node.name}, which does not exist"
        if not self._facts.is_readable(node.name):
            yield f"nodeUsable: {subject} is on {node.name}, whose slices are malformed"
        yield from node_lets_in(node, self._part, subject)
        claims = self._part.claims
        if [c.name for c in claims] != [c.claim for c in self._pod.claims]:
            yield f"gangIsWhole: {subject} has other claims than it asked for"
            return
        for number, (claim, allocated) in enumerate(
            zip(claims, self._pod.claims, strict=True)
        ):
            where = f"{subject}/{claim.name}"
            given, devices = self._given(claim, number)
            if given is None or sum(len(g.devices) for g in given) != devices:
                yield f"requestKnown: {where} has results for other requests"
                continue
            if devices > LIMIT:
                yield f"claimLimit: {where} holds more than {LIMIT} devices"
            known = yield from self._devices(claim, number, given, where)
            if known:
                yield from self._constraints(claim, given, where)
                yield from results_are_written(
                    self._facts,
                    claim,
                    [(g.asked, g.rank) for g in given],
                    [known for g in given for known in g.known if known is not None],
                    (self._pod.node, allocated.allocation, where),
                )

    def _given(self, claim: ClaimPart, number: int) -> tuple[list[Given] | None, int]:
        """Sort the results of a claim by request; None: an alternative is unclear."""
        results = self._pod.claims[number].allocation.devices.results
        by_name: dict[str, list[DeviceID]] = {}
        for result in results:
            by_name.setdefault(result.request, []).append(result.device_id)
        node, look_up = self._pod.node, self._facts.device
        found = []
        for request in claim.requests:
            names = [
                f"{request.name}/{item.name}" if item.name else request.name
                for item in request.alternatives
            ]
            taken = [rank for rank, name in enumerate(names) if name in by_name]
            if len(taken) > 1:
                return None, len(results)
            free = [r for r, item in enumerate(request.alternatives) if not item.count]
            rank = taken[0] if taken else (free or [0])[0]
            self.rank += rank
            devices = tuple(by_name.get(names[rank], ()))
            scope = frozenset({request.name, names[rank]})
            known = tuple(look_up(node, name) for name in devices)
            asked = request.alternatives[rank]
            found.append(Given(asked, rank, scope, devices, known))
        return found, len(results)

    def _devices(
        self, claim: ClaimPart, number: int, given: list[Given], where: str
    ) -> Generator[str, None, bool]:
        """Judge each device on its own; gives whether all of them exist here."""
        complete, node = True, self._pod.node
        for position, item in enumerate(given):
            subject = f"{where}/{claim.requests[position].name}"
            yield from self._count(item, subject)
            for name, known in zip(item.devices, item.known, strict=True):
                if known is None:
                    complete = False
                    if self._facts.exists(name):
                        yield f"oneNode: {subject} has {name}, not to be had on {node}"
                    else:
                        yield f"deviceExists: {subject} has {name}, unknown"
                    continue
                yield from device_rules(
                    self._facts, node, item.asked, (name, known), subject
                )
                use = Use(
                    pod=self._subject,
                    node=node,
                    device=name,
                    claim=number,
                    request=position,
                    asked=item.asked,
                    known=known,
                )
                self.uses.append(use)
        return complete

    def _count(self, item: Given, subject: str) -> Violations:
        if len(set(item.devices)) < len(item.devices):
            yield f"devicesDiffer: {subject} has a device twice"
        if not item.asked.all_devices:
            if len(item.devices) != item.asked.count:
                yield f"requestsFilled: {subject} has {len(item.devices)} devices"
            return
        wanted: set[DeviceID] = set()
        for pool, seen in self._facts.pools_of(self._pod.node):
            if not seen.usable:
                yield f"allDevices: {subject} is where {pool} is not whole"
            for name, (device, _) in seen.devices.items():
                device_id = DeviceID(pool.driver, pool.pool, device.name)
                selected = self._facts.is_selected(item.asked, pool.driver, device)
                if selected is None:
                    yield f"allDevices: {subject} is where a selector fails on {name}"
                elif selected and self._is_meant(item.asked, device_id):
                    wanted.add(device_id)
        if set(item.devices) != wanted or not wanted:
            yield f"allDevices: {subject} has not all devices of {self._pod.node}"

    def _is_meant(self, asked: SubrequestPart, name: DeviceID) -> bool:
        known = self._facts.device(self._pod.node, name)
        if known is None:
            return False
        static = static_rules(self._facts, self._pod.node, asked, (name, known), "")
        return not list(static)

    def _constraints(
        self, claim: ClaimPart, given: list[Given], where: str
    ) -> Violations:
        for constraint in claim.constraints:
            yield from self._constraint(constraint, given, where)

    def _constraint(
        self, constraint: DeviceConstraint, given: list[Given], where: str
    ) -> Violations:
        """All devices in scope have the attribute: one in common, or none twice."""
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        values = []
        for item in given:
            if constraint.requests and not item.names & set(constraint.requests):
                continue
            for device, known in zip(item.devices, item.known, strict=True):
                if known is not None:
                    values.append(
                        self._facts.elements(
                            item.asked, name, device.driver, known.device
                        )
                    )
        if not all(values):
            yield f"attributePresent: {where} has a device without {name}"
        elif constraint.match_attribute is not None:
            if values and not set.intersection(*values):
                yield f"attributesMatch: {where} has no value of {name} in common"
        elif len(set().union(*values)) < sum(map(len, values)):
            yield f"attributesDistinct: {where} repeats a value of {name}"
