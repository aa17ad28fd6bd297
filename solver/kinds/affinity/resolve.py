"""Resolves the rules between pods of a batch into what each member must keep.

Ports, affinity and anti-affinity; topology spread is in `spread.py`. Pods that run
decide which nodes a member may use; what members are to each other on one node is an
amount that each node has; only what reaches over several nodes is left as a rule about
domains. docs/semantics.md has the rules in words.
"""

from __future__ import annotations

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.pod_terms import HostPort
from contracts.pods.pod_rules import EVERY_ADDRESS, PodRules, PodTerm, clash
from solver.kinds.affinity.crowds import Crowd, Resolution, describe
from solver.kinds.affinity.spread import resolve_spread
from solver.problem.affinity.rules import (
    ANCHOR,
    APART,
    CARRIER,
    MEANT,
    NEAR,
    CountedRule,
    DomainRule,
    NodeSet,
)
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart


def resolve_affinity(problem: Problem) -> Problem:
    """Resolve what rules between pods ask of members; refuse what cannot be known."""
    no_rules = PodRules()
    if not problem.neighbours and all(
        member.pod_rules == no_rules
        for gang in problem.gangs
        if not gang.refused
        for member in gang.members
    ):
        return problem
    resolution = Resolution(problem)
    for resolve in (_resolve_ports, _resolve_running, _resolve_apart, _resolve_near):
        resolve(resolution)
    resolve_spread(resolution)
    return problem.with_gangs(_write_down(problem.gangs, resolution))


def _write_down(
    gangs: tuple[GangPart, ...], resolution: Resolution
) -> tuple[GangPart, ...]:
    """Write what was resolved into each member; refuse the gangs of refused crowds."""
    members = [list(gang.members) for gang in gangs]
    refused: dict[int, Reason] = {}
    for crowd, resolved, refusal in resolution.results():
        for gang, index in crowd.places:
            part = members[gang][index]
            members[gang][index] = structs.replace(part, resolved=resolved)
            if refusal is not None:
                subject = structs.replace(refusal, subject=part.name)
                refused.setdefault(gang, subject)
    return tuple(
        structs.replace(gang, refused=(refused[number],), rejected=False)
        if number in refused
        else structs.replace(gang, members=tuple(members[number]))
        for number, gang in enumerate(gangs)
    )


def _resolve_ports(resolution: Resolution) -> None:
    """Resolve host ports: one pod of a node has a port; `0.0.0.0` is every address."""
    asked = sorted(
        {
            (port.port, port.protocol, port.ip)
            for crowd in resolution.crowds
            for port in crowd.rules.ports
        }
    )
    for number, protocol, ip in asked:
        port = HostPort(port=number, protocol=protocol, ip=ip)
        used = {
            neighbour.node
            for neighbour in resolution.problem.neighbours
            if any(clash(port, other) for other in neighbour.pod.ports)
        }
        rule = CountedRule(
            rule=Rule.NODE_PORTS,
            about=f"{protocol} {number} of {ip}",
            capacity=1,
            used=tuple((node, 1) for node in sorted(used)),
        )
        for crowd in resolution.crowds:
            if any(_takes_port(other, port) for other in crowd.rules.ports):
                resolution.take(crowd, rule, 1)


def _takes_port(port: HostPort, counted: HostPort) -> bool:
    """True if a pod with a port takes the one that is counted: every address does."""
    return port == counted or (clash(port, counted) and port.ip == EVERY_ADDRESS)


def _resolve_running(resolution: Resolution) -> None:
    """Resolve required anti-affinity of running pods: their domains are closed."""
    kept: dict[PodTerm, dict[str, str]] = {}
    for node, neighbour in resolution.around.running:
        for term in neighbour.pod.apart:
            value = node.labels.get(term.topology_key)
            if value is not None:
                kept.setdefault(term, {}).setdefault(value, node.name)
    for term, domains in kept.items():
        why = (
            f"a pod on {domains[min(domains)]} must be apart from it: {describe(term)}"
        )
        for crowd in resolution.crowds:
            if crowd.is_meant_by(term) is not False:
                resolution.keep_out(
                    crowd, term.topology_key, domains, (Rule.POD_APART, why)
                )


def _resolve_apart(resolution: Resolution) -> None:
    """Resolve required anti-affinity to running pods, and between pods of the batch."""
    carriers: dict[PodTerm, list[Crowd]] = {}
    for crowd in resolution.crowds:
        for term in dict.fromkeys(crowd.rules.apart):
            carriers.setdefault(term, []).append(crowd)
    for term, crowds in carriers.items():
        key = term.topology_key
        domains = {
            node.labels[key]: node.name
            for node, _ in resolution.around.meant_by(term)
            if key in node.labels
        }
        for crowd in crowds if domains else ():
            why = f"it must be apart from a pod on {domains[min(domains)]}"
            text = f"{why}: {describe(term)}"
            resolution.keep_out(crowd, key, domains, (Rule.POD_APART, text))
        meant = [c for c in resolution.crowds if c.is_meant_by(term) is not False]
        _keep_apart(resolution, term, crowds, meant)


