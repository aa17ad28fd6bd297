"""What pods ask of each other: ports, near, apart and spread.

Looks at the pods that run and those that are placed, one by one, as kube-scheduler
would in whatever order it binds them; shares nothing with how the models count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct

from contracts.codec import encode
from contracts.ids import NodeName
from contracts.pods.pod_rules import PodRules, PodTerm, Requirements, SpreadTerm
from solver.decision import Decision
from solver.judge.facts import Facts, Violations
from solver.judge.nodes import keeps_away
from solver.judge.pools import selects
from solver.problem.gangs import MemberPart
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart

K = TypeVar("K")
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  # what a host port without an address means
NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"
_NO_RULES = PodRules()


class PodOnNode(Struct, frozen=True, eq=False):
    """A pod on its node, placed or running."""

    subject: str
    namespace: str
    labels: Mapping[str, str]
    unknown: frozenset[str]
    """Keys of labels whose values are unknown."""
    node: NodePart
    rules: PodRules
    count: int = 1
    member: MemberPart | None = None
    """None: it runs already."""
    terminating: bool = False


def pods_agree(facts: Facts, problem: Problem, decision: Decision) -> Violations:
    """No pod is where a rule, its own or another's, would not let it be bound."""
    if not problem.neighbours and all(
        member.pod_rules == _NO_RULES
        for gang in problem.gangs
        for member in gang.members
    ):
        return
    placed = list(_list_placed(facts, problem, decision))
    running = list(_list_running(facts, problem))
    yield from _ports_are_free([*running, *placed])
    yield from _pods_are_apart([*running, *placed])
    yield from _pods_are_near(running, placed)
    yield from _pods_are_spread(facts, [*running, *placed])


def _list_placed(
    facts: Facts, problem: Problem, decision: Decision
) -> Iterator[PodOnNode]:
    for gang, decided in zip(problem.gangs, decision.gangs, strict=False):
        members = {member.name: member for member in gang.members}
        for pod in decided.members:
            member = members.get(pod.member)
            if member is not None:
                yield PodOnNode(
                    f"{gang.name}/{pod.member}/{pod.index}",
                    gang.namespace,
                    member.labels,
                    frozenset(member.varying_labels),
                    facts.find_node(pod.node),
                    member.pod_rules,
                    member.resources.get("pods", 1),
                    member,
                )


def _list_running(facts: Facts, problem: Problem) -> Iterator[PodOnNode]:
    for neighbour in problem.neighbours:
        pod, node = neighbour.pod, facts.find_node(neighbour.node)
        if node.unavailable != "no Node":
            yield PodOnNode(
                f"a pod that runs on {node.name}",
                pod.namespace,
                pod.labels,
                frozenset(pod.varying),
                node,
                PodRules(ports=pod.ports, apart=pod.apart),
                pod.count,
                None,
                pod.terminating,
            )


def _ports_are_free(pods: list[PodOnNode]) -> Violations:
    """No two pods on a node have one port, on one address or on all."""
    holders: dict[tuple[NodeName, int, str], list[tuple[PodOnNode, str]]] = {}
    for pod in pods:
        for port in pod.rules.ports:
            key = (pod.node.name, port.port, port.protocol)
            holders.setdefault(key, []).append((pod, port.ip))
    for (node, number, protocol), held in holders.items():
        for position, (pod, ip) in enumerate(held):
            for other, address in held[position + 1 :]:
                meets = ip == address or ANY_ADDRESS in (ip, address)
                if other is not pod and meets and (pod.member or other.member):
                    text = f"{protocol} {number} on {node}"
                    yield f"portsFree: {pod.subject} and {other.subject} have {text}"


def _pods_are_apart(pods: list[PodOnNode]) -> Violations:
    """No pod is in a domain that another, or itself, keeps free of such pods."""
    carriers: dict[PodTerm, list[PodOnNode]] = {}
    for pod in pods:
        for term in set(pod.rules.apart):
            carriers.setdefault(term, []).append(pod)
    for term, owners in carriers.items():
        meant = [pod for pod in pods if _term_matches(term, pod) is not False]
        those: dict[str, list[PodOnNode]] = {}
        for pod in meant:
            value = pod.node.labels.get(term.topology_key)
            if value is not None:
                those.setdefault(value, []).append(pod)
        for owner in owners:
            value = owner.node.labels.get(term.topology_key)
            here = those.get(value, []) if value is not None else []
            other = next(
                (
                    pod
                    for pod in here
                    if (pod is not owner or pod.count > 1)
                    and (pod.member or owner.member)
                ),
                None,
            )
            if other is not None:
                where = f"{term.topology_key}={value}"
                yield f"podsApart: {owner.subject} and {other.subject} are in {where}"


