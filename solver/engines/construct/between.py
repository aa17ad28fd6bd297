"""The rules between pods on several nodes, counted while pods come.

What a rule asks of a domain is in `DomainRule`; the direct model and the judge state it
on their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from msgspec import Struct

from contracts.pods.node_resources import PODS
from solver.engines.construct.ledger import Ledger, Table
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeView
from solver.problem.pod_rules import (
    ANCHOR,
    APART,
    CARRIER,
    MEANT,
    NEAR,
    SPREAD,
    DomainRule,
)

BOTH = CARRIER | MEANT
Domain = tuple[int, str, int]
"""(rule, domain, node where it is one alone; else -1)."""
EVERYWHERE = ""


class _Crowd(Struct, frozen=True):
    """The pods of a domain, by what they are to a rule."""

    both: int = 0
    carriers: int = 0
    """That are not meant."""
    meant: int = 0
    """That are no carriers."""
    anchors: int = 0
    weight: int = 0
    """How many pods those that are meant stand for."""

    def plus(self, bits: int, pods: int) -> _Crowd:
        """Add one pod, which stands for so many."""
        return _Crowd(
            self.both + (bits & BOTH == BOTH),
            self.carriers + (bits & BOTH == CARRIER),
            self.meant + (bits & BOTH == MEANT),
            self.anchors + bool(bits & ANCHOR),
            self.weight + pods * bool(bits & MEANT),
        )


NOBODY = _Crowd()


class Between:
    """The rules of one batch over some nodes."""

    def __init__(
        self, demand: Demand, views: Sequence[NodeView], ledger: Ledger
    ) -> None:
        self._rules = demand.query.domains
        self._members = demand.member_kinds
        self._views = views
        self._ledger = ledger
        self._crowds: Table[_Crowd] = {}
        """By domain; of each rule one for all nodes, those that do not count, too."""
        self._stands_for: list[int] = []
        if self._rules:
            column = demand.query.resources.index(PODS)
            self._stands_for = [member.needs[column] for member in self._members]
        self._bases: list[dict[Domain, int]] = []
        """Of each rule, the pods that run and count, by domain with a node here."""
        self._unseen: list[int | None] = []
        """Of each rule, the least of them in domains without one."""
        for number, rule in enumerate(self._rules):
            self._count_running(number, rule)

    def _count_running(self, number: int, rule: DomainRule) -> None:
        bases: dict[Domain, int] = {}
        seen = set[str]()
        if rule.kind == SPREAD and rule.floor is None:
            for node, view in enumerate(self._views):
                domain = self._find_domain(number, node)
                if domain is not None:
                    bases[domain] = self._count_base(number, node)
                    seen.add(view.name if rule.by_node else domain[1])
        counts = rule.count_by_domain.items()
        self._bases.append(bases)
        self._unseen.append(
            min((count for name, count in counts if name not in seen), default=None)
        )

    def _find_domain(self, number: int, node: int) -> Domain | None:
        place = self._views[node].shape.places[number]
        if place is None:
            return None
        return number, place.domain, node if self._rules[number].by_node else -1

    def _count_base(self, number: int, node: int) -> int:
        rule, place = self._rules[number], self._views[node].shape.places[number]
        if place is None:
            return 0
        return place.count if rule.by_node else rule.count_by_domain.get(place.domain, 0)

    def list_near(self, kind: int) -> list[int]:
        """List the rules that have a pod be near to others."""
        roles = self._members[kind].roles
        return [
            number
            for number, rule in enumerate(self._rules)
            if rule.kind == NEAR and roles[number] & CARRIER
        ]

    def list_domains(self, number: int) -> list[Domain]:
        """List the domains of a rule."""
        found = (self._find_domain(number, node) for node in range(len(self._views)))
        return list(dict.fromkeys(domain for domain in found if domain is not None))

    def is_in(self, domain: Domain, node: int) -> bool:
        """Whether a node is in a domain of some rule."""
        return self._find_domain(domain[0], node) == domain

    def add(self, kind: int, node: int, *, strict: bool) -> bool:
        """Count a pod; False: some rule is broken, and that is still to be undone.

        `strict`: pods that must be near to others are so at once, not later.
        """
        for number, bits in enumerate(self._members[kind].roles):
            if not bits:
                continue
            pods, rule = self._stands_for[kind], self._rules[number]
            domain = self._find_domain(number, node)
            for key in ((number, EVERYWHERE, -2), domain):
                if key is not None:
                    crowd = self._crowds.get(key, NOBODY).plus(bits, pods)
                    self._ledger.write(self._crowds, key, crowd)
            if domain is None:
                continue
            if rule.kind == APART and not self._is_apart(domain):
                return False
            if rule.kind == SPREAD and not self._is_spread(domain, node):
                return False
            if rule.kind == NEAR and strict and not self._is_near(domain, node):
                return False
        return True

    def are_near(self, nodes: Sequence[int]) -> bool:
        """Whether all pods that must be near to others are; they are on `nodes`."""
        return all(
            self._is_near(domain, node)
            for number, rule in enumerate(self._rules)
            if rule.kind == NEAR
            for node in nodes
            if (domain := self._find_domain(number, node)) is not None
        )

    def _is_apart(self, domain: Domain) -> bool:
        crowd = self._crowds[domain]
        if crowd.both:
            return crowd.both == 1 and not crowd.carriers and not crowd.meant
        return not (crowd.carriers and crowd.meant)

    def _is_near(self, domain: Domain, node: int) -> bool:
        crowd, rule = self._crowds.get(domain, NOBODY), self._rules[domain[0]]
        if not crowd.carriers and not crowd.both:
            return True
        place = self._views[node].shape.places[domain[0]]
        if crowd.anchors or (place is not None and place.is_open):
            return True
        everybody = self._crowds[domain[0], EVERYWHERE, -2]
        meant = everybody.meant + everybody.both
        return rule.alone_is_enough and meant == crowd.meant + crowd.both

    def _is_spread(self, domain: Domain, node: int) -> bool:
        number = domain[0]
        rule, crowd = self._rules[number], self._crowds[domain]
        if not crowd.carriers and not crowd.both:
            return True
        least = rule.floor if rule.floor is not None else self._find_least(number)
        return self._count_base(number, node) + crowd.weight <= rule.max_skew + least

    def _find_least(self, number: int) -> int:
        return min(self._list_counts(number), default=0)

    def _list_counts(self, number: int) -> Iterator[int]:
        for domain, base in self._bases[number].items():
            key: Hashable = domain
            yield base + self._crowds.get(key, NOBODY).weight
        unseen = self._unseen[number]
        if unseen is not None:
            yield unseen
