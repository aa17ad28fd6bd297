"""Which rule leaves too few devices for a request: what is left after each.

`8 pods need 1 gpu.example.com each; 7 devices match, 1 is on a node that it selects;
room for 1 of 8 pods`: the counts of all rules that take devices away, so that nobody
has to guess which of several would have to give.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from contracts.allocation import MAX_DEVICES, Reason, Rule
from contracts.counts import counted
from solver.explain.counts import (
    RequestCounts,
    Rooms,
    describe_shortages,
    describe_taints,
)
from solver.explain.node_checks import (
    BESIDE,
    NODE_RULES,
    NodeCheck,
    describe_refusals,
    need_of_pods,
)
from solver.problem.gangs import MemberPart, SubrequestPart

RULES = (
    Rule.NO_CANDIDATE,
    *NODE_RULES,
    Rule.DISABLED,
    Rule.TAKEN,
    Rule.TAINTED,
)
"""The rule of each step of counting."""
_LASTING = frozenset(
    {Rule.NO_CANDIDATE, Rule.NODE_SELECTION, Rule.NODE_FEATURES, Rule.DISABLED}
)
"""Rules that say no until somebody changes what is asked or what there is."""
_LEFT = {
    Rule.NO_CANDIDATE: ("matches", "match"),
    Rule.NODE_SELECTION: (
        "is on a node that it selects",
        "are on nodes that it selects",
    ),
    Rule.NODE_FEATURES: (
        "is on a node whose kubelet declares the features it needs",
        "are on nodes whose kubelets declare the features it needs",
    ),
    Rule.NODE: ("is on a usable node", "are on usable nodes"),
    Rule.NODE_TAINTED: (
        "is on a node whose taints it tolerates",
        "are on nodes whose taints it tolerates",
    ),
    BESIDE: (
        "is on a node where it may run beside other pods",
        "are on nodes where it may run beside other pods",
    ),
    Rule.DISABLED: (
        "is supported there (feature gates, features of the node)",
        "are supported there (feature gates, features of the node)",
    ),
    Rule.TAKEN: ("is free", "are free"),
    Rule.TAINTED: ("is not kept away by a taint", "are not kept away by a taint"),
}
"""Of one device that is left, and of several."""


class TooFewDevices(Struct, frozen=True):
    """A request for which too few devices are left, and the rule to name."""

    request: SubrequestPart
    counts: RequestCounts
    rooms: Rooms
    rule: Rule


def find_rule(rooms: Rooms, pods: int) -> Rule | None:
    """Find which rule to name where devices are too few; None: they are enough.

    What lasts comes before what may pass, and of several the last one that took room
    away: the others alone would not help.
    """
    before, failing = None, list[Rule]()
    for rule, room in zip(RULES, rooms.by_rule, strict=True):
        if room < pods and (before is None or room < before):
            failing.append(rule)
        before = room
    lasting = [rule for rule in failing if rule in _LASTING]
    named = lasting or failing
    return named[-1] if named else None


def explain_too_few(
    too_few: TooFewDevices,
    subject: str,
    member: MemberPart,
    checks: Sequence[NodeCheck],
) -> Reason:
    """Return what each rule leaves; `checks`: of the nodes that have such devices."""
    request, counts, rooms = too_few.request, too_few.counts, too_few.rooms
    pods, room = counted(member.count, "pod"), rooms.by_rule[-1]
    if request.all_devices:
        what = f"all matching {request.device_class} of one node"
    else:
        where = " on one node" if request.count > 1 else ""
        what = f"{request.count} {request.device_class}{where}"
    message = f"{need_of_pods(member.count, what)}; {_describe_steps(too_few, checks)}"
    (most, node), rule = rooms.largest[-1], too_few.rule
    if request.all_devices and most > MAX_DEVICES:
        rule = Rule.TOO_MANY_DEVICES
        message += f"; {node} has {most}, and a claim may have at most {MAX_DEVICES}"
    elif room:
        message += f"; room for {room} of {pods}"
    elif request.all_devices and most:
        message += "; no node has all of them available"
    elif most:
        message += f"; the most on one node is {most} ({node})"
    if rule is Rule.NO_CANDIDATE and counts.faults:
        fault = explain_fault(request, subject, counts)
        message += f"; also, {fault.message}"
    if counts.unusable:
        some = counted(len(counts.unusable), "pool or device", "pools or devices")
        message += f"; {some} unusable ({counts.unusable[0]})"
    if counts.contests:
        message += f"; {counts.contests[0]}"
        if others := len(counts.contests) - 1:
            are = counted(others, "other pool is", "other pools are")
            message += f", and {are} contested"
    facts = {
        "devices": counts.devices,
        **rooms.devices,
        "room": room,
        "pods": member.count,
    }
    return Reason(rule=rule, subject=subject, message=message, facts=facts)


def _describe_steps(too_few: TooFewDevices, checks: Sequence[NodeCheck]) -> str:
    """List what is left after each rule that takes devices away."""
    words, before = list[str](), -1
    amounts = too_few.rooms.devices.values()
    for rule, left in zip(RULES, amounts, strict=True):
        if left == before:
            continue
        one, several = _LEFT[rule]
        noun = "" if words else (" device" if left == 1 else " devices")
        amount = str(left) if left else "none" if words else "no"
        verb = one if left <= 1 and (left or words) else several
        why = _describe_why(rule, too_few.counts, checks)
        words.append(f"{amount}{noun} {verb}{why}")
        before = left
        if not left:
            break
    return ", ".join(words)


def _describe_why(
    rule: Rule, counts: RequestCounts, checks: Sequence[NodeCheck]
) -> str:
    """Describe what is in the way of the others, in brackets; empty: that is plain."""
    if rule is Rule.TAINTED:
        return describe_taints(counts)
    if rule is Rule.TAKEN:
        return describe_shortages(counts)
    if rule in NODE_RULES and rule is not Rule.NODE_SELECTION:
        return describe_refusals(checks, NODE_RULES.index(rule))
    return ""


def explain_fault(
    request: SubrequestPart, subject: str, counts: RequestCounts
) -> Reason:
    """Return the selector that fails, with the first device on which it does."""
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
