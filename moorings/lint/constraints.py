"""Constraints that no node can meet, or that some matching devices cannot.

By counting only: each request alone, node by node. What passes may still not fit; what
is told here cannot. Constraints over requests with alternatives are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from contracts.claim import DeviceConstraint
from moorings.lint.all_requests import Asking
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.matches import Matches
from solver.problem.problem import SubrequestPart


def check_constraints(asking: Asking, matches: Matches) -> Iterator[Finding]:
    """Hold the constraints of a claim against the nodes of the input."""
    if not matches.total:
        return
    for number, constraint in enumerate(asking.part.constraints):
        name = constraint.match_attribute or constraint.distinct_attribute
        scope = _scope(asking, constraint)
        if not name or not scope or any(sub.fault for sub in scope):
            continue
        path = f"{asking.path}.devices.constraints[{number}]"
        yield from _missing(asking, path, name, scope, matches)
        if constraint.match_attribute and not _is_possible(name, scope, matches):
            message = (
                f"on no node enough devices share a value of {name} for "
                f"{len(scope)} requests, by counting"
            )
            yield asking.finding(path, LintRule.CONSTRAINT, message)


def _scope(asking: Asking, constraint: DeviceConstraint) -> list[SubrequestPart]:
    """List the requests that are meant; none where one of them has alternatives."""
    meant = [
        request
        for request in asking.part.requests
        if not constraint.requests
        or {request.name, *map(request.result_name, range(len(request.alternatives)))}
        & set(constraint.requests)
    ]
    if any(len(request.alternatives) > 1 for request in meant):
        return []
    return [request.alternatives[0] for request in meant]


def _missing(
    asking: Asking,
    path: str,
    name: str,
    scope: list[SubrequestPart],
    matches: Matches,
) -> Iterator[Finding]:
    seen = {
        (driver, device.name, node): bool(matches.values(asked, name, driver, device))
        for asked in scope
        for node in matches.cluster.nodes
        for driver, device in matches.on_node(node, asked)
    }
    lacking = sum(not has for has in seen.values())
    if lacking:
        message = f"{lacking} of {len(seen)} matching devices lack {name}"
        rule, severity = LintRule.ATTRIBUTE_MISSING, Severity.WARNING
        yield asking.finding(path, rule, message, severity)


def _is_possible(name: str, scope: list[SubrequestPart], matches: Matches) -> bool:
    found_any = False
    for node in matches.cluster.nodes:
        counts = []
        for asked in scope:
            found = matches.on_node(node, asked)
            found_any = found_any or bool(found)
            shared = Counter(
                value
                for driver, device in found
                for value in matches.values(asked, name, driver, device)
            )
            counts.append((max(asked.count, 1), shared))
        values = set().union(*(shared for _, shared in counts))
        if any(all(c[value] >= need for need, c in counts) for value in values):
            return True
    return not found_any
