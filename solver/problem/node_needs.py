"""What a member asks of the node itself, read from the words of pods.

Resources that claims ask for are not among it. What cannot be read is refused by name.
"""

from __future__ import annotations

from collections.abc import Container

from contracts.device import NodeSelector
from contracts.errors import DecodeError
from contracts.gang import Member
from contracts.ids import NodeName
from contracts.pods.node_affinity import read_required_nodes
from contracts.pods.node_resources import PODS, count_requested
from contracts.pods.pod_rules import (
    PodRules,
    list_unknown_namespaces,
    rules_of_node,
)
from contracts.quantity import NANO
from solver.devices.node_selectors import node_matches
from solver.errors import NodeSelectorError
from solver.problem.gang_refusals import invalid, not_modelled
from solver.snapshot.parts import NodePart

FIELD = "spec.members[].node"
_ANY = NodePart(name=NodeName("any"))


def count_node_resources(member: Member, served: Container[str]) -> dict[str, int]:
    """Count what a pod asks of its node, in the units of `NodePart.free`.

    `served` are the resources that claims ask for. One pod is not worth saying.

    Raises:
        RefusedError: an amount is negative.
    """
    for name, amount in member.node.resources.items():
        if amount.nano < 0:
            field = f"{FIELD}.resources[{name}]"
            raise invalid(member.name, field, f"{amount.text} is negative")
    requested = count_requested(member.node.resources)
    return {
        name: units
        for name, units in requested.items()
        if name not in served and (name, units) != (PODS, 1)
    }


def read_required_affinity(member: Member) -> NodeSelector | None:
    """Read which nodes the affinity requires; None: any.

    Raises:
        RefusedError: it is malformed.
    """
    affinity = member.node.affinity
    try:
        selector = read_required_nodes(affinity)
        if selector is not None:
            node_matches(selector, _ANY)
    except DecodeError as error:
        field = f"{FIELD}.affinity.{error.field.removeprefix('$')}".rstrip(".")
        raise invalid(member.name, field, error.reason) from error
    except NodeSelectorError as error:
        field = f"{FIELD}.affinity.nodeAffinity"
        raise invalid(member.name, field, str(error)) from error
    return selector


def read_rules_between_pods(namespace: str, member: Member) -> PodRules:
    """Read what a member's pods ask of other pods.

    Raises:
        RefusedError: it is malformed, selects namespaces by unknown labels, or
            is of a place of several pods.
    """
    node = member.node
    try:
        unknown = list_unknown_namespaces(node.affinity)
        rules = rules_of_node(namespace, node)
    except DecodeError as error:
        raise invalid(member.name, f"{FIELD}.{error.field}", error.reason) from error
    if unknown:
        field = f"{FIELD}.{unknown[0]}.namespaceSelector"
        raise not_modelled(member.name, field)
    pods = node.resources.get(PODS)
    if rules != PodRules() and pods is not None and pods.nano > NANO:
        raise not_modelled(member.name, f"{FIELD}.resources[{PODS}] beside other rules")
    return rules
