"""Where a node is, as the rules between pods on several nodes see it."""

from __future__ import annotations

from solver.devices.node_selectors import node_matches
from solver.kinds.node_fit import NodeFit, is_tolerated
from solver.kinds.shapes import DomainPlace
from solver.problem.pod_rules import DomainRule
from solver.snapshot.parts import NodePart


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
    """Whether pods on a node count: it has what the rule asks of nodes."""
    labels = node.labels
    if any(key not in labels for key in rule.keys):
        return False
    if any(labels.get(key) != value for key, value in rule.node_selector):
        return False
    if rule.affinity is not None and not node_matches(rule.affinity, node):
        return False
    tolerations = rule.tolerations
    return tolerations is None or is_tolerated(NodeFit(tolerations=tolerations), node)
