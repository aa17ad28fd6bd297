"""Whether a decision is right: every rule again, in plain Python, on its own.

Looks at the Problem and the Decision only; knows no engine, no kinds, no counts.
A violation names the rule and what breaks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from contracts.allocation import AllocationResult
from contracts.claim import DeviceConstraint, DeviceToleration
from contracts.device import DeviceTaint
from contracts.ids import DeviceID
from contracts.messages import MemberAllocated
from solver.decision import Decision
from solver.judge.facts import DeviceFacts, Facts, attribute_value
from solver.problem.problem import ClaimPart, GangPart, Problem, RequestPart
from solver.problem.reads import reads
from solver.problem.selectors import look

Violations = Iterator[str]


def judge(problem: Problem, decision: Decision) -> tuple[str, ...]:
    """List what is wrong with a decision; empty: it is right."""
    facts = Facts(problem)
    found = [*_gangs_answered(problem, decision), *_value_is_true(problem, decision)]
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.members:
            found.extend(_gang_is_whole(gang, decided.members))
            for member in decided.members:
                found.extend(_member_holds(problem, facts, gang, member))
    found.extend(_devices_exclusive(decision))
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


def _value_is_true(problem: Problem, decision: Decision) -> Violations:
    """Tier 1 says what is in, and no bound is below its value."""
    admitted: Counter[int] = Counter()
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        if decided.members:
            admitted[gang.priority] += gang.weight
    for tier in decision.objective:
        if tier.tier == 1 and tier.value != admitted[tier.priority or 0]:
            yield f"valueIsTrue: priority {tier.priority} has not value {tier.value}"
        if tier.bound is not None and tier.bound < tier.value:
            yield f"valueIsTrue: bound {tier.bound} is below value {tier.value}"


def _gang_is_whole(gang: GangPart, members: tuple[MemberAllocated, ...]) -> Violations:
    """Every pod of the gang is there, once."""
    wanted = Counter(
        (member.name, index) for member in gang.members for index in range(member.count)
    )
    if wanted != Counter((member.member, member.index) for member in members):
        yield f"gangIsWhole: {gang.name} has other pods than it asked for"


def _member_holds(
    problem: Problem, facts: Facts, gang: GangPart, allocated: MemberAllocated
) -> Violations:
    """One pod: its node may be used, and each claim is served there."""
    subject = f"{gang.name}/{allocated.member}/{allocated.index}"
    why = facts.unavailable.get(allocated.node, "")
    if why:
        yield f"nodeUsable: {subject} is on {allocated.node}, which is {why}"
    parts = {member.name: member for member in gang.members}
    part = parts.get(allocated.member)
    claims = part.claims if part is not None else ()
    if [claim.name for claim in claims] != [c.claim for c in allocated.claims]:
        yield f"gangIsWhole: {subject} has other claims than it asked for"
        return
    for claim, given in zip(claims, allocated.claims, strict=True):
        where = f"{subject}/{claim.name}"
        chosen = _by_request(given.allocation)
        if not set(chosen) <= {request.name for request in claim.requests}:
            yield f"requestsFilled: {where} has results for unknown requests"
        if len(given.allocation.devices.results) > 32:
            yield f"claimLimit: {where} holds more than 32 devices"
        known = {d: facts.device(d) for found in chosen.values() for d in found}
        unknown = [device for device, found in known.items() if found is None]
        if unknown:
            yield f"deviceExists: {where} has {unknown[0]}, which nobody announced"
            continue
        for request in claim.requests:
            devices = chosen.get(request.name, [])
            yield from _request_holds(
                problem, facts, request, devices, (where, allocated)
            )
        for constraint in claim.constraints:
            yield from _constraint_holds(facts, claim, constraint, chosen, where)


def _by_request(allocation: AllocationResult) -> dict[str, list[DeviceID]]:
    chosen: dict[str, list[DeviceID]] = {}
    for result in allocation.devices.results:
        chosen.setdefault(result.request, []).append(result.device_id)
    return chosen


def _request_holds(
    problem: Problem,
    facts: Facts,
    request: RequestPart,
    devices: list[DeviceID],
    place: tuple[str, MemberAllocated],
) -> Violations:
    """One request: as many devices as asked for, each of them permitted."""
    where, allocated = place
    subject = f"{where}/{request.name}"
    if request.all_devices:
        wanted = {
            device
            for device, known in facts.on_node(allocated.node)
            if _chosen(problem, request, device, known)
        }
        if set(devices) != wanted or not devices:
            yield f"allDevices: {subject} has not all devices of {allocated.node}"
    elif len(devices) != request.count:
        yield f"requestsFilled: {subject} has {len(devices)}, not {request.count}"
    for device in devices:
        known = facts.device(device)
        if known is None:
            continue
        if known.node != allocated.node:
            yield f"oneNode: {subject} has {device}, not on {allocated.node}"
        if not known.pool_usable:
            yield f"poolUsable: {subject} has {device} of an unusable pool"
        if known.taken:
            yield f"notTaken: {subject} has {device}, which somebody holds"
        if not _chosen(problem, request, device, known):
            yield f"selected: {subject} has {device}, which its selectors refuse"
        for taint in known.taints:
            if not _tolerated(taint, request.tolerations):
                yield f"tolerated: {subject} has {device} with taint {taint.key}"


def _chosen(
    problem: Problem, request: RequestPart, device: DeviceID, known: DeviceFacts
) -> bool:
    for expression in request.selectors:
        seen = look(reads(expression), device.driver, known.device)
        verdict = problem.selectors.get(expression, seen)
        if verdict is None or verdict.error or verdict.value is not True:
            return False
    return True


def _tolerated(taint: DeviceTaint, tolerations: tuple[DeviceToleration, ...]) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return True
    if taint.key == "moorings.dev/owned":
        return True
    for toleration in tolerations:
        same_effect = toleration.effect in ("", taint.effect)
        same_key = toleration.key in ("", taint.key)
        exists = toleration.operator == "Exists"
        equal = toleration.operator in ("", "Equal") and toleration.value == taint.value
        if same_effect and same_key and (exists or equal):
            return True
    return False


def _constraint_holds(
    facts: Facts,
    claim: ClaimPart,
    constraint: DeviceConstraint,
    chosen: dict[str, list[DeviceID]],
    where: str,
) -> Violations:
    """All devices in scope have the attribute, and equal or pairwise other values."""
    scope = [
        device
        for request in claim.requests
        if not constraint.requests or request.name in constraint.requests
        for device in chosen.get(request.name, [])
    ]
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    known = [(device, facts.device(device)) for device in scope]
    values = [
        None if found is None else attribute_value(found, device.driver, name)
        for device, found in known
    ]
    if None in values:
        yield f"attributePresent: {where} has a device without {name}"
    elif constraint.match_attribute is not None:
        if len(set(values)) > 1:
            yield f"attributesMatch: {where} mixes values of {name}"
    elif len(set(values)) < len(values):
        yield f"attributesDistinct: {where} repeats a value of {name}"


def _devices_exclusive(decision: Decision) -> Violations:
    """No device is given twice."""
    given = Counter(
        result.device_id
        for gang in decision.gangs
        for member in gang.members
        for claim in member.claims
        for result in claim.allocation.devices.results
    )
    for device, count in sorted(given.items()):
        if count > 1:
            yield f"devicesExclusive: {device} is given {count} times"
