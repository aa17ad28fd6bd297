"""Which node, value or domain comes nearest to what a constraint or rule asks for.

For a constraint of a claim, devices are counted by value; a device that lacks the
attribute has none. Other constraints of the claim, and devices that draw from the same
counters, do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from contracts.claim import DeviceConstraint
from contracts.counts import counted
from contracts.device import DeviceAttribute
from contracts.ids import NodeName
from solver.devices.candidates import (
    find_free,
    find_supported,
    find_tolerated,
    indices_of,
    select_devices,
)
from solver.devices.gather import Cluster, NodePools
from solver.devices.published import list_published
from solver.explain.amounts import find_with_enough
from solver.explain.node_checks import MOST_NAMED, NODE_RULES, NodeCheck
from solver.kinds.query import RequestKind, request_kind_of
from solver.kinds.traits import find_targets
from solver.problem.gangs import ClaimPart, SubrequestPart
from solver.problem.problem import Problem

RoomByName = dict[object, int]
"""Pods that there is room for, by domain or value."""


def describe_nearest(
    problem: Problem,
    cluster: Cluster,
    checks: Mapping[NodeName, NodeCheck],
    claim: ClaimPart,
) -> str:
    """Describe the node and value with most of the devices that one constraint wants.

    `n1 comes nearest: 6 of 8 devices with the value 0; 2 without a value`. Empty:
    several constraints, or one of another sort than one value for all.
    """
    if len(claim.constraints) != 1 or not claim.constraints[0].match_attribute:
        return ""
    (constraint,) = claim.constraints
    asked = _list_asked(claim, constraint)
    if any(request.all_devices for request in asked):
        return ""
    wanted = sum(request.count for request in asked)
    best: tuple[int, str, str, int] = (0, "", "", 0)
    for name, check in sorted(checks.items()):
        if check.passed < len(NODE_RULES):
            continue
        found, lacking = _count_values(problem, cluster.nodes[name], asked, constraint)
        for value, count in sorted(found.items()):
            if count > best[0]:
                best = (count, name, value, lacking)
    count, node, value, lacking = best
    if not count:
        return f"no device that it may use publishes {constraint.match_attribute}"
    words = f"{node} comes nearest: {count} of {counted(wanted, 'device')} with "
    words += f"the value {value}"
    return f"{words}; {lacking} without a value" if lacking else words


def _list_asked(claim: ClaimPart, constraint: DeviceConstraint) -> list[SubrequestPart]:
    """List the first choices of the requests that a constraint is about."""
    return [
        request.alternatives[0]
        for request in claim.requests
        if not constraint.requests or request.name in constraint.requests
    ]


def _count_values(
    problem: Problem,
    node: NodePools,
    asked: Iterable[SubrequestPart],
    constraint: DeviceConstraint,
) -> tuple[Counter[str], int]:
    """Count by value the devices of a node that serve; and those without a value."""
    total, lacking = Counter[str](), 0
    for request in asked:
        kind, of_request = request_kind_of(request), Counter[str | None]()
        for attribute in _list_attributes(problem, node, kind, constraint):
            of_request[None if attribute is None else _format_value(attribute)] += 1
        lacking += of_request.pop(None, 0)
        for value, count in of_request.items():
            if value is not None:
                total[value] += min(count, request.count)
    return total, lacking


def _list_attributes(
    problem: Problem, node: NodePools, kind: RequestKind, constraint: DeviceConstraint
) -> Iterator[DeviceAttribute | None]:
    """Yield the devices that may serve a request, by what they publish."""
    features, name = problem.parameters.features, constraint.match_attribute or ""
    for view in node.pools:
        if not view.usable:
            continue
        bits = select_devices(view.part, kind.selectors, problem.selectors).bits
        bits = find_targets(view, bits, kind, features)
        bits &= find_supported(view, node.node, features)
        bits &= find_free(view, features, admin=kind.admin)
        bits &= find_tolerated(view, kind.tolerations, features)
        bits, _ = find_with_enough(view, bits, kind, features)
        published = list_published(view.devices, view.driver, name)
        yield from (published[index] for index in indices_of(bits))


def _format_value(attribute: DeviceAttribute) -> str:
    """Write a value as kubectl shows it; lists with commas."""
    for value in (
        attribute.string_value,
        attribute.version_value,
        attribute.int_value,
        attribute.bool_value,
    ):
        if value is not None:
            return str(value).lower() if isinstance(value, bool) else str(value)
    lists = (
        attribute.string_values,
        attribute.version_values,
        attribute.int_values,
        attribute.bool_values,
    )
    return ", ".join(str(value) for values in lists for value in values or ())


def describe_rooms(rooms: RoomByName, whole: str) -> str:
    """Name those that come nearest: `r3 has room for 14 of 16 pods, r1 for 9`."""
    nearest = sorted(rooms.items(), key=lambda pair: (-pair[1], repr(pair[0])))
    if not nearest:
        return f"none has room for any of {whole}"
    (first, room), *others = nearest
    more = "".join(f", {name} for {count}" for name, count in others[: MOST_NAMED - 1])
    hidden = len(nearest) - MOST_NAMED
    rest = f", {hidden} more for as many or fewer" if hidden > 0 else ""
    return f"{first} has room for {room} of {whole}{more}{rest}"
