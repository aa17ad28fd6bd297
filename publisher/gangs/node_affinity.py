"""Which nodes pods may run on: as their claims, volumes and pins allow. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.codec import to_builtins
from contracts.device import NodeSelector
from contracts.errors import DecodeError
from contracts.gang import AvoidedNode, MemberNode
from contracts.ids import NodeName
from contracts.pods.node_affinity import NODE_AFFINITY, REQUIRED, read_pinned_node
from contracts.pods.volumes import MissingVolume, find_volume_nodes
from contracts.workload import Pod
from publisher.gangs.view import View, claim_keys

_TERMS = "nodeSelectorTerms"
_LISTS = ("matchExpressions", "matchFields")


def pinned_node_of(pod: Pod) -> NodeName:
    """Return the node that a pod is on or pinned to; empty: none that can be read."""
    try:
        return pod.spec.node_name or read_pinned_node(pod.spec.affinity) or NodeName("")
    except DecodeError:
        return NodeName("")


def bind_node(node: MemberNode, pods: Sequence[Pod], view: View) -> MemberNode | Reason:
    """Narrow what pods ask of a node to where they, their volumes and devices are.

    Returns a Reason if their claims hold devices of different nodes.
    """
    affinity = _narrow_to_volumes(node.affinity, pods, view)
    names = {pod.spec.node_name for pod in pods if pod.spec.node_name}
    for selector in _list_claim_selectors(pods, view):
        name = selector.only_node
        if name:
            names.add(name)
        else:
            affinity = narrow_affinity(affinity, selector)
    if len(names) > 1:
        where = ", ".join(sorted(names))
        return Reason(
            rule=Rule.NODE_SELECTION,
            subject=pods[0].metadata.name,
            field="spec.resourceClaims",
            message=f"its claims are allocated on different nodes: {where}",
        )
    return replace(node, affinity=affinity, node_name=NodeName("".join(names)))


def leave_out(node: MemberNode, nodes: Iterable[AvoidedNode]) -> MemberNode:
    """Keep pods from nodes, unless their claims hold devices of one already.

    A term of `matchFields` has one value (core/v1, validation of node selectors).
    """
    if node.node_name:
        return node
    affinity = node.affinity
    for avoided in nodes:
        affinity = narrow_affinity(affinity, NodeSelector.except_node(avoided.node))
    return replace(node, affinity=affinity)


def narrow_affinity(
    affinity: Mapping[str, Any], selector: NodeSelector
) -> dict[str, Any]:
    """Narrow an affinity to nodes that a selector chooses as well.

    A gated pod's required node affinity may be set, and its terms may ask for more, but
    terms are neither added nor removed (KEP-3838). So the selector goes into each term;
    one of one term keeps their number. Idempotent.
    """
    of_nodes = dict(affinity.get(NODE_AFFINITY) or {})
    required = (of_nodes.get(REQUIRED) or {}).get(_TERMS) or [{}]
    selected = to_builtins(selector)[_TERMS]
    terms = [
        _merge_affinity_terms(term, more) for term in required for more in selected
    ]
    return {**affinity, NODE_AFFINITY: {**of_nodes, REQUIRED: {_TERMS: terms}}}


def _narrow_to_volumes(
    affinity: Mapping[str, Any], pods: Iterable[Pod], view: View
) -> dict[str, Any]:
    """Narrow an affinity to the nodes on which the volumes of pods can be had."""
    narrowed = dict(affinity)
    for pod in pods:
        selectors = find_volume_nodes(pod.metadata, pod.spec, view.volumes)
        if not isinstance(selectors, MissingVolume):
            for selector in selectors:
                narrowed = narrow_affinity(narrowed, selector)
    return narrowed


def _list_claim_selectors(pods: Sequence[Pod], view: View) -> Iterator[NodeSelector]:
    for key in sorted({key for pod in pods for key in claim_keys(pod).values()}):
        claim = view.claim(key)
        held = None if claim is None else claim.allocation
        if held is not None and held.node_selector is not None:
            yield held.node_selector


def _merge_affinity_terms(
    term: Mapping[str, Any], more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the term of a pod's node affinity that asks for what both ask for."""
    both = dict(term)
    for name in _LISTS:
        present = list(term.get(name) or ())
        new = [entry for entry in more.get(name, ()) if entry not in present]
        if present or new:
            both[name] = [*present, *new]
    return both