def _pods_are_near(running: list[PodOnNode], placed: list[PodOnNode]) -> Violations:
    """Each pod finds one that all its terms mean, in whatever order they are bound.

    A running pod will do, and a placed one that does not itself depend on the pod.
    Where none runs, the first of a series is let in: then all must be together.
    """
    sorts = [(_kind_of(pod), pod) for pod in placed]
    kinds = dict(reversed(sorts))
    needing = {
        key: [
            other for other, pod in kinds.items() if _terms_match(own.rules.near, pod)
        ]
        for key, own in kinds.items()
        if own.rules.near
    }
    for key, needed in needing.items():
        terms = kinds[key].rules.near
        sure = {other for other in needed if key not in _list_needed(other, needing)}
        may_run = [pod for pod in running if _terms_match(terms, pod) is not False]
        exists = any(
            term.topology_key in pod.node.labels for pod in may_run for term in terms
        )
        others = [pod for sort, pod in sorts if sort in needed]
        relied_on = [
            *(pod for pod in may_run if _terms_match(terms, pod)),
            *(pod for sort, pod in sorts if sort in sure),
        ]
        first_is_let_in = key in needed and not exists
        for term in terms:
            label = term.topology_key
            near = {pod.node.labels.get(label) for pod in relied_on}
            all_of_them = {pod.node.labels.get(label) for pod in others}
            for pod in (pod for sort, pod in sorts if sort == key):
                value = pod.node.labels.get(label)
                together = first_is_let_in and all_of_them == {value}
                if value is None or not (value in near or together):
                    yield f"podsNear: {pod.subject} is alone in {label}={value}"


def _kind_of(pod: PodOnNode) -> bytes:
    """Return a key of what a pod is to others' rules, and of its own rules."""
    return encode([pod.namespace, dict(pod.labels), sorted(pod.unknown), pod.rules])


def _list_needed(first: K, needing: Mapping[K, list[K]]) -> set[K]:
    """List what one needs, directly or in turn."""
    seen: set[K] = set()
    left = [first]
    while left:
        item = left.pop()
        if item not in seen:
            seen.add(item)
            left.extend(needing.get(item, ()))
    return seen


def _pods_are_spread(facts: Facts, pods: list[PodOnNode]) -> Violations:
    """Where a pod is, there are at most maxSkew more than where there are fewest."""
    done: dict[bytes, tuple[Counter[str], Counter[NodeName], int]] = {}
    for pod in pods:
        member = pod.member
        for term in pod.rules.spread if member is not None else ():
            key = encode([term, _kind_of(pod), _asked_of_nodes(pod)])
            if key not in done:
                done[key] = _count_pods(facts, pods, pod, term)
            by_domain, by_node, least = done[key]
            value = pod.node.labels.get(term.topology_key)
            if value is None or by_domain[value] - least > term.max_skew:
                where = f"{term.topology_key}={value}"
                yield f"podsSpread: {pod.subject} is one too many in {where}"
            # Pinned to a node it is compared with that node alone.
            is_few = term.honors_affinity and term.min_domains > 1
            if is_few and by_node[pod.node.name] > term.max_skew:
                yield f"podsSpread: {pod.subject} is one too many on {pod.node.name}"


def _asked_of_nodes(pod: PodOnNode) -> list[object]:
    member = pod.member
    if member is None:
        return []
    return [member.node_selector, member.affinity, member.tolerations]


def _count_pods(
    facts: Facts, pods: list[PodOnNode], own: PodOnNode, term: SpreadTerm
) -> tuple[Counter[str], Counter[NodeName], int]:
    """Count pods by domain and by node; and what the emptiest domain has."""
    names = {node.name for node in facts.all_nodes() if _node_counts(node, own, term)}
    by_domain = Counter[str](
        {facts.find_node(n).labels[term.topology_key]: 0 for n in names}
    )
    by_node = Counter[NodeName]()
    for pod in pods:
        if pod.namespace != own.namespace or pod.terminating:
            continue
        is_meant = _labels_match(term.selector, pod.labels, pod.unknown)
        if pod.node.name in names and is_meant is not False:
            by_domain[pod.node.labels[term.topology_key]] += pod.count
            by_node[pod.node.name] += pod.count
    is_short = len(by_domain) < term.min_domains
    least = 0 if is_short else min(by_domain.values(), default=0)
    return by_domain, by_node, least


def _node_counts(node: NodePart, own: PodOnNode, term: SpreadTerm) -> bool:
    """True if the pods of a node count for a pod's rule."""
    member = own.member
    if node.unavailable == "no Node" or member is None:
        return False
    if any(each.topology_key not in node.labels for each in own.rules.spread):
        return False
    if term.honors_affinity:
        asked = member.node_selector.items()
        if any(node.labels.get(key) != value for key, value in asked):
            return False
        if member.affinity is not None and not selects(member.affinity, node):
            return False
    return not (term.honors_taints and any(keeps_away(node, member)))


def _terms_match(terms: Iterable[PodTerm], pod: PodOnNode) -> bool | None:
    """True if all terms match a pod; None: unknown."""
    answers = [_term_matches(term, pod) for term in terms]
    return False if False in answers else None if None in answers else True


def _term_matches(term: PodTerm, pod: PodOnNode) -> bool | None:
    """True if a term matches a pod; None: unknown."""
    inside: bool | None = pod.namespace in term.namespaces
    if not inside and term.namespace_selector is not None:
        known = {NAME_OF_NAMESPACE: pod.namespace}
        keys = {said.key for said in term.namespace_selector}
        inside = _labels_match(term.namespace_selector, known, keys - known.keys())
    chosen = _labels_match(term.selector, pod.labels, pod.unknown)
    if inside is False or chosen is False:
        return False
    return None if inside is None or chosen is None else True


def _labels_match(
    selector: Requirements | None, labels: Mapping[str, str], unknown: Iterable[str]
) -> bool | None:
    if selector is None:
        return False
    is_open = False
    for said in selector:
        if said.key in unknown:
            is_open = True
            continue
        value = labels.get(said.key)
        fits = {
            "In": value is not None and value in said.values,
            "NotIn": value is None or value not in said.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not fits[said.operator]:
            return False
    return None if is_open else True
