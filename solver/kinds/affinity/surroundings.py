"""What rules between pods see around them: nodes, their domains, and who runs there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from contracts.ids import NodeName
from contracts.pods.pod_rules import PodTerm, means
from solver.devices.node_selectors import node_matches
from solver.kinds.node_fit import NodeFit, is_tolerated
from solver.kinds.shapes import DomainPlace
from solver.problem.affinity.rules import DomainRule
from solver.problem.problem import NeighbourPart, Problem
from solver.snapshot.parts import NodePart

NO_NODE = "no Node"
"""Why a node may not be used that kube-scheduler has never heard of."""


class Surroundings:
    """The nodes that kube-scheduler knows, and the pods that run on them."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._by_node: dict[str, bool] = {}

    @cached_property
    def nodes(self) -> dict[NodeName, NodePart]:
        """All nodes that exist for kube-scheduler, usable or not, by name."""
        parts = (part.value for page in self._problem.pages for part in page.parts())
        nodes = {
            part.name: part
            for part in parts
            if isinstance(part, NodePart) and part.unavailable != NO_NODE
        }
        return dict(sorted(nodes.items()))

    @cached_property
    def running(self) -> tuple[tuple[NodePart, NeighbourPart], ...]:
        """The pods that run, each with its node."""
        return tuple(
            (self.nodes[neighbour.node], neighbour)
            for neighbour in self._problem.neighbours
            if neighbour.node in self.nodes
        )

    def is_by_node(self, key: str) -> bool:
        """True if no two nodes share a value of a label: each is a domain alone."""
        if key not in self._by_node:
            values = [n.labels[key] for n in self.nodes.values() if key in n.labels]
            self._by_node[key] = len(values) == len(set(values))
        return self._by_node[key]

    def meant_by(self, term: PodTerm) -> Iterator[tuple[NodePart, NeighbourPart]]:
        """Yield the running pods that a term means, or may mean."""
        for node, neighbour in self.running:
            pod = neighbour.pod
            if means(term, pod.namespace, pod.labels, pod.varying) is not False:
                yield node, neighbour

    def meant_by_all(
        self, terms: tuple[PodTerm, ...]
    ) -> Iterator[tuple[NodePart, bool | None]]:
        """Yield the nodes of running pods that all terms mean; None: may mean."""
        for node, neighbour in self.running:
            pod = neighbour.pod
            answer = all_hold(
                means(term, pod.namespace, pod.labels, pod.varying) for term in terms
            )
            if answer is not False:
                yield node, answer


def all_hold(answers: Iterable[bool | None]) -> bool | None:
    """True if all answers are; None: unknown."""
    listed = list(answers)
    if False in listed:
        return False
    return None if None in listed else True


def place_of(rule: DomainRule, node: NodePart) -> DomainPlace | None:
    """Return the domain of a node; None: pods on it do not count for the rule."""
    if (rule.key and rule.key not in node.labels) or not is_counted(rule, node):
        return None
    domain = node.name if rule.by_node else node.labels[rule.key]
    return DomainPlace(
        domain="" if rule.by_node else domain,
        is_open=domain in rule.open,
        count=rule.count_by_domain.get(domain, 0) if rule.by_node else 0,
    )


def is_counted(rule: DomainRule, node: NodePart) -> bool:
    """True if pods on a node count: it has what the rule asks of nodes."""
    labels = node.labels
    if any(key not in labels for key in rule.keys):
        return False
    if any(labels.get(key) != value for key, value in rule.node_selector):
        return False
    if rule.affinity is not None and not node_matches(rule.affinity, node):
        return False
    tolerations = rule.tolerations
    return tolerations is None or is_tolerated(NodeFit(tolerations=tolerations), node)
