"""Constraints and topology of gangs: what they may name, and the numbers in them.

Requests and subrequests are checked where the claim is written out; what a template
has is known to the solver alone, which checks it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.errors import DecodeError
from contracts.gang import Member
from contracts.gang_rules import (
    EVEN,
    MAX_CONSTRAINTS,
    MAX_MEMBERS,
    MAX_PATHS,
    MAX_TOPOLOGY,
    DevicePath,
    GangConstraint,
    GangTopology,
)
from contracts.validate import names
from contracts.validate.claims import check_attributes
from contracts.validate.requests import check_reference, list_request_names
from contracts.validate.violation import (
    Violations,
    check_each,
    check_each_unique,
    check_one_of,
    invalid,
)

SCOPES = ("Gang", "Member", "Pod")
MODES = ("Required", "Preferred")


def check_constraints(
    constraints: tuple[GangConstraint, ...], members: Iterable[Member], path: str
) -> Violations:
    """Require one attribute each, and paths that name something in the gang."""
    by_name = {member.name: member for member in members}
    yield from check_each(
        constraints,
        MAX_CONSTRAINTS,
        path,
        lambda constraint, place: _check_constraint(constraint, by_name, place),
    )


def check_topology(
    topology: tuple[GangTopology, ...], members: Iterable[Member], path: str
) -> Violations:
    """Require keys that nodes or devices may have, and members that exist."""
    by_name = {member.name: member for member in members}
    yield from check_each(
        topology,
        MAX_TOPOLOGY,
        path,
        lambda rule, place: _check_rule(rule, by_name, place),
    )


def _check_constraint(
    value: GangConstraint, members: dict[str, Member], path: str
) -> Violations:
    yield from check_attributes(value.match_attribute, value.distinct_attribute, path)
    yield from check_one_of(f"{path}.scope", value.scope, SCOPES)
    yield from check_each_unique(
        value.requests,
        MAX_PATHS,
        f"{path}.requests",
        lambda entry, place: _check_path(entry, members, place),
        str,
    )


def _check_path(entry: str, members: dict[str, Member], path: str) -> Violations:
    try:
        named = DevicePath.parse(entry)
    except DecodeError as error:
        yield invalid(path, entry, error.reason)
        return
    member = members.get(named.member)
    if member is None:
        yield invalid(path, entry, f"there is no member {named.member}")
        return
    if not named.claim:
        return
    claim = next((claim for claim in member.claims if claim.name == named.claim), None)
    if claim is None:
        message = f"member {named.member} has no claim {named.claim}"
        yield invalid(path, entry, message)
    elif claim.spec is not None and named.request:
        request = "/".join(filter(None, (named.request, named.subrequest)))
        request_names = list_request_names(claim.spec.devices.requests)
        if any(check_reference(request, request_names, path)):
            message = f"claim {named.claim} has no request {request}"
            yield invalid(path, entry, message)


def _check_rule(
    value: GangTopology, members: dict[str, Member], path: str
) -> Violations:
    if value.attribute is None:
        yield from names.check_label_key(value.key, f"{path}.key")
    else:
        yield from names.check_fully_qualified_name(value.attribute, f"{path}.key")
    yield from check_one_of(f"{path}.mode", value.mode, MODES)
    yield from check_each_unique(
        value.members,
        MAX_MEMBERS,
        f"{path}.members",
        lambda name, place: _check_member_name(name, members, place),
        str,
    )
    for field, number in (
        ("groupSize", value.size),
        ("maxPerDomain", value.max_per_domain),
    ):
        if number is not None and number < 1:
            yield invalid(f"{path}.{field}", number, "must be greater than zero")
    if value.is_even:
        yield from _check_even(value, members.values(), f"{path}.groupSize")


def _check_even(
    value: GangTopology, members: Iterable[Member], path: str
) -> Violations:
    """Require that how many pods are divided is known."""
    if value.mode != "Required":
        yield invalid(path, EVEN, "needs the mode Required")
    for member in members:
        least = member.count if member.min_count is None else member.min_count
        if value.is_about(member.name) and least < member.count:
            message = f"member {member.name} may have fewer pods (minCount)"
            yield invalid(path, EVEN, message)


def _check_member_name(name: str, members: dict[str, Member], path: str) -> Violations:
    if name not in members:
        yield invalid(path, name, f"there is no member {name}")
