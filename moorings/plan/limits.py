"""Limits of a plan's cluster: features, namespace labels, Nodes.

What is not in the input limits nothing. Without a Namespace object nobody knows its
labels; without any Node object nobody has said what nodes have, are called or keep
away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.features import FeatureError, Features, features_of, read_gates
from contracts.pods.pod_rules import PodRules
from contracts.workload import Namespace, Node
from moorings.errors import UsageError
from moorings.plan.objects import PlanObject
from solver.problem.gangs import GangPart

ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of a namespace whose claims may have admin access."""
NO_ADMIN_ACCESS = (
    f"Forbidden: admin access to devices requires the `{ADMIN_ACCESS}: true` label on "
    "the containing namespace"
)


def parse_gates(text: str) -> dict[str, bool]:
    """Read `Name=true,Other=false`.

    Raises:
        UsageError: a part is not of that form.
    """
    try:
        return read_gates(filter(str.strip, text.split(",")))
    except FeatureError as error:
        raise UsageError(f"--feature-gates: {error}") from error


def read_features(version: str, gates: Mapping[str, bool]) -> Features:
    """Describe a cluster by its version and the gates that were changed.

    Raises:
        UsageError: an unknown version or gate.
    """
    try:
        return features_of(version, gates)
    except FeatureError as error:
        raise UsageError(str(error)) from error


def _refuse_gang(gang: GangPart, reason: Reason) -> GangPart:
    if gang.refused:
        return gang
    return structs.replace(gang, refused=(reason,), rejected=True)


def drop_node_needs(
    gangs: Iterable[GangPart], objects: Iterable[PlanObject]
) -> tuple[GangPart, ...]:
    """Where there is no Node object, forget what pods ask of nodes and each other.

    So is what gangs ask of labels of nodes.
    """
    if any(isinstance(entry.decoded.value, Node) for entry in objects):
        return tuple(gangs)
    return tuple(_drop_node_needs(gang) for gang in gangs)


def _drop_node_needs(gang: GangPart) -> GangPart:
    members = tuple(
        structs.replace(
            member,
            resources={},
            node_selector={},
            affinity=None,
            tolerations=(),
            features=(),
            labels={},
            varying_labels=(),
            pod_rules=PodRules(),
        )
        for member in gang.members
    )
    topology = tuple(rule for rule in gang.topology if rule.attribute is not None)
    return structs.replace(gang, members=members, topology=topology)


def refuse_admin_access(
    gangs: Iterable[GangPart], objects: Iterable[PlanObject]
) -> tuple[GangPart, ...]:
    """Refuse gangs with admin access whose namespace does not have the label.

    The API server would not admit their claims. Source: KEP-5018.
    """
    closed = list_without_admin_access(objects)
    return tuple(
        _refuse_admin_access(gang) if (gang.namespace or "default") in closed else gang
        for gang in gangs
    )


def list_without_admin_access(objects: Iterable[PlanObject]) -> frozenset[str]:
    """List the namespaces of the input whose claims may have no admin access."""
    values = (entry.decoded.value for entry in objects)
    return frozenset(
        value.metadata.name
        for value in values
        if isinstance(value, Namespace)
        and value.metadata.labels.get(ADMIN_ACCESS) != "true"
    )


def _refuse_admin_access(gang: GangPart) -> GangPart:
    for member in gang.members:
        for claim in member.claims:
            for request in claim.requests:
                if any(option.admin_access for option in request.alternatives):
                    reason = Reason(
                        rule=Rule.INVALID,
                        subject=f"{member.name}/{claim.name}/{request.name}",
                        field="exactly.adminAccess",
                        message=NO_ADMIN_ACCESS,
                    )
                    return _refuse_gang(gang, reason)
    return gang
