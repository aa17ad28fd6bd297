"""The rules between pods on several nodes, as constraints of the direct model.

A domain is all nodes with one value of a label, or a node alone. Which pods a rule is
of, and about, is known beforehand (`solver/kinds/affinity/resolve.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from contracts.pods.node_resources import PODS
from solver.engines import cp_model
from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Lot, Placements
from solver.problem.affinity.rules import (
    ANCHOR,
    APART,
    CARRIER,
    MEANT,
    NEAR,
    SPREAD,
    DomainRule,
)


class _Domain(Struct, frozen=True):
    """The pods that may be in one domain, by what they are to a rule."""

    name: str
    node: int | None
    """Where it is a node alone."""
    is_open: bool
    count: int
    """Pods that run and count."""
    lots: tuple[tuple[Lot, int], ...]

    def list_lots(self, bits: int, lacking: int = 0) -> list[Lot]:
        """List the pods that are something to the rule, and not something else."""
        return [lot for lot, own in self.lots if own & bits and not own & lacking]


def pods_are_apart(placements: Placements) -> None:
    """A domain with a pod of the rule has no other pod that the rule is about.

    Pods that are both take all of a domain, others a part: most * both + rest <= most.
    Where the rule is of some and about others, a domain is for one sort or the other.
    Source: required podAntiAffinity, in both directions.
    """
    for _, domains in _rules_of(placements, APART):
        for number, domain in domains:
            both = [lot for lot, own in domain.lots if own == CARRIER | MEANT]
            carriers = domain.list_lots(CARRIER, lacking=MEANT)
            meant = domain.list_lots(MEANT, lacking=CARRIER)
            rest = [*carriers, *meant]
            most = max(_most(rest), 1)
            terms = [*_pods(both, most), *_pods(rest)]
            placements.model.add(total(terms) <= most)
            if carriers and meant:
                side = placements.model.new_bool_var(f"side[{number}]")
                placements.model.add(
                    total([*_pods(carriers), (side, -_most(carriers))]) <= 0
                )
                placements.model.add(
                    total([*_pods(meant), (side, _most(meant))]) <= _most(meant)
                )


def pods_are_near(placements: Placements) -> None:
    """A domain with a pod of the rule has one that the rule is about.

    It is open, or it has an anchor, or (where the first pod of a series is let in) all
    pods that the rule is about are in it.
    Source: required podAffinity.
    """
    for rule, domains in _rules_of(placements, NEAR):
        every = [lot for lot, own in _lots_of(placements, rule) if own & MEANT]
        everywhere = _most(every)
        for number, domain in domains:
            carriers = domain.list_lots(CARRIER)
            if domain.is_open or not carriers:
                continue
            used = _mark_used(placements, carriers, f"near[{number}]")
            reasons: list[Term] = _pods(domain.list_lots(ANCHOR), -1)
            if rule.alone_is_enough:
                alone = placements.model.new_bool_var(f"alone[{number}]")
                reasons.append((alone, -1))
                here = set(map(id, domain.list_lots(MEANT)))
                elsewhere = [lot for lot in every if id(lot) not in here]
                placements.model.add(
                    total([*_pods(elsewhere), (alone, everywhere)]) <= everywhere
                )
            placements.model.add(total([(used, 1), *reasons]) <= 0)


def pods_are_spread(placements: Placements) -> None:
    """A domain with a pod of the rule has few more pods than the one that has least.

    count + pods <= maxSkew + least, where least <= count + pods of every domain.
    Source: topologySpreadConstraints with DoNotSchedule.
    """
    for rule, domains in _rules_of(placements, SPREAD):
        least = _make_least(placements, rule, [domain for _, domain in domains])
        for number, domain in domains:
            carriers = domain.list_lots(CARRIER)
            if not carriers:
                continue
            used = _mark_used(placements, carriers, f"spread[{number}]")
            meant = _weigh(placements, domain.list_lots(MEANT))
            slack = domain.count + _heaviest(meant)
            terms = [*_weighed(meant), (used, slack)]
            limit = rule.max_skew + slack - domain.count
            if least is None:
                limit += rule.floor or 0
            else:
                terms.append((least, -1))
            placements.model.add(total(terms) <= limit)


def _make_least(
    placements: Placements, rule: DomainRule, domains: list[_Domain]
) -> cp_model.IntVar | None:
    """Make the number of pods in the domain that has least; None: it is known."""
    if rule.floor is not None:
        return None
    counts = rule.count_by_domain
    weighed = [(d, _weigh(placements, d.list_lots(MEANT))) for d in domains]
    # A domain of which the model sees no node keeps what it has.
    seen = {
        domain.name if domain.node is None else placements.nodes[domain.node].name
        for domain in domains
    }
    most = min((n for name, n in counts.items() if name not in seen), default=None)
    if most is None:
        most = max(d.count + _heaviest(meant) for d, meant in weighed)
    least = placements.model.new_int_var(0, most, f"least[{_number(placements, rule)}]")
    for domain, meant in weighed:
        terms = [(least, 1), *_weighed(meant, -1)]
        placements.model.add(total(terms) <= domain.count)
    return least


def _rules_of(
    placements: Placements, kind: str
) -> Iterator[tuple[DomainRule, list[tuple[str, _Domain]]]]:
    """Go through the rules of a kind, with their domains, each with its own name."""
    for number, rule in enumerate(placements.demand.query.domains):
        if rule.kind == kind:
            domains = _domains_of(placements, rule, number)
            named = [(f"{number},{i}", domain) for i, domain in enumerate(domains)]
            if named:
                yield rule, named


def _domains_of(placements: Placements, rule: DomainRule, number: int) -> list[_Domain]:
    """Sort the nodes of the model into domains; those that do not count are in none."""
    nodes_by_domain: dict[tuple[str, int | None], list[int]] = {}
    for index, view in enumerate(placements.nodes):
        place = view.shape.places[number]
        if place is not None:
            node = index if rule.by_node else None
            nodes_by_domain.setdefault((place.domain, node), []).append(index)
    lots_by_node: dict[int, list[tuple[Lot, int]]] = {}
    for lot, bits in _lots_of(placements, rule):
        lots_by_node.setdefault(lot.node, []).append((lot, bits))
    domains = []
    for (name, node), nodes in nodes_by_domain.items():
        place = placements.nodes[nodes[0]].shape.places[number]
        count = rule.count_by_domain.get(name, 0)
        if node is not None and place is not None:
            count = place.count
        lots = (pair for index in nodes for pair in lots_by_node.get(index, ()))
        is_open = place is not None and place.is_open
        domains.append(_Domain(name, node, is_open, count, tuple(lots)))
    return domains


def _lots_of(placements: Placements, rule: DomainRule) -> list[tuple[Lot, int]]:
    """List the pods that are anything to a rule, on whatever node."""
    number = _number(placements, rule)
    found = []
    for lot in placements.lots:
        bits = placements.member_of(lot).roles[number]
        if bits:
            found.append((lot, bits))
    return found


def _number(placements: Placements, rule: DomainRule) -> int:
    return placements.demand.query.domains.index(rule)


def _mark_used(placements: Placements, lots: list[Lot], name: str) -> cp_model.IntVar:
    """Make a variable that is 1 where any of these pods is placed."""
    used = placements.model.new_bool_var(name)
    placements.model.add(total([*_pods(lots), (used, -_most(lots))]) <= 0)
    return used


def _weigh(placements: Placements, lots: list[Lot]) -> list[tuple[Lot, int]]:
    """Pair lots with the pods that each of their places stands for.

    Pods that share a claim are one place of a member.
    """
    column = placements.demand.query.resources.index(PODS)
    return [(lot, placements.member_of(lot).needs[column]) for lot in lots]


def _weighed(lots: list[tuple[Lot, int]], factor: int = 1) -> list[Term]:
    return [(lot.pods, factor * weight) for lot, weight in lots]


def _heaviest(lots: list[tuple[Lot, int]]) -> int:
    return sum(lot.most * weight for lot, weight in lots)


def _pods(lots: list[Lot], factor: int = 1) -> list[Term]:
    return [(lot.pods, factor) for lot in lots]


def _most(lots: list[Lot]) -> int:
    return sum(lot.most for lot in lots)
