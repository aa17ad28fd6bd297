"""What nodes ask of their pods, devices aside, as kube-scheduler checks it.

Names, labels, taints and amounts, read from the parts of the Problem.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from contracts.gang import NodeToleration
from contracts.ids import NodeName
from contracts.workload import NodeTaint
from solver.decision import Decision
from solver.judge.facts import Facts, Violations
from solver.judge.pools import selects
from solver.problem.gangs import MemberPart
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart

CORDON = "node.kubernetes.io/unschedulable"


def judge_node(node: NodePart, pod: MemberPart, subject: str) -> Violations:
    """Judge one pod on its node, other pods aside."""
    if pod.node_name and pod.node_name != node.name:
        yield f"nodePinned: {subject} is on {node.name}"
    for key, value in pod.node_selector.items():
        if node.labels.get(key) != value:
            yield f"nodeSelected: {subject} is on {node.name} without {key}={value}"
    if pod.affinity is not None and not selects(pod.affinity, node):
        yield f"nodeAffinity: {subject} is on {node.name}, not one that it requires"
    for key in keeps_away(node, pod):
        if key:
            yield f"nodeTolerated: {subject} is on {node.name}, tainted {key}"
        else:
            yield f"nodeSchedulable: {subject} is on {node.name}, which is cordoned"
    both = set(pod.extended_resources) & set(node.plugin_resources)
    if both:
        yield f"extendedResource: {node.name} offers {min(both)} itself"
    for feature in pod.features:
        if feature not in node.declared_features:
            yield f"nodeFeatures: {node.name} does not declare {feature}"


def keeps_away(node: NodePart, pod: MemberPart) -> Iterator[str]:
    """Yield the taints that a pod does not tolerate; "": the node is cordoned."""
    for taint in node.taints:
        hard = taint.effect in ("NoSchedule", "NoExecute")
        if hard and not any(_tolerates_taint(each, taint) for each in pod.tolerations):
            yield taint.key
    if node.unschedulable:
        cordon = NodeTaint(key=CORDON, effect="NoSchedule")
        if not any(_tolerates_taint(each, cordon) for each in pod.tolerations):
            yield ""


def _tolerates_taint(toleration: NodeToleration, taint: NodeTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def nodes_suffice(facts: Facts, problem: Problem, decision: Decision) -> Violations:
    """The pods that are placed on a node need no more than it has left."""
    needed = defaultdict[NodeName, Counter[str]](Counter)
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        needs = {
            member.name: {"pods": 1, **member.resources} for member in gang.members
        }
        for pod in decided.members:
            total = needed[pod.node]
            for resource, amount in needs.get(pod.member, {}).items():
                total[resource] += amount
    for name, total in needed.items():
        free = facts.find_node(name).free
        for resource, amount in total.items():
            if free is None or (resource == "pods" and "pods" not in free):
                continue
            if amount > max(free.get(resource, 0), 0):
                yield f"nodeSuffices: {name} has too little {resource} for {amount}"
