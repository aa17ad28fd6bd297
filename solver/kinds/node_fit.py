"""What kube-scheduler asks before it lets a pod onto a node, devices aside.

What a pod asks of its node in kind (name, labels, taints, what the node must not offer
itself) is a `NodeFit`: a node has it or not. What it asks in amounts is counted: of
each resource the pods on a node need no more than is left there.

Source: kube-scheduler's filters NodeName, NodeUnschedulable, TaintToleration,
NodeAffinity, NodeResourcesFit, NodeDeclaredFeatures.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from msgspec import Struct

from contracts.device import NodeSelector
from contracts.gang import NodeToleration
from contracts.ids import NodeName
from contracts.pods.node_resources import PODS
from contracts.workload import NodeTaint
from solver.devices.candidates import tolerates_taint
from solver.devices.node_selectors import node_matches
from solver.problem.affinity.rules import CountedRule, NodeSet
from solver.problem.gangs import MemberPart
from solver.snapshot.parts import NodePart

UNSCHEDULABLE = NodeTaint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node is taken to have."""


class NodeFit(Struct, frozen=True):
    """What a pod asks of its node in kind."""

    node_name: NodeName = NodeName("")
    """The only node that will do; empty: any."""
    node_selector: tuple[tuple[str, str], ...] = ()
    """Labels that the node must have; sorted."""
    affinity: NodeSelector | None = None
    tolerations: tuple[NodeToleration, ...] = ()
    extended_resources: tuple[str, ...] = ()
    """What the node must not offer itself, as claims ask for it; sorted."""
    features: tuple[str, ...] = ()
    """What the node's kubelet declares; sorted."""
    node_sets: tuple[NodeSet, ...] = ()
    """All of which the node is in: what pods that run leave to it."""


class Load(Struct, frozen=True):
    """What one pod of some kind takes of a node in amounts."""

    devices: int
    """Devices that it has for itself, at least."""
    needs: tuple[int, ...]
    """By `Query.resources`, then `Query.counted`."""


class Step(Struct, frozen=True):
    """Which amounts of a resource a batch can tell apart."""

    size: int
    """Whatever pods need together is a multiple of it."""
    most: tuple[int, int] | None = None
    """(amount, devices): no pod needs more for each of its devices than that. None:
    some pod needs the resource but no devices."""


def fit_of(member: MemberPart) -> NodeFit:
    """Return what a member asks of its nodes in kind."""
    return NodeFit(
        node_name=member.node_name,
        node_selector=tuple(sorted(member.node_selector.items())),
        affinity=member.affinity,
        tolerations=member.tolerations,
        extended_resources=member.extended_resources,
        features=member.features,
        node_sets=member.resolved.node_sets,
    )


def need_of(member: MemberPart, resource: str) -> int:
    """Return how much a pod needs of a resource."""
    return member.resources.get(resource, int(resource == PODS))


def needs_of(
    member: MemberPart, resources: Iterable[str], counted: Iterable[CountedRule]
) -> tuple[int, ...]:
    """Return how much a pod needs of some resources, then of what is counted."""
    taken = {take.rule: take.amount for take in member.resolved.takes}
    return (
        *(need_of(member, name) for name in resources),
        *(taken.get(rule, 0) for rule in counted),
    )


def is_fit(fit: NodeFit, node: NodePart) -> bool:
    """True if a node is one that a pod may be on, amounts aside.

    Raises:
        NodeSelectorError: the affinity is malformed.
    """
    return (
        is_tolerated(fit, node)
        and is_chosen(fit, node)
        and not list_undeclared(fit, node)
        and (not fit.node_sets or all(each.has(node.labels) for each in fit.node_sets))
    )


def is_tolerated(fit: NodeFit, node: NodePart) -> bool:
    """True if the pod tolerates the node's taints, and that it is cordoned."""
    if not (node.taints or node.unschedulable):
        return True
    taints = [*node.taints, *([UNSCHEDULABLE] if node.unschedulable else [])]
    return all(
        any(tolerates_taint(toleration, taint) for toleration in fit.tolerations)
        for taint in taints
    )


def is_chosen(fit: NodeFit, node: NodePart) -> bool:
    """True if the node is one that the pod names, selects and requires.

    Raises:
        NodeSelectorError: the affinity is malformed.
    """
    return (
        fit.node_name in ("", node.name)
        and (
            not fit.node_selector
            or all(node.labels.get(key) == value for key, value in fit.node_selector)
        )
        and (fit.affinity is None or node_matches(fit.affinity, node))
        and (
            not fit.extended_resources
            or set(fit.extended_resources).isdisjoint(node.plugin_resources)
        )
    )


def list_undeclared(fit: NodeFit, node: NodePart) -> list[str]:
    """List the features that the pod needs and the node's kubelet does not declare."""
    return [each for each in fit.features if each not in node.declared_features]


def left_of(node: NodePart, resource: str) -> int | None:
    """Return how much of a resource a node has left; None: as much as anybody asks."""
    if node.free is None or (resource == PODS and PODS not in node.free):
        return None
    return max(node.free.get(resource, 0), 0)


def steps_of(loads: Iterable[Load], resources: int) -> tuple[Step, ...]:
    """Find what a batch can tell apart of each resource."""
    all_loads = list(loads)
    return tuple(
        _step_of([(load.needs[r], load.devices) for load in all_loads if load.needs[r]])
        for r in range(resources)
    )


def _step_of(needs: list[tuple[int, int]]) -> Step:
    size = gcd(*(need for need, _ in needs))
    if not all(devices for _, devices in needs):
        return Step(size)
    need, devices = needs[0]
    for other, of in needs[1:]:
        if other * devices > need * of:
            need, devices = other, of
    return Step(size, (need, devices))


def round_to_step(left: int | None, step: Step, devices: int | None) -> int | None:
    """Round an amount to what answers depend on; None: there is always enough.

    `devices`: how many the node has for pods of their own, None: no limit. Pods with
    so many devices need at most `devices * most` together, and all sums of needs are
    multiples of the step's size; so the amount may be rounded down to one, and dropped
    where it is past the most. Neither changes which pods fit together.
    """
    if left is None:
        return None
    if step.most is not None and devices is not None:
        amount, each = step.most
        if left * each >= devices * amount:
            return None
    return left - left % step.size
