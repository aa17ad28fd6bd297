"""The rules between pods on several nodes, counted while pods come.

What a rule asks of a domain is in `DomainRule`; the direct model and the judge state it
on their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from contracts.pods.node_resources import PODS
from solver.engines.construct.undo import Table, UndoLog
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeView
from solver.problem.affinity.rules import (
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
    """Carriers of the rule that it does not select."""
    meant: int = 0
    """Selected pods that do not carry the rule."""
    anchors: int = 0
    weight: int = 0
    """How many pods those that are meant stand for."""

    @property
    def has_carriers(self) -> bool:
        """True if the rule is of any of them."""
        return self.carriers > 0 or self.both > 0

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
        self, demand: Demand, views: Sequence[NodeView], ledger: UndoLog
    ) -> None:
        self._rules = demand.query.domains
        self._members = demand.member_kinds
        self._views = views
        self._ledger = ledger
        self._crowds: Table[_Crowd] = {}
        """By domain; of each rule one for all nodes, those that do not count, too."""
        self._least: Table[int | None] = {}
        """By rule: the pods of the domain that has least, where they were counted."""
        self._stands_for: list[int] = []
        if self._rules:
            column = demand.query.resources.index(PODS)
            self._stands_for = [member.needs[column] for member in self._members]
        self._roles = [
            [(number, bits) for number, bits in enumerate(member.roles) if bits]
            for member in self._members
        ]
        self._domains: list[list[Domain | None]] = [
            [self._find_domain(number, node) for node in range(len(views))]
            for number in range(len(self._rules))
        ]
        """By rule, of each node."""
        self._bases: list[dict[Domain, int]] = []
        """For each rule, the pods that run and count, by domain with a node here."""
        self._unseen: list[int | None] = []
        """For each rule, the least of them in domains without one."""
        for number, rule in enumerate(self._rules):
            self._count_running(number, rule)

    def _count_running(self, number: int, rule: DomainRule) -> None:
        bases: dict[Domain, int] = {}
        seen = set[str]()
        if rule.kind == SPREAD and rule.floor is None:
            for node, view in enumerate(self._views):
                domain = self._domains[number][node]
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
        return (
            place.count if rule.by_node else rule.count_by_domain.get(place.domain, 0)
        )

    def list_near(self, kind: int) -> list[int]:
        """List the rules that have a pod be near to others."""
        roles = self._members[kind].roles
        return [
            number
            for number, rule in enumerate(self._rules)
            if rule.kind == NEAR and roles[number] & CARRIER
        ]

    def needs_others(self, kind: int) -> bool:
        """True if more pods may mend what a pod breaks."""
        return any(self._rules[number].kind != APART for number, _ in self._roles[kind])

    def list_domains(self, number: int) -> list[Domain]:
        """List the domains of a rule."""
        found = dict.fromkeys(self._domains[number])
        return [domain for domain in found if domain is not None]

    def is_in(self, domain: Domain, node: int) -> bool:
        """True if a node is in a domain of some rule."""
        return self._domains[domain[0]][node] == domain

    def admits(self, kind: int, node: int, *, strict: bool) -> bool:
        """True if a pod may join those on and around a node.

        `strict`: what only some further pods could bring about must be so at once.
        """
        for number, bits in self._roles[kind]:
            domain = self._domains[number][node]
            if domain is None:
                continue
            rule, crowd = self._rules[number], self._crowds.get(domain, NOBODY)
            after = crowd.plus(bits, self._stands_for[kind])
            if rule.kind == APART:
                if not _is_apart(after):
                    return False
            elif not strict:
                continue
            elif rule.kind == SPREAD:
                if after.has_carriers and not self._is_spread(domain, node, after):
                    return False
            elif bits & CARRIER and not self._is_near(domain, node, after, bits):
                return False
        return True

    def add(self, kind: int, node: int) -> None:
        """Count a pod."""
        pods = self._stands_for[kind] if self._roles[kind] else 0
        for number, bits in self._roles[kind]:
            everywhere: Domain = (number, EVERYWHERE, -2)
            self._ledger.write(self._least, number, None)
            for key in (everywhere, self._domains[number][node]):
                if key is not None:
                    crowd = self._crowds.get(key, NOBODY).plus(bits, pods)
                    self._ledger.write(self._crowds, key, crowd)

    def hold(self, nodes: Sequence[int]) -> bool:
        """True if all rules hold that the next pods could have broken or mended.

        `nodes`: those that have pods.
        """
        for number, rule in enumerate(self._rules):
            if rule.kind == APART:
                continue
            seen: set[Domain] = set()
            for node in nodes:
                domain = self._domains[number][node]
                if domain is None or domain in seen:
                    continue
                seen.add(domain)
                crowd = self._crowds.get(domain, NOBODY)
                if not crowd.has_carriers:
                    continue
                if rule.kind == SPREAD:
                    holds = self._is_spread(domain, node, crowd)
                else:
                    holds = self._is_near(domain, node, crowd)
                if not holds:
                    return False
        return True

    def _is_near(
        self, domain: Domain, node: int, crowd: _Crowd, added: int = 0
    ) -> bool:
        """True if what pods must be near to is there; `added`: what one more is."""
        place = self._views[node].shape.places[domain[0]]
        if crowd.anchors or (place is not None and place.is_open):
            return True
        if not self._rules[domain[0]].alone_is_enough:
            return False
        everywhere: Domain = (domain[0], EVERYWHERE, -2)
        everybody = self._crowds.get(everywhere, NOBODY).plus(added, 0)
        return everybody.meant + everybody.both == crowd.meant + crowd.both

    def _is_spread(self, domain: Domain, node: int, crowd: _Crowd) -> bool:
        number = domain[0]
        rule, least = self._rules[number], self._rules[number].floor
        if least is None:
            least = self._find_least(number)
        count = self._count_base(number, node) + crowd.weight
        return count <= rule.max_skew + least

    def _find_least(self, number: int) -> int:
        """Count the pods of the domain that has least; a new pod may only raise it."""
        least = self._least.get(number)
        if least is None:
            least = min(self._list_counts(number), default=0)
            self._least[number] = least
        return least

    def _list_counts(self, number: int) -> Iterator[int]:
        for domain, base in self._bases[number].items():
            yield base + self._crowds.get(domain, NOBODY).weight
        unseen = self._unseen[number]
        if unseen is not None:
            yield unseen


def _is_apart(crowd: _Crowd) -> bool:
    if crowd.both:
        return crowd.both == 1 and not crowd.carriers and not crowd.meant
    return not (crowd.carriers and crowd.meant)
