"""The running pods that matter to a batch: those its rules mean, or that keep it away.

They are recorded with the Problem, each with the labels alone that some rule of the
batch reads, so that a batch without rules is recorded as if no pods ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from contracts.codec import encode
from contracts.ids import Namespace, NodeName
from contracts.pod_terms import HostPort
from contracts.pods.pod_rules import (
    PodTerm,
    SpreadTerm,
    clash,
    list_mentioned_labels,
    means,
    selects,
)
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import NeighbourPart
from solver.snapshot.inventory import Inventory
from solver.snapshot.node_state import list_running
from solver.snapshot.running import RunningPod

Placed = tuple[Namespace, MemberPart]


class _Asked(Struct, frozen=True):
    """What the members of a batch ask of other pods, and their own labels."""

    terms: tuple[PodTerm, ...]
    spreads: tuple[tuple[Namespace, SpreadTerm], ...]
    ports: tuple[HostPort, ...]
    mentioned: frozenset[str]
    pods: tuple[Placed, ...]
    """Members, those with equal labels once."""


def find_neighbours(
    inventory: Inventory, gangs: Iterable[GangPart]
) -> tuple[NeighbourPart, ...]:
    """Find the pods that run and matter to these gangs, node by node."""
    asked = _collect_asked(gangs)
    asks = bool(asked.terms or asked.spreads or asked.ports)
    nodes: Iterable[NodeName] = inventory.node_uses if asks else inventory.repelling
    return tuple(
        neighbour
        for node in sorted(nodes)
        for neighbour in _find_on(
            node, list_running((inventory.node_uses.get(node) or {}).values()), asked
        )
    )


def _collect_asked(gangs: Iterable[GangPart]) -> _Asked:
    placed = [
        (gang.namespace, member)
        for gang in gangs
        if not gang.refused
        for member in gang.members
    ]
    rules = [(namespace, member.pod_rules) for namespace, member in placed]
    alike = {
        encode([namespace, member.labels, member.varying_labels]): (namespace, member)
        for namespace, member in placed
    }
    return _Asked(
        terms=tuple(dict.fromkeys(t for _, r in rules for t in (*r.near, *r.apart))),
        spreads=tuple(dict.fromkeys((n, t) for n, r in rules for t in r.spread)),
        ports=tuple(dict.fromkeys(port for _, r in rules for port in r.ports)),
        mentioned=frozenset().union(*(list_mentioned_labels(r) for _, r in rules)),
        pods=tuple(alike.values()),
    )


def _find_on(
    node: NodeName, running: Iterable[RunningPod], asked: _Asked
) -> Iterator[NeighbourPart]:
    counts: dict[bytes, RunningPod] = {}
    for pod in running:
        kept = _keep_relevant(pod, asked)
        if kept is not None:
            key = encode(structs.replace(kept, count=1))
            before = counts.get(key)
            count = kept.count + (0 if before is None else before.count)
            counts[key] = structs.replace(kept, count=count)
    for key in sorted(counts):
        yield NeighbourPart(node=node, pod=counts[key])


def _keep_relevant(pod: RunningPod, asked: _Asked) -> RunningPod | None:
    """Strip a running pod to what matters to the batch; None: nothing does."""
    is_meant = any(
        means(term, pod.namespace, pod.labels, pod.varying) is not False
        for term in asked.terms
    ) or any(
        namespace == pod.namespace
        and selects(term.selector, pod.labels, pod.varying) is not False
        for namespace, term in asked.spreads
    )
    ports = tuple(p for p in pod.ports if any(clash(p, port) for port in asked.ports))
    apart = tuple(
        term
        for term in pod.apart
        if any(
            means(term, namespace, member.labels, member.varying_labels) is not False
            for namespace, member in asked.pods
        )
    )
    if not (is_meant or ports or apart):
        return None
    # Of every pod: without its labels, `DoesNotExist` and `NotIn` would mean it.
    return structs.replace(
        pod,
        labels={k: pod.labels[k] for k in sorted(asked.mentioned & pod.labels.keys())},
        varying=tuple(key for key in pod.varying if key in asked.mentioned),
        ports=ports,
        apart=apart,
    )
