"""Gangs: rules of our own, in the API server's words.

Says what can never be decided as written; what this version of the solver cannot
decide yet is the solver's to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from contracts.durations import parse_duration
from contracts.errors import DecodeError
from contracts.gang import (
    MAX_MEMBERS,
    Gang,
    Member,
    MemberClaim,
    MemberNode,
)
from contracts.pod_terms import MAX_PORT, PROTOCOLS, HostPort
from contracts.pods.node_affinity import (
    NODE_AFFINITY,
    REQUIRED,
    list_required_pods,
    read_required_nodes,
)
from contracts.pods.pod_rules import rules_of_node
from contracts.validate import names
from contracts.validate.claims import check_claim_spec
from contracts.validate.gang_rules import check_constraints, check_topology
from contracts.validate.nodes import check_evaluable
from contracts.validate.taints import check_node_toleration
from contracts.validate.violation import (
    Violations,
    check_each,
    check_each_unique,
    check_one_of,
    invalid,
    required,
    too_many,
)

RECOVERIES = ("Report", "Recreate")
MOST_FAILURES = 32
"""So many reasons may `onDeviceFailure` list."""
FAILURE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""A reason of a device's condition, or the code that its message begins with."""
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources of nodes whose names have no domain; huge pages besides."""
_NOTHING_ASKED = MemberNode()


def check_gang(value: Gang) -> Violations:
    """Require a gang that can be decided."""
    spec = value.spec
    yield from names.check_object_name(value.metadata)
    if value.metadata.name:
        yield from names.check_label_value(value.metadata.name, "metadata.name")
    if not spec.members:
        yield required("spec.members", "a gang has at least one member")
    yield from check_each_unique(
        spec.members, None, "spec.members", _check_member, lambda member: member.name
    )
    pods = sum(member.count for member in spec.members)
    if pods > MAX_MEMBERS:
        yield invalid("spec.members", pods, f"must be at most {MAX_MEMBERS} pods")
    if pods and not spec.least:
        message = "must be greater than zero for at least one member"
        yield invalid("spec.members", 0, f"minCount {message}")
    yield from check_constraints(spec.constraints, spec.members, "spec.constraints")
    yield from check_topology(spec.topology, spec.members, "spec.topology")
    if spec.weight is not None and spec.weight < 0:
        message = "must be greater than or equal to zero"
        yield invalid("spec.weight", spec.weight, message)
    yield from check_one_of("spec.recovery", spec.recovery, RECOVERIES)
    yield from check_failures(spec.on_device_failure, "spec.onDeviceFailure")
    if spec.max_recreations is not None and spec.max_recreations < 0:
        message = "must be greater than or equal to zero"
        yield invalid("spec.maxRecreations", spec.max_recreations, message)
    yield from _check_duration(spec.duration, "spec.duration")


def check_failures(values: Sequence[str], path: str) -> Violations:
    """Require reasons for which devices may fail."""
    if len(values) > MOST_FAILURES:
        yield too_many(path, len(values), MOST_FAILURES)
    for index, value in enumerate(values):
        if not FAILURE.fullmatch(value):
            message = "must be a reason, such as Unhealthy or Xid79"
            yield invalid(f"{path}[{index}]", value, message)


def _check_duration(value: str, path: str) -> Violations:
    if value:
        try:
            parse_duration(value)
        except ValueError as error:
            yield invalid(path, value, str(error))


def _check_member(value: Member, path: str) -> Violations:
    yield from names.check_dns_label(value.name, f"{path}.name")
    if value.count < 1:
        yield invalid(f"{path}.count", value.count, "must be greater than zero")
    if value.min_count is not None and value.min_count < 0:
        message = "must be greater than or equal to zero"
        yield invalid(f"{path}.minCount", value.min_count, message)
    if value.min_count is not None and value.min_count > value.count:
        message = f"must be at most count, which is {value.count}"
        yield invalid(f"{path}.minCount", value.min_count, message)
    yield from check_each_unique(
        value.claims, None, f"{path}.claims", _check_claim, lambda claim: claim.name
    )
    yield from _check_node(value.node, f"{path}.node")


def _check_claim(value: MemberClaim, path: str) -> Violations:
    yield from names.check_dns_label(value.name, f"{path}.name")
    rule = "exactly one of `spec`, `templateName` or `claimName` is required"
    fields = {
        "spec": value.spec,
        "templateName": value.template_name,
        "claimName": value.claim_name,
    }
    set_fields = [field for field, choice in fields.items() if choice is not None]
    if not set_fields:
        yield required(path, rule)
    elif len(set_fields) > 1 and set_fields != ["spec", "claimName"]:
        message = f"{rule}, or `claimName` as the name of `spec`"
        yield invalid(path, ", ".join(set_fields), message)
    if value.spec is not None:
        yield from check_claim_spec(value.spec, f"{path}.spec")
    if value.template_name is not None:
        yield from names.check_dns_subdomain(
            value.template_name, f"{path}.templateName"
        )
    if value.claim_name is not None:
        yield from names.check_dns_subdomain(value.claim_name, f"{path}.claimName")


def _check_node(value: MemberNode, path: str) -> Violations:
    if value == _NOTHING_ASKED:  # as of most: its devices say where a pod may be
        return
    for name, amount in value.resources.items():
        yield from names.check_label_key(name, f"{path}.resources")
        if amount.nano < 0:
            message = "must be greater than or equal to zero"
            yield invalid(f"{path}.resources[{name}]", amount.text, message)
        plain = name in PLAIN_RESOURCES or name.startswith("hugepages-")
        if "/" not in name and not plain:
            message = "must be a standard resource of nodes or have a domain"
            yield invalid(f"{path}.resources", name, message)
    for key, label in value.node_selector.items():
        yield from names.check_label_key(key, f"{path}.nodeSelector")
        yield from names.check_label_value(label, f"{path}.nodeSelector[{key}]")
    yield from check_each(
        value.tolerations, None, f"{path}.tolerations", check_node_toleration
    )
    yield from _check_affinity(value.affinity, f"{path}.affinity")

    yield from _check_pod_rules(value, path)


def _check_host_port(value: HostPort, path: str) -> Violations:
    if not 0 < value.port <= MAX_PORT:
        yield invalid(f"{path}.port", value.port, f"must be from 1 to {MAX_PORT}")
    if value.protocol:
        yield from check_one_of(f"{path}.protocol", value.protocol, PROTOCOLS)


def _check_pod_rules(value: MemberNode, path: str) -> Violations:
    yield from check_each(value.host_ports, None, f"{path}.hostPorts", _check_host_port)
    try:
        rules_of_node("", value)
    except DecodeError as error:
        yield invalid(f"{path}.{error.field}", None, error.reason)


def _check_affinity(value: dict[str, Any], path: str) -> Violations:
    try:
        list_required_pods(value)
        selector = read_required_nodes(value)
    except DecodeError as error:
        field = error.field.removeprefix("$").removeprefix(".")
        yield invalid(f"{path}.{field}".rstrip("."), None, error.reason)
        return
    if selector is not None:
        place = f"{path}.{NODE_AFFINITY}.{REQUIRED}"
        yield from check_evaluable(selector, place)
