"""What topology spread comes to for the members of a batch.

A pod whose gate opens is pinned to its node. So kube-scheduler, which counts only nodes
that a pod's node affinity admits (`nodeAffinityPolicy: Honor`), looks at that node
alone. Here pods are spread as they were written, before the pin; and where the pin
leaves fewer domains than `minDomains`, no node gets more pods than kube-scheduler will
then admit.

Source: kube-scheduler's PodTopologySpread.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.allocation import Rule
from contracts.ids import Namespace, NodeName
from contracts.pods.pod_rules import SpreadTerm, selects
from solver.kinds.affinity.crowds import Crowd, Resolution, describe
from solver.kinds.affinity.surroundings import Surroundings, is_counted
from solver.problem.affinity.rules import (
    CARRIER,
    MEANT,
    SPREAD,
    CountedRule,
    DomainRule,
    NodeSet,
)

FIELD = "topologySpreadConstraints"


def resolve_spread(resolution: Resolution) -> None:
    """Resolve each rule of spread, once for all crowds with the same rule."""
    groups: dict[DomainRule, tuple[SpreadTerm, list[Crowd]]] = {}
    for crowd in resolution.crowds:
        for term in dict.fromkeys(crowd.rules.spread):
            key = term.topology_key
            why = f"it lacks {key}"
            labelled = NodeSet(key, frozenset(), False, True, Rule.POD_SPREAD, why)
            resolution.restrict(crowd, labelled)
            rule = _rule_of(crowd, term, by_node=resolution.around.is_by_node(key))
            groups.setdefault(rule, (term, []))[1].append(crowd)
    for rule, (term, carriers) in groups.items():
        _resolve_group(resolution, rule, term, carriers)


def _rule_of(crowd: Crowd, term: SpreadTerm, *, by_node: bool) -> DomainRule:
    """Make the rule: what it is about and which nodes count; nothing is counted yet."""
    honors = term.honors_affinity
    return DomainRule(
        kind=SPREAD,
        about=f"{describe(term)} in {crowd.namespace}, minDomains {term.min_domains}",
        key=term.topology_key,
        by_node=by_node,
        max_skew=term.max_skew,
        keys=tuple(sorted({each.topology_key for each in crowd.rules.spread})),
        node_selector=crowd.node_selector if honors else (),
        affinity=crowd.affinity if honors else None,
        tolerations=crowd.tolerations if term.honors_taints else None,
    )


def _resolve_group(
    resolution: Resolution, rule: DomainRule, term: SpreadTerm, carriers: list[Crowd]
) -> None:
    namespace = carriers[0].namespace
    counts = _count_running(resolution.around, rule, (namespace, term))
    meant = [
        c for c in resolution.crowds if c.is_counted_by(namespace, term) is not False
    ]
    refusal = _find_refusal(term, carriers, meant)
    if counts is None or refusal:
        message = refusal or "selects by a label in which pods differ"
        for crowd in carriers:
            resolution.refuse(crowd, FIELD, message)
        return
    domains = _by_domain(resolution.around, rule, counts)
    pods = sum(crowd.pods for crowd in meant)
    _limit_domains(resolution, rule, (term, domains, pods), (carriers, meant))
    # The pin leaves one domain, so kube-scheduler counts from nothing.
    if term.min_domains > 1 and term.honors_affinity:
        pinned = DomainRule(
            kind=SPREAD,
            about=f"{rule.about}, on one node",
            key="",
            by_node=True,
            max_skew=term.max_skew,
            keys=rule.keys,
            node_selector=rule.node_selector,
            affinity=rule.affinity,
            tolerations=rule.tolerations,
            floor=0,
            counts=tuple(sorted(counts.items())),
        )
        _write_rule(resolution, pinned, carriers, meant)


def _count_running(
    around: Surroundings, rule: DomainRule, counted: tuple[Namespace, SpreadTerm]
) -> dict[NodeName, int] | None:
    """Count the running pods on each node that counts; None: unknown."""
    namespace, term = counted
    counts = {node.name: 0 for node in around.nodes.values() if is_counted(rule, node)}
    for node, neighbour in around.running:
        pod = neighbour.pod
        if pod.namespace != namespace or pod.terminating or node.name not in counts:
            continue
        answer = selects(term.selector, pod.labels, pod.varying)
        if answer is None:
            return None
        counts[node.name] += pod.count * answer
    return counts


def _by_domain(
    around: Surroundings, rule: DomainRule, counts: dict[NodeName, int]
) -> dict[str, int]:
    """Add up nodes by domain; a domain is a node where no two have one value."""
    if rule.by_node:
        return {str(name): count for name, count in counts.items()}
    domains: dict[str, int] = {}
    for name, count in counts.items():
        value = around.nodes[name].labels[rule.key]
        domains[value] = domains.get(value, 0) + count
    return domains


def _find_refusal(term: SpreadTerm, carriers: list[Crowd], meant: list[Crowd]) -> str:
    """Return why it cannot be known, or what could wait for ever; empty: all is well.

    Where all nodes count in spite of the pin, pods must be bound in some order. With
    one rule of spread any order comes to its end; several may wait for each other.
    """
    namespace = carriers[0].namespace
    if any(crowd.is_counted_by(namespace, term) is None for crowd in meant):
        return "selects by a label in which pods differ"
    if term.honors_affinity:
        return ""
    alone = all(c.rules.spread == (term,) and not c.rules.near for c in carriers)
    others = [crowd for crowd in meant if crowd not in carriers]
    if alone and not any(_may_wait(crowd) for crowd in others):
        return ""
    return (
        "nodeAffinityPolicy Ignore beside another rule: pods might wait for each other"
    )


def _may_wait(crowd: Crowd) -> bool:
    rules = crowd.rules
    return bool(rules.near) or any(not term.honors_affinity for term in rules.spread)


def _limit_domains(
    resolution: Resolution,
    rule: DomainRule,
    known: tuple[SpreadTerm, dict[str, int], int],
    crowds: tuple[list[Crowd], list[Crowd]],
) -> None:
    """Limit the pods of a domain; `known`: the term, domains, pods meant."""
    term, domains, pods = known
    floor: int | None = None
    least = min(domains.values(), default=0)
    if len(domains) < term.min_domains:
        floor = 0
    elif sum(count == least for count in domains.values()) > pods:
        floor = least  # one domain at least stays as it is
    limit = DomainRule(
        kind=SPREAD,
        about=rule.about,
        key=rule.key,
        by_node=rule.by_node,
        max_skew=rule.max_skew,
        floor=floor,
        counts=tuple(sorted(domains.items())),
        keys=rule.keys,
        node_selector=rule.node_selector,
        affinity=rule.affinity,
        tolerations=rule.tolerations,
    )
    _write_rule(resolution, limit, *crowds)


def _write_rule(
    resolution: Resolution, rule: DomainRule, carriers: list[Crowd], meant: list[Crowd]
) -> None:
    """Write a rule down: as amounts of nodes where those suffice, else as it is."""
    most = rule.max_skew + (rule.floor or 0)
    if not meant and rule.floor is not None and not rule.by_node:
        full = {domain for domain, count in rule.counts if count > most}
        because = (Rule.POD_SPREAD, f"{rule.about}: as many as may be are there")
        for crowd in carriers if full else ():
            resolution.keep_out(crowd, rule.key, full, because)
    elif rule.by_node and rule.floor is not None and (not meant or meant == carriers):
        counted = _count_by_node(rule, carriers, is_meant=bool(meant))
        for crowd in carriers:
            resolution.take(crowd, counted, 1)
    else:
        for crowd in (*carriers, *(c for c in meant if c not in carriers)):
            bits = CARRIER * (crowd in carriers) | MEANT * (crowd in meant)
            resolution.play(crowd, rule, bits)


def _count_by_node(
    rule: DomainRule, carriers: list[Crowd], *, is_meant: bool
) -> CountedRule:
    """Count what each node has for pods that are spread over nodes.

    Pods that the rule does not mean use nothing up: a node takes all, or none of them.
    """
    most = rule.max_skew + (rule.floor or 0)
    capacity = most if is_meant else sum(crowd.pods for crowd in carriers)
    return CountedRule(
        rule=Rule.POD_SPREAD,
        about=rule.about,
        capacity=capacity,
        used=tuple(_list_used(rule, most, capacity, is_meant=is_meant)),
    )


def _list_used(
    rule: DomainRule, most: int, capacity: int, *, is_meant: bool
) -> Iterator[tuple[NodeName, int]]:
    for name, count in rule.counts:
        if is_meant and count:
            yield NodeName(name), count
        elif not is_meant and count > most:
            yield NodeName(name), capacity
