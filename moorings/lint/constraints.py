"""Constraints that no node can meet, or that some matching devices cannot.

By counting only: each request alone, node by node. What passes may still not fit; what
is reported here cannot. Constraints over requests with alternatives are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from contracts.claim import DeviceConstraint
from contracts.counts import counted
from moorings.lint.claims import LintClaim
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.matches import Matches
from solver.problem.gangs import SubrequestPart


def check_constraints(claim: LintClaim, matches: Matches) -> Iterator[Finding]:
    """Hold the constraints of a claim against the nodes of the input."""
    if not matches.total:
        return
    for number, constraint in enumerate(claim.part.constraints):
        name = constraint.match_attribute or constraint.distinct_attribute
        scope = _find_scope(claim, constraint)
        if not name or not scope or any(sub.fault for sub in scope):
            continue
        path = f"{claim.path}.devices.constraints[{number}]"
        yield from _check_missing(claim, path, name, scope, matches)
        if constraint.match_attribute and not _may_constraint_hold(
            name, scope, matches
        ):
            message = (
                f"no node has enough devices with one value of {name} for "
                f"{counted(len(scope), 'request')}"
            )
            yield claim.report(path, LintRule.CONSTRAINT, message)


def _find_scope(claim: LintClaim, constraint: DeviceConstraint) -> list[SubrequestPart]:
    """List the requests it is about; none where one of them has alternatives."""
    requests = [
        request
        for request in claim.part.requests
        if not constraint.requests
        or {request.name, *map(request.result_name, range(len(request.alternatives)))}
        & set(constraint.requests)
    ]
    if any(len(request.alternatives) > 1 for request in requests):
        return []
    return [request.alternatives[0] for request in requests]


def _check_missing(
    claim: LintClaim,
    path: str,
    name: str,
    scope: list[SubrequestPart],
    matches: Matches,
) -> Iterator[Finding]:
    lacking, matching = matches.count_lacking(name, scope)
    if lacking:
        lack = counted(matching, "matching device lacks", "matching devices lack")
        message = f"{lacking} of {lack} {name}"
        rule, severity = LintRule.ATTRIBUTE_MISSING, Severity.WARNING
        yield claim.report(path, rule, message, severity)


def _may_constraint_hold(
    name: str, scope: list[SubrequestPart], matches: Matches
) -> bool:
    """True if, by count, some node's devices agree, or there are no devices to lint."""
    any_device = False
    for node in matches.cluster.nodes:
        counts = []
        for subrequest in scope:
            devices = matches.list_devices(node, subrequest)
            any_device = any_device or bool(devices)
            shared = Counter(
                value
                for driver, device in devices
                for value in matches.read_values(subrequest, name, driver, device)
            )
            counts.append((max(subrequest.count, 1), shared))
        values = set().union(*(shared for _, shared in counts))
        if any(all(c[value] >= count for count, c in counts) for value in values):
            return True
    return not any_device
