"""Rules of gangs that no pods can keep, whatever is free.

By counting only, as constraints of claims are: what passes may still not fit. Gangs
are those that the publisher would submit, of Gang objects and of pods alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from contracts.allocation import Rule
from contracts.counts import counted
from contracts.gang import Gang
from contracts.gang_rules import GangConstraint, GangTopology
from moorings.lint.domains import find_topology_shortfall, rooms_by_value
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.matches import Matches
from solver.devices.gather import NodePools
from solver.kinds.topology import list_paths, names_path
from solver.problem.attributes import Element
from solver.problem.gangs import GangPart, MemberPart, RequestPart, SubrequestPart


class LintGang(Struct, frozen=True, kw_only=True):
    """A gang that would be submitted, as it is written and as it is resolved."""

    gang: Gang
    part: GangPart

    def report(
        self,
        field: str,
        rule: LintRule,
        message: str,
        severity: Severity = Severity.ERROR,
    ) -> Finding:
        """Return a finding about the gang."""
        meta = self.gang.metadata
        return Finding(
            severity=severity,
            kind="Gang",
            namespace=meta.namespace,
            name=meta.name,
            field=field,
            rule=rule,
            message=message,
        )


def check_gang_rules(
    gangs: Iterable[LintGang], matches: Matches, labels: frozenset[str]
) -> Iterator[Finding]:
    """Hold the rules of gangs against the nodes and devices of the input.

    `labels`: all keys of labels of Node objects; none: nobody says what nodes are.
    """
    for ruled in gangs:
        yield from _check_paths(ruled)
        if ruled.part.refused or not matches.total:
            continue
        for number, constraint in enumerate(ruled.gang.spec.constraints):
            name = constraint.match_attribute or constraint.distinct_attribute
            named = list(_list_named(ruled.part, constraint))
            path = f"spec.constraints[{number}]"
            if name:
                yield from _check_attribute(ruled, path, name, named, matches)
        for number, topology in enumerate(ruled.gang.spec.topology):
            path = f"spec.topology[{number}]"
            yield from _check_topology(ruled, path, topology, matches, labels)


def _check_paths(ruled: LintGang) -> Iterator[Finding]:
    """Find paths that name nothing in the claims of templates."""
    for reason in ruled.part.refused:
        if reason.rule is Rule.INVALID and reason.field.startswith("spec.constraints"):
            yield ruled.report(reason.field, LintRule.INVALID, reason.message)


# --- attributes -----------------------------------------------------------------------


def _list_named(part: GangPart, constraint: GangConstraint) -> Iterator[SubrequestPart]:
    """Go through what the paths of a constraint name; none: all that there is."""
    for number in range(len(part.members)):
        for paths, alternative in list_paths(part, number):
            if names_path(constraint, paths):
                yield alternative


def _check_attribute(
    ruled: LintGang,
    path: str,
    name: str,
    named: Sequence[SubrequestPart],
    matches: Matches,
) -> Iterator[Finding]:
    """Find attributes that devices lack which a rule compares."""
    lacking, matching = matches.count_lacking(name, named)
    if lacking:
        lack = counted(matching, "matching device lacks", "matching devices lack")
        message = f"{lacking} of {lack} {name}"
        has_none = lacking == matching
        severity = Severity.ERROR if has_none else Severity.WARNING
        yield ruled.report(path, LintRule.ATTRIBUTE_MISSING, message, severity)


# --- topology -------------------------------------------------------------------------


def _check_topology(
    ruled: LintGang,
    path: str,
    topology: GangTopology,
    matches: Matches,
    labels: frozenset[str],
) -> Iterator[Finding]:
    """Find keys that nothing has, and domains that are too small."""
    is_required = topology.mode == "Required"
    severity = Severity.ERROR if is_required else Severity.WARNING
    if topology.attribute is None and topology.key not in labels:
        if labels:
            message = f"no Node has the label {topology.key}"
            yield ruled.report(f"{path}.key", LintRule.TOPOLOGY_KEY, message, severity)
        return
    rooms = {
        member.name: _count_rooms(member, topology, matches)
        for member in ruled.part.members
    }
    if topology.attribute is not None and not any(rooms.values()):
        message = f"no device that the pods may use has {topology.attribute}"
        yield ruled.report(f"{path}.key", LintRule.TOPOLOGY_KEY, message, severity)
        return
    counts = {member.name: member.least for member in ruled.part.members}
    shortfall = (
        find_topology_shortfall(topology, counts, rooms) if is_required else None
    )
    if shortfall is not None:
        yield ruled.report(path, LintRule.TOPOLOGY, shortfall.message)


def _count_rooms(
    member: MemberPart, topology: GangTopology, matches: Matches
) -> dict[str, int]:
    """Count the pods of a member that each domain has devices for at most."""
    rooms: dict[str, int] = {}
    requests = [request for claim in member.claims for request in claim.requests]
    for node in matches.cluster.nodes.values():
        found = [_list_values(node, request, topology, matches) for request in requests]
        if topology.attribute is not None:
            of_node = {str(value): n for (_, value), n in rooms_by_value(found).items()}
        elif topology.key in node.node.labels:
            pods = (len(devices) // count for count, devices in found)
            of_node = {node.node.labels[topology.key]: min(pods, default=member.count)}
        else:
            of_node = {}
        for domain, pods_of_node in of_node.items():
            rooms[domain] = rooms.get(domain, 0) + pods_of_node
    return rooms


def _list_values(
    node: NodePools, request: RequestPart, topology: GangTopology, matches: Matches
) -> tuple[int, list[frozenset[Element]]]:
    """Return how many devices a pod needs at least, and the values of all that do."""
    devices = [
        matches.read_values(alternative, topology.attribute or "", driver, device)
        for alternative in request.alternatives
        for driver, device in matches.list_devices(node.name, alternative)
    ]
    needed = min(
        max(len(devices) if each.all_devices else each.count, 1)
        for each in request.alternatives
    )
    return needed, devices
