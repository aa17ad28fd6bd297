"""Gangs that ask for more than there is, whoever holds it: by counting alone.

A pod asks on one node, a gang on all. Only requests without alternatives for a number
of devices count, and only where each device can be had once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from contracts.counts import counted
from moorings.lint.findings import Finding, LintRule
from moorings.lint.matches import Matches
from moorings.lint.topology import LintGang
from solver.problem.gangs import GangPart, SubrequestPart

Selectors = tuple[str, ...]


def check_gang_sizes(gangs: Iterable[LintGang], matches: Matches) -> Iterator[Finding]:
    """Hold what gangs ask for against all devices of the input, if it has any."""
    for gang in gangs if matches.total else ():
        message = next(_find_shortages(gang.part, matches), None)
        if message and not gang.part.refused:
            yield gang.report("spec.members", LintRule.GANG_TOO_LARGE, message)


def _find_shortages(part: GangPart, matches: Matches) -> Iterator[str]:
    """Say which pod is too large for any node, then what all pods lack together."""
    asked, pods = Counter[Selectors](), Counter[Selectors]()
    classes = defaultdict[Selectors, dict[str, None]](dict)
    for member in part.members:
        needs = Counter[Selectors]()
        for claim in member.claims:
            for request in claim.requests:
                (first, *others) = request.alternatives
                if not others and _is_counted(first, matches):
                    needs[first.selectors] += first.count
                    classes[first.selectors][first.device_class] = None
        for selectors, count in needs.items():
            most = matches.of(selectors).most_on_node
            if member.least and most < count:
                yield (
                    f"a pod of member {member.name} needs "
                    f"{counted(count, 'device')} of {', '.join(classes[selectors])} "
                    f"on one node; the largest node has {most}"
                )
            asked[selectors] += count * member.least
            pods[selectors] += member.least
    for selectors, count in asked.items():
        there = len(matches.of(selectors).devices)
        if there < count:
            yield (
                f"{counted(pods[selectors], 'pod needs', 'pods need')} "
                f"{counted(count, 'device')} of {', '.join(classes[selectors])}; "
                f"the input has {there}"
            )


def _is_counted(asked: SubrequestPart, matches: Matches) -> bool:
    """Return True if each device that it selects serves it once, for itself alone."""
    if asked.all_devices or asked.admin_access or asked.fault:
        return False
    match = matches.of(asked.selectors)
    return bool(match.devices) and not match.faults and not match.are_shareable
