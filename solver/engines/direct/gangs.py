"""The rules of whole gangs as constraints of the direct model.

Constraints across claims and pods, and topology. Which pods and devices a rule is about
is written over member kinds beforehand (`solver/kinds/topology.py`); kinds of such a
gang are its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise

from contracts.even_parts import list_even_parts
from contracts.pods.node_resources import PODS
from solver.engines import cp_model
from solver.engines.cpsat import Term, total
from solver.engines.direct.variables import Lot, Placements
from solver.kinds.demand import GangKind
from solver.kinds.topology import (
    DomainKey,
    GangRules,
    PodsEven,
    PodsSpread,
    PodsTogether,
    SetRule,
)
from solver.problem.attributes import Element

Domains = dict[Hashable, list[tuple[Lot, cp_model.IntVar]]]
"""By domain: lots, and how many of their pods are there. None: pods without one."""


def extra_pods_follow(placements: Placements) -> None:
    """Pods beyond the least are those that come first by index.

    A cell has any only where the one before it is full: extra[after] <= most * full,
    extra[before] >= most * full. Only cells of one gang can be told apart.
    """
    for rules in placements.demand.gang_rules:
        kind = _kind_of(placements, rules)
        most = dict(kind.extra)
        for cells in placements.demand.cells_of[rules.gang]:
            for before, after in pairwise(c.kind for c in cells if c.kind in most):
                full = placements.model.new_bool_var(f"full[{before}]")
                extra = placements.extra[kind, before]
                placements.model.add(extra >= most[before] * full)
                extra = placements.extra[kind, after]
                placements.model.add(extra <= most[after] * full)


def _kind_of(placements: Placements, rules: GangRules) -> GangKind:
    """Find the kind of a gang whose rules span pods: it is alone in it."""
    gang_kinds = placements.demand.gang_kinds
    return next(kind for kind, gangs in gang_kinds.items() if rules.gang in gangs)


def devices_agree(placements: Placements) -> None:
    """Devices of several pods have one value in common, or none has one twice.

    A value is picked for the set: uses <= most * sum(pick[value]). For distinct ones:
    sum(uses with the value) <= 1. What devices of pods that have their place have is
    given: the value is one of theirs in common, or none of theirs.
    """
    for rules in placements.demand.gang_rules:
        for number, rule in enumerate(rules.sets):
            for place, uses in enumerate(_list_sets(placements, rule)):
                if rule.distinct:
                    _forbid_repeats(placements, rule, uses)
                else:
                    name = f"common[{rules.gang},{number},{place}]"
                    _pick_value(placements, rule, uses, name)


_Uses = list[tuple[Term, tuple[Element, ...]]]
"""Devices that a rule is about, with the values they have."""


def _list_sets(placements: Placements, rule: SetRule) -> Iterator[_Uses]:
    """Go through the sets of devices that a rule is about: one, or one for each pod."""
    columns = {(kind, ask): column for kind, ask, column in rule.uses}
    kinds = sorted({kind for kind, _, _ in rule.uses} - {rule.each})
    lots = [lot for kind in kinds for lot in placements.lots_of[kind]]
    together = list(_list_uses(placements, lots, columns))
    if rule.each is None:
        yield together
        return
    # Without the pod this asks nothing that other pods of its gang do not ask.
    for lot in placements.lots_of[rule.each]:
        yield [*_list_uses(placements, [lot], columns), *together]


def _list_uses(
    placements: Placements, lots: Iterable[Lot], columns: dict[tuple[int, int], int]
) -> Iterator[tuple[Term, tuple[Element, ...]]]:
    for lot in lots:
        for (ask, group), term in lot.uses.items():
            column = columns.get((lot.kind, ask))
            if column is not None:
                yield term, placements.elements_of(lot, group, column)


def _pick_value(placements: Placements, rule: SetRule, uses: _Uses, name: str) -> None:
    values = dict.fromkeys(
        value
        for _, elements in uses
        for value in elements
        if all(value in having for having in rule.standing)
    )
    picks = {
        value: placements.model.new_bool_var(f"{name}[{number}]")
        for number, value in enumerate(values)
    }
    placements.model.add(total([(pick, 1) for pick in picks.values()]) <= 1)
    for (variable, _), elements in uses:
        having: list[Term] = [
            (picks[value], -_most(variable)) for value in elements if value in picks
        ]
        placements.model.add(total([(variable, 1), *having]) <= 0)


def _forbid_repeats(placements: Placements, rule: SetRule, uses: _Uses) -> None:
    terms_by_value: dict[Element, list[Term]] = defaultdict(list)
    for term, elements in uses:
        for value in elements:
            terms_by_value[value].append(term)
    taken = frozenset(value for having in rule.standing for value in having)
    for value, terms in terms_by_value.items():
        placements.model.add(total(terms) <= (value not in taken))


def pods_have_domains(placements: Placements) -> None:
    """No pod that a required rule names is without a domain."""
    for rules in placements.demand.gang_rules:
        for key, kinds in rules.placed:
            for _, pods in _domains_of(placements, key, kinds).get(None, ()):
                placements.model.add(pods == 0)


def pods_are_together(placements: Placements) -> None:
    """The pods of a required group are in one domain: pods[domain] <= most * used.

    Where pods of it have their place, that is the domain: pods[other] = 0.
    """
    for rule in _list_together(placements, required=True):
        domains = _domains_of(placements, rule.key, rule.kinds)
        domains.pop(None, None)
        if rule.standing:
            for domain, pods in domains.items():
                if domain not in rule.standing:
                    placements.model.add(total([(count, 1) for _, count in pods]) == 0)
        elif len(domains) > 1:
            used = [_mark_used(placements, pods) for pods in domains.values()]
            placements.model.add(total([(mark, 1) for mark in used]) <= 1)


def domains_are_not_crowded(placements: Placements) -> None:
    """A domain has at most so many of the pods that a required rule names."""
    for rule in _list_spread(placements, required=True):
        domains = _domains_of(placements, rule.key, rule.kinds)
        domains.pop(None, None)
        for domain, pods in domains.items():
            room = rule.room_in(domain)
            placements.model.add(total(_weigh(placements, pods)) <= room)


def domains_are_even(placements: Placements) -> None:
    """Each domain has no pods of a member, or a whole part of them; all as large.

    Parts are of one size: sum(chosen[size]) = in[gang]. For each domain: pods[domain] =
    sum(size * has[domain, size]), and for each size: sum(has[domain, size]) =
    parts * chosen[size].
    """
    for rules in placements.demand.gang_rules:
        gang = placements.gangs[_kind_of(placements, rules)]
        for rule in rules.even:
            domains = _domains_of(placements, rule.key, rule.kinds)
            domains.pop(None, None)
            weighed = [_weigh(placements, pods) for pods in domains.values()]
            pods = _count_asked(placements, rule)
            parts = _divide_evenly(placements.model, gang, weighed, pods)
            placements.parts += [*parts, (gang, -1)]


def _divide_evenly(
    model: cp_model.CpModel,
    gang: cp_model.IntVar,
    domains: list[list[Term]],
    pods: int,
) -> list[Term]:
    """Divide the pods of a gang that is in; returns in how many parts."""
    rooms = [sum(_most(variable) * weight for variable, weight in d) for d in domains]
    parts_in: list[list[Term]] = [[] for _ in domains]
    ways = list[Term]()
    for parts, size in list_even_parts(pods):
        large = [number for number, room in enumerate(rooms) if room >= size]
        if len(large) < parts:
            continue
        chosen = model.new_bool_var("")
        ways.append((chosen, parts))
        having = list[Term]()
        for number in large:
            has = model.new_bool_var("")
            parts_in[number].append((has, -size))
            having.append((has, 1))
        model.add(total([*having, (chosen, -parts)]) == 0)
    model.add(total([*((chosen, 1) for chosen, _ in ways), (gang, -1)]) == 0)
    for weighed, inside in zip(domains, parts_in, strict=True):
        model.add(total([*weighed, *inside]) == 0)
    return ways


def _count_asked(placements: Placements, rule: PodsEven) -> int:
    """Count the pods that are divided, with those that a pod stands for."""
    demand = placements.demand
    column = demand.query.resources.index(PODS)
    return sum(
        demand.pods[kind] * demand.member_kinds[kind].needs[column]
        for kind in rule.kinds
    )


def count_preferences(placements: Placements) -> list[Term]:
    """Count what preferences cost: domains used less one, and pods above the most.

    Beside pods that have their place only what is added to their domains costs.
    """
    terms = list(placements.parts)
    for rules in placements.demand.gang_rules:
        kind = _kind_of(placements, rules)
        needed = dict(kind.members)
        for rule in (rule for rule in rules.together if not rule.required):
            domains = _domains_of(placements, rule.key, rule.kinds)
            used: list[Term] = [(pods, 1) for _, pods in domains.pop(None, ())]
            used += [
                (_mark_used(placements, pods), 1)
                for domain, pods in domains.items()
                if domain not in rule.standing
            ]
            if rule.standing:
                terms += used
                continue
            # The first domain is free; where no pod need be there, if any is used.
            free = placements.gangs[kind]
            if not any(needed.get(member) for member in rule.kinds):
                free = placements.model.new_bool_var("")
                placements.model.add(total([*used, (free, -1)]) >= 0)
            terms += [*used, (free, -1)]
    for spread in _list_spread(placements, required=False):
        terms += _count_crowded(placements, spread)
    return terms


def _count_crowded(placements: Placements, rule: PodsSpread) -> list[Term]:
    """Count the pods above the most, domain by domain; a pod without one is alone."""
    domains = _domains_of(placements, rule.key, rule.kinds)
    excess = list[Term]()
    for lot, alone in domains.pop(None, ()):
        above = _stands_for(placements, lot) - rule.most
        if above > 0:
            excess.append((alone, above))
    for domain, pods in domains.items():
        weighed, room = _weigh(placements, pods), rule.room_in(domain)
        most = sum(_most(variable) * weight for variable, weight in weighed)
        if most > room:
            number = len(placements.model.proto.variables)
            above_most = placements.model.new_int_var(
                0, most - room, f"crowded[{number}]"
            )
            placements.model.add(total([*weighed, (above_most, -1)]) <= room)
            excess.append((above_most, 1))
    return excess


def _list_together(placements: Placements, *, required: bool) -> Iterator[PodsTogether]:
    for rules in placements.demand.gang_rules:
        yield from (rule for rule in rules.together if rule.required is required)


def _list_spread(placements: Placements, *, required: bool) -> Iterator[PodsSpread]:
    for rules in placements.demand.gang_rules:
        yield from (rule for rule in rules.spread if rule.required is required)


def _mark_used(
    placements: Placements, pods: list[tuple[Lot, cp_model.IntVar]]
) -> cp_model.IntVar:
    """Make a variable that is 1 where any of these pods is placed."""
    used = placements.model.new_bool_var(
        f"used[{len(placements.model.proto.variables)}]"
    )
    for _, count in pods:
        placements.model.add(total([(count, 1), (used, -_most(count))]) <= 0)
    return used


def _weigh(
    placements: Placements, pods: list[tuple[Lot, cp_model.IntVar]]
) -> list[Term]:
    return [(count, _stands_for(placements, lot)) for lot, count in pods]


def _stands_for(placements: Placements, lot: Lot) -> int:
    """Return how many pods each pod of a lot is: those that share a claim are one."""
    column = placements.demand.query.resources.index(PODS)
    return placements.member_of(lot).needs[column]


def _most(variable: cp_model.IntVar) -> int:
    most: int = variable.proto.domain[1]
    return most


# --- the domains of pods --------------------------------------------------------------


def _domains_of(
    placements: Placements, key: DomainKey, kinds: tuple[int, ...]
) -> Domains:
    """Sort the pods of some kinds by domain."""
    domains: Domains = {}
    for lot in (lot for kind in kinds for lot in placements.lots_of[kind]):
        if key.label is not None:
            domain = placements.shape_of(lot).domains[key.label]
            domains.setdefault(domain, []).append((lot, lot.pods))
            continue
        for value, pods in _sort_by_devices(placements, lot, key.column or 0).items():
            domains.setdefault(value, []).append((lot, pods))
    return domains


def _sort_by_devices(
    placements: Placements, lot: Lot, column: int
) -> dict[Element | None, cp_model.IntVar]:
    """Return a variable for each domain that the devices of a single pod may be in.

    That is the one value which all of its devices that have the attribute share:
    exactly then its variable is 1.
    """
    if column not in lot.domains:
        lot.domains[column] = _LotDomains(placements, lot, column).make()
    return lot.domains[column]


def _list_shared(
    placements: Placements, lot: Lot, column: int
) -> dict[tuple[Element, ...], list[Term]]:
    """List the devices that the pod of a lot shares, by the values that they have."""
    terms_by_elements: dict[tuple[Element, ...], list[Term]] = defaultdict(list)
    claims = [
        shared.claim
        for rules in placements.demand.gang_rules
        for shared in rules.shared
        if lot.kind in shared.users
    ]
    for other in (other for claim in claims for other in placements.lots_of[claim]):
        for (_, group), term in other.uses.items():
            elements = placements.elements_of(other, group, column)
            if elements:
                terms_by_elements[elements].append(term)
    return terms_by_elements


class _LotDomains:
    """Makes the variables that say in which domain the pod of a lot is."""

    def __init__(self, placements: Placements, lot: Lot, column: int) -> None:
        self._model = placements.model
        self._lot = lot
        self._having: list[tuple[Term, tuple[Element, ...]]] = []
        """Devices that have the attribute."""
        for (_, group), term in lot.uses.items():
            elements = placements.elements_of(lot, group, column)
            if elements:
                self._having.append((term, elements))
        for elements, terms in _list_shared(placements, lot, column).items():
            shared = self._both(lot.pods, self._not(self._mark(terms)))
            self._having.append(((shared, 1), elements))

    def make(self) -> dict[Element | None, cp_model.IntVar]:
        """Make one variable a value, and one for no domain."""
        has_any = self._mark([term for term, _ in self._having])
        common: dict[Element, cp_model.IntVar] = {}
        for value in dict.fromkeys(v for _, listed in self._having for v in listed):
            lacking = self._mark(
                [t for t, listed in self._having if value not in listed]
            )
            common[value] = self._both(has_any, lacking)
        domains: dict[Element | None, cp_model.IntVar]
        domains = {value: self._only(common, value) for value in common}
        nowhere = self._model.new_bool_var("")
        terms: list[Term] = [(pods, 1) for pods in domains.values()]
        self._model.add(total([*terms, (nowhere, 1), (self._lot.pods, -1)]) == 0)
        domains[None] = nowhere
        return domains

    def _mark(self, terms: list[Term]) -> cp_model.IntVar:
        """Make a variable that is 1 exactly where some device is used."""
        mark = self._model.new_bool_var("")
        most = sum(_most(variable) for variable, _ in terms)
        count: list[Term] = [(variable, 1) for variable, _ in terms]
        self._model.add(total([*count, (mark, -most)]) <= 0)
        self._model.add(total([*count, (mark, -1)]) >= 0)
        return mark

    def _not(self, mark: cp_model.IntVar) -> cp_model.IntVar:
        """Make a variable that is 1 exactly where another is 0."""
        other = self._model.new_bool_var("")
        self._model.add(mark + other == 1)
        return other

    def _both(
        self, has_any: cp_model.IntVar, lacking: cp_model.IntVar
    ) -> cp_model.IntVar:
        """Make a variable that is 1 exactly where devices have it and none lacks it."""
        both = self._model.new_bool_var("")
        self._model.add(both <= has_any)
        self._model.add(both + lacking <= 1)
        self._model.add(both - has_any + lacking >= 0)
        return both

    def _only(
        self, common: dict[Element, cp_model.IntVar], value: Element
    ) -> cp_model.IntVar:
        """Make a variable that is 1 exactly where this is the one value in common."""
        several = any(len(listed) > 1 for _, listed in self._having)
        if not several:
            return common[value]
        only = self._model.new_bool_var("")
        others = [variable for other, variable in common.items() if other != value]
        self._model.add(only <= common[value])
        for other in others:
            self._model.add(only + other <= 1)
        terms: list[Term] = [(variable, 1) for variable in others]
        self._model.add(total([(only, 1), (common[value], -1), *terms]) >= 0)
        return only
