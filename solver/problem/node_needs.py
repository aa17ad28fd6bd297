"""What a member asks of the node itself, read from the words of pods.

Resources that claims ask for are not among it. What only other pods could decide is
refused by name, and so is what cannot be read.
"""

from __future__ import annotations

from collections.abc import Container

from contracts.device import NodeSelector
from contracts.errors import DecodeError
from contracts.gang import Member
from contracts.ids import NodeName
from contracts.pods.node_affinity import list_required_pods, read_required_nodes
from contracts.pods.node_resources import PODS, count_requested
from solver.devices.node_selectors import node_matches
from solver.errors import NodeSelectorError
from solver.problem.refusals import invalid, not_modelled
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
        RefusedError: it is malformed, or requires something of other pods.
    """
    affinity = member.node.affinity
    try:
        pod_terms = list_required_pods(affinity)
        selector = read_required_nodes(affinity)
        if selector is not None:
            node_matches(selector, _ANY)
    except DecodeError as error:
        field = f"{FIELD}.affinity.{error.field.removeprefix('$')}".rstrip(".")
        raise invalid(member.name, field, error.reason) from error
    except NodeSelectorError as error:
        field = f"{FIELD}.affinity.nodeAffinity"
        raise invalid(member.name, field, str(error)) from error
    if pod_terms:
        raise not_modelled(member.name, f"{FIELD}.affinity.{pod_terms[0]}")
    return selector