def _keep_apart(
    resolution: Resolution, term: PodTerm, carriers: list[Crowd], meant: list[Crowd]
) -> None:
    """Keep apart the pods of a batch that carry a term, or that it means.

    One that is both takes all that a node has, the others one each. Where some are one
    and some the other, and neither both, no amounts say it.
    """
    both = [crowd for crowd in carriers if crowd in meant]
    only_carriers = [crowd for crowd in carriers if crowd not in meant]
    only_meant = [crowd for crowd in meant if crowd not in carriers]
    rest = [*only_carriers, *only_meant]
    is_two_sided = bool(only_carriers and only_meant)
    pods = sum(crowd.pods for crowd in (*both, *rest))
    if not is_two_sided and (not both or pods < 2):
        return
    about = describe(term)
    key = term.topology_key
    by_node = resolution.around.is_by_node(key)
    if by_node and not is_two_sided:
        most = max(sum(crowd.pods for crowd in rest), 1)
        counted = CountedRule(rule=Rule.POD_APART, about=about, capacity=most, key=key)
        for crowd in both:
            resolution.take(crowd, counted, most)
        for crowd in rest:
            resolution.take(crowd, counted, 1)
        return
    rule = DomainRule(kind=APART, about=about, key=key, by_node=by_node)
    for crowd in (*both, *rest):
        bits = CARRIER * (crowd in carriers) | MEANT * (crowd in meant)
        resolution.play(crowd, rule, bits)


def _resolve_near(resolution: Resolution) -> None:
    """Resolve required affinity to running pods, and between pods of the batch."""
    needed = {
        number: [
            other
            for other, target in enumerate(resolution.crowds)
            if target.is_meant_by_all(crowd.rules.near) is not False
        ]
        for number, crowd in enumerate(resolution.crowds)
        if crowd.rules.near
    }
    for number, targets in needed.items():
        crowd = resolution.crowds[number]
        terms = crowd.rules.near
        running = list(resolution.around.meant_by_all(terms))
        are_sure = [
            resolution.crowds[other].is_meant_by_all(terms) for other in targets
        ]
        if None in are_sure or any(sure is None for _, sure in running):
            field = "affinity.podAffinity"
            resolution.refuse(crowd, field, "selects by a label in which pods differ")
            continue
        anchors = [
            other for other in targets if number not in _list_needed(other, needed)
        ]
        nodes = [node for node, _ in running]
        for term in terms:
            _be_near(resolution, term, (number, targets, anchors), nodes)


def _list_needed(first: int, needed: dict[int, list[int]]) -> set[int]:
    """List the crowds that one needs near, directly or in turn, itself included."""
    found, left = {first}, [first]
    while left:
        for other in needed.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def _be_near(
    resolution: Resolution,
    term: PodTerm,
    crowds: tuple[int, list[int], list[int]],
    running: list[NodePart],
) -> None:
    """Resolve one term of a crowd; `crowds`: its number, its targets, its anchors."""
    number, targets, anchors = crowds
    crowd, key = resolution.crowds[number], term.topology_key
    keys = [other.topology_key for other in crowd.rules.near]
    runs = any(name in node.labels for node in running for name in keys)
    # The first of a series is let in where no pod is that all its terms mean.
    alone_is_enough = number in targets and not runs
    values = {node.labels[key]: node.name for node in running if key in node.labels}
    about = describe(term)
    if not anchors and not alone_is_enough:
        why = f"no pod on a node that lets it in is what it must be near to: {about}"
        resolution.restrict(
            crowd,
            NodeSet(key, frozenset(values), True, True, Rule.POD_NEAR, why),
        )
        return
    resolution.restrict(
        crowd,
        NodeSet(key, frozenset(), False, True, Rule.POD_NEAR, f"it lacks {key}"),
    )
    others = sum(resolution.crowds[other].pods for other in targets)
    if others == 1 and not anchors:
        return
    by_node = resolution.around.is_by_node(key)
    rule = DomainRule(
        kind=NEAR,
        about=f"{about} {anchors}",
        key=key,
        by_node=by_node,
        open=frozenset(values.values() if by_node else values),
        alone_is_enough=alone_is_enough,
    )
    resolution.play(crowd, rule, CARRIER)
    for other in targets:
        bits = MEANT | ANCHOR * (other in anchors)
        resolution.play(resolution.crowds[other], rule, bits)
