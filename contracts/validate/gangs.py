"""Gangs: rules of our own, in the API server's words.

Says what can never be decided as written; what this version of the solver cannot
decide yet is the solver's to say.
"""

from __future__ import annotations

from typing import Any

from contracts.errors import DecodeError
from contracts.gang import (
    MAX_MEMBERS,
    Gang,
    GangConstraint,
    Member,
    MemberClaim,
    MemberNode,
    TopologyLevel,
)
from contracts.pods.node_affinity import (
    NODE_AFFINITY,
    REQUIRED,
    find_unreadable_numbers,
    list_required_pods,
    read_required_nodes,
)
from contracts.validate import names
from contracts.validate.claims import attributes, claim_spec
from contracts.validate.nodes import node_selector
from contracts.validate.requests import reference, request_names
from contracts.validate.taints import node_toleration
from contracts.validate.violation import (
    Violations,
    each,
    each_unique,
    invalid,
    one_of,
    required,
)

SCOPES = ("Gang", "Pod")
MODES = ("Required", "Preferred")
RECOVERIES = ("Report", "Recreate")
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources of nodes whose names have no domain; huge pages besides."""


def gang(value: Gang) -> Violations:
    """Require a gang that can be decided."""
    spec = value.spec
    yield from names.object_name(value.metadata)
    if value.metadata.name:
        yield from names.label_value(value.metadata.name, "metadata.name")
    if not spec.members:
        yield required("spec.members", "a gang has at least one member")
    yield from each_unique(
        spec.members, None, "spec.members", _member, lambda item: item.name
    )
    pods = sum(member.count for member in spec.members)
    if pods > MAX_MEMBERS:
        yield invalid("spec.members", pods, f"must be at most {MAX_MEMBERS} pods")
    members = {member.name: member for member in spec.members}
    yield from each(
        spec.constraints,
        None,
        "spec.constraints",
        lambda item, path: _constraint(item, members, path),
    )
    yield from each_unique(
        spec.topology, None, "spec.topology", _level, lambda item: item.key
    )
    if spec.weight is not None and spec.weight < 0:
        message = "must be greater than or equal to zero"
        yield invalid("spec.weight", spec.weight, message)
    yield from one_of("spec.recovery", spec.recovery, RECOVERIES)


def _member(value: Member, path: str) -> Violations:
    yield from names.dns_label(value.name, f"{path}.name")
    if value.count < 1:
        yield invalid(f"{path}.count", value.count, "must be greater than zero")
    yield from each_unique(
        value.claims, None, f"{path}.claims", _claim, lambda item: item.name
    )
    yield from _node(value.node, f"{path}.node")


def _claim(value: MemberClaim, path: str) -> Violations:
    yield from names.dns_label(value.name, f"{path}.name")
    rule = "exactly one of `spec`, `templateName` or `claimName` is required"
    fields = {
        "spec": value.spec,
        "templateName": value.template_name,
        "claimName": value.claim_name,
    }
    given = [field for field, item in fields.items() if item is not None]
    if not given:
        yield required(path, rule)
    elif len(given) > 1 and given != ["spec", "claimName"]:
        message = f"{rule}, or `claimName` as the name of `spec`"
        yield invalid(path, ", ".join(given), message)
    if value.spec is not None:
        yield from claim_spec(value.spec, f"{path}.spec")
    if value.template_name is not None:
        yield from names.dns_subdomain(value.template_name, f"{path}.templateName")
    if value.claim_name is not None:
        yield from names.dns_subdomain(value.claim_name, f"{path}.claimName")


def _node(value: MemberNode, path: str) -> Violations:
    for name, amount in value.resources.items():
        yield from names.label_key(name, f"{path}.resources")
        if amount.nano < 0:
            message = "must be greater than or equal to zero"
            yield invalid(f"{path}.resources[{name}]", amount.text, message)
        plain = name in PLAIN_RESOURCES or name.startswith("hugepages-")
        if "/" not in name and not plain:
            message = "must be a standard resource of nodes or have a domain"
            yield invalid(f"{path}.resources", name, message)
    for key, label in value.node_selector.items():
        yield from names.label_key(key, f"{path}.nodeSelector")
        yield from names.label_value(label, f"{path}.nodeSelector[{key}]")
    yield from each(value.tolerations, None, f"{path}.tolerations", node_toleration)
    yield from _affinity(value.affinity, f"{path}.affinity")


def _affinity(value: dict[str, Any], path: str) -> Violations:
    try:
        list_required_pods(value)
        selector = read_required_nodes(value)
    except DecodeError as error:
        field = error.field.removeprefix("$").removeprefix(".")
        yield invalid(f"{path}.{field}".rstrip("."), None, error.reason)
        return
    if selector is not None:
        place = f"{path}.{NODE_AFFINITY}.{REQUIRED}"
        yield from node_selector(selector, place)
        for field in find_unreadable_numbers(selector):
            yield invalid(f"{place}.{field}", None, "is compared as a number")


def _constraint(
    value: GangConstraint, members: dict[str, Member], path: str
) -> Violations:
    yield from attributes(value.match_attribute, value.distinct_attribute, path)
    yield from one_of(f"{path}.scope", value.scope, SCOPES)
    yield from each_unique(
        value.requests,
        None,
        f"{path}.requests",
        lambda entry, place: _reference(entry, members, place),
        str,
    )


def _reference(entry: str, members: dict[str, Member], path: str) -> Violations:
    """Require `member/claim/request`, or `.../subrequest`, that exists.

    Requests are known only where the claim is written out.
    """
    member_name, _, rest = entry.partition("/")
    claim_name, _, request_name = rest.partition("/")
    if not (member_name and claim_name and request_name):
        yield invalid(path, entry, "must be member/claim/request")
        return
    member = members.get(member_name)
    if member is None:
        yield invalid(path, entry, f"there is no member {member_name}")
        return
    claim = next((item for item in member.claims if item.name == claim_name), None)
    if claim is None:
        message = f"member {member_name} has no claim {claim_name}"
        yield invalid(path, entry, message)
    elif claim.spec is not None:
        known = request_names(claim.spec.devices.requests)
        if any(reference(request_name, known, path)):
            message = f"claim {claim_name} has no request {request_name}"
            yield invalid(path, entry, message)


def _level(value: TopologyLevel, path: str) -> Violations:
    yield from names.label_key(value.key, f"{path}.key")
    yield from one_of(f"{path}.mode", value.mode, MODES)
