"""What the rules of one gang ask of its next pod, given the pods that it has."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from msgspec import Struct

from contracts.pods.node_resources import PODS
from solver.engines.construct.ways import Condition, Use, Values, Way
from solver.kinds.demand import Demand
from solver.kinds.shapes import GroupShape, NodeShape
from solver.kinds.topology import DomainKey, GangRules, SetRule


class FramePod(Struct, frozen=True):
    """A pod on its node."""

    member: int
    """Of its gang."""
    kind: int
    node: int
    uses: tuple[Use, ...]
    alternatives: tuple[int, ...]


class _Owned(Struct, frozen=True):
    """What the devices of one pod come to, of a set that each pod has for itself."""

    rule: int
    values: Values | None


class Division(Struct, frozen=True):
    """How the pods of a member are divided evenly."""

    parts: int
    size: int
    """The pods of each part."""
    domains: frozenset[Hashable] | None = None
    """Those that may have one; None: any."""


class Saved(Struct, frozen=True):
    """What a frame was like."""

    pods: int
    common: dict[int, Values | None]
    owned: tuple[_Owned, ...]
    domains: dict[int, frozenset[Hashable]]
    crowds: dict[tuple[int, Hashable], int]
    filled: dict[int, dict[Hashable, int]]
    divisions: dict[int, Division]
    allowed: dict[int, frozenset[int]]


class Frame:
    """One gang while it is placed; `save` it to come back by `restore`."""

    def __init__(self, demand: Demand, gang: int, rules: GangRules | None) -> None:
        self.gang = gang
        self.pods: list[FramePod] = []
        self.rules = rules or GangRules(gang)
        self._demand = demand
        self._position = {
            column: place for place, column in enumerate(demand.query.named)
        }
        self._stands_for = demand.query.resources.index(PODS)
        self.common: dict[int, Values | None] = {
            number: _start_of(rule)
            for number, rule in enumerate(self.rules.sets)
            if rule.each is None
        }
        """By rule: what its devices have in common, or have at all."""
        self._owned: list[_Owned] = []
        self.domains: dict[int, frozenset[Hashable]] = {
            number: together.standing
            for number, together in enumerate(self.rules.together)
            if together.standing
        }
        """By rule: where its pods are, of those that are preferred all of them."""
        self._crowds: dict[tuple[int, Hashable], int] = {}
        self._filled: dict[int, dict[Hashable, int]] = {}
        """By even rule: its pods by domain."""
        self.divisions: dict[int, Division] = {}
        """By even rule, once one is chosen."""
        self.allowed: dict[int, frozenset[int]] = {}
        """Kind -> nodes, where somebody chose them."""
        self._is_bare = rules is None

    def save(self) -> Saved:
        """Return how it is now."""
        return Saved(
            len(self.pods),
            dict(self.common),
            tuple(self._owned),
            dict(self.domains),
            dict(self._crowds),
            {number: dict(filled) for number, filled in self._filled.items()},
            dict(self.divisions),
            dict(self.allowed),
        )

    def restore(self, saved: Saved) -> None:
        """Come back to how it was."""
        del self.pods[saved.pods :]
        self.common = dict(saved.common)
        self._owned = list(saved.owned)
        self.domains = dict(saved.domains)
        self._crowds = dict(saved.crowds)
        self._filled = {number: dict(pods) for number, pods in saved.filled.items()}
        self.divisions = dict(saved.divisions)
        self.allowed = dict(saved.allowed)

    # --- before devices are chosen -------------------------------------------------

    def admits(self, kind: int, node: int, shape: NodeShape) -> bool:
        """True if a pod of a kind may be on a node, as far as labels say."""
        if kind in self.allowed and node not in self.allowed[kind]:
            return False
        if self._is_bare:
            return True
        rules = self.rules
        return all(
            shape.domains[key.label] is not None
            for key, kinds in rules.placed
            if key.label is not None and kind in kinds
        ) and all(
            self._may_be_in(kind, key, shape.domains[key.label])
            for key in self._list_keys(kind)
            if key.label is not None
        )

    def is_free(self, kind: int) -> bool:
        """True if its gang does not mind which devices a pod has."""
        return self._is_bare or not any(
            key.column is not None for key in self._list_keys(kind)
        )

    def list_conditions(self, kind: int) -> list[Condition]:
        """List what the gang asks of the devices of a pod."""
        if self._is_bare:
            return []
        conditions = []
        for number, rule in enumerate(self.rules.sets):
            columns = self._columns_of(rule, kind)
            if not columns:
                continue
            if rule.each is None:
                starts = [self.common[number]]
            elif rule.each == kind:
                starts = [_start_of(rule)]
            else:
                starts = [own.values for own in self._owned if own.rule == number]
            conditions += [
                Condition(rule.distinct, columns, is_named=True, start=start)
                for start in starts
            ]
        conditions += self._list_domain_conditions(kind)
        return conditions

    def _columns_of(self, rule: SetRule, kind: int) -> dict[int, int]:
        return {
            ask: self._position[column]
            for owner, ask, column in rule.uses
            if owner == kind
        }

    def _list_domain_conditions(self, kind: int) -> Iterator[Condition]:
        """Keep to devices of the domain where the pod's group is already."""
        asks = range(len(self._demand.member_kinds[kind].asks))
        for number, rule in enumerate(self.rules.together):
            if rule.key.column is None or not rule.required or kind not in rule.kinds:
                continue
            known = self.domains.get(number)
            yield Condition(
                distinct=False,
                columns=dict.fromkeys(asks, self._position[rule.key.column]),
                is_named=True,
                may_lack=True,
                start=known,
            )

    # --- once devices are chosen ---------------------------------------------------

    def accepts(self, kind: int, shape: NodeShape, way: Way) -> bool:
        """True if the devices of a pod put it where its gang wants it."""
        if self._is_bare:
            return True
        domains = {
            key: self._find_domain(key, shape, way.uses)
            for key in self._list_keys(kind)
            if key.label is None
        }
        return not any(
            domains.get(key, key) is None
            for key, kinds in self.rules.placed
            if key.label is None and kind in kinds
        ) and all(self._may_be_in(kind, key, domain) for key, domain in domains.items())

    def add(self, pod: FramePod, shape: NodeShape, way: Way) -> None:
        """Count a pod."""
        self.pods.append(pod)
        if self._is_bare:
            return
        kind, values = pod.kind, list(way.values)
        for number, rule in enumerate(self.rules.sets):
            if not self._columns_of(rule, kind):
                continue
            if rule.each is None:
                self.common[number] = values.pop(0)
            elif rule.each == kind:
                self._owned.append(_Owned(number, values.pop(0)))
            else:
                count = sum(own.rule == number for own in self._owned)
                del values[:count]
        for number, together in enumerate(self.rules.together):
            if kind in together.kinds:
                domain = self._find_domain(together.key, shape, way.uses)
                known = self.domains.get(number, frozenset())
                self.domains[number] = known | {domain}
        weight = self._demand.member_kinds[kind].needs[self._stands_for]
        for number, spread in enumerate(self.rules.spread):
            if kind in spread.kinds:
                domain = self._find_domain(spread.key, shape, way.uses)
                crowd = self._crowds.get((number, domain), 0)
                self._crowds[number, domain] = crowd + weight
        for number, even in enumerate(self.rules.even):
            if kind in even.kinds:
                domain = self._find_domain(even.key, shape, way.uses)
                filled = self._filled.setdefault(number, {})
                filled[domain] = filled.get(domain, 0) + weight

    def count_cost(self, kind: int, shape: NodeShape) -> int:
        """Count the preferences that a pod on a node would miss, by labels."""
        if self._is_bare or not self.rules.has_preferences:
            return 0
        cost = 0
        for number, together in enumerate(self.rules.together):
            label, known = together.key.label, self.domains.get(number)
            if not together.required and kind in together.kinds and label is not None:
                cost += known is not None and shape.domains[label] not in known
        for number, spread in enumerate(self.rules.spread):
            label = spread.key.label
            if not spread.required and kind in spread.kinds and label is not None:
                domain = shape.domains[label]
                crowd = self._crowds.get((number, domain), 0)
                cost += crowd >= spread.room_in(domain)
        return cost

    # --- domains -------------------------------------------------------------------

    def _list_keys(self, kind: int) -> Sequence[DomainKey]:
        """List what says where a pod is for the rules that are required of it."""
        rules = self.rules
        keys = [key for key, kinds in rules.placed if kind in kinds]
        groups = (rule for rule in rules.together if rule.required)
        keys += [rule.key for rule in groups if kind in rule.kinds]
        spread = (rule for rule in rules.spread if rule.required)
        keys += [rule.key for rule in spread if kind in rule.kinds]
        return list(dict.fromkeys(keys))

    def _may_be_in(self, kind: int, key: DomainKey, domain: Hashable) -> bool:
        for number, together in enumerate(self.rules.together):
            if together.required and together.key == key and kind in together.kinds:
                known = self.domains.get(number)
                if domain is None or (known is not None and domain not in known):
                    return False
        weight = self._demand.member_kinds[kind].needs[self._stands_for]
        for number, spread in enumerate(self.rules.spread):
            if spread.required and spread.key == key and kind in spread.kinds:
                crowd = self._crowds.get((number, domain), 0)
                if domain is None or crowd + weight > spread.room_in(domain):
                    return False
        return all(
            self._may_have(number, domain, weight)
            for number, even in enumerate(self.rules.even)
            if even.key == key and kind in even.kinds
        )

    def _may_have(self, number: int, domain: Hashable, weight: int) -> bool:
        """True if a domain may have more pods of a member that is divided evenly."""
        division = self.divisions.get(number)
        if division is None or domain is None:
            return False
        if division.domains is not None and domain not in division.domains:
            return False
        begun = self._filled.get(number, {})
        if domain not in begun and len(begun) >= division.parts:
            return False
        return begun.get(domain, 0) + weight <= division.size

    def _find_domain(
        self, key: DomainKey, shape: NodeShape, uses: Sequence[Use]
    ) -> Hashable:
        if key.label is not None:
            return shape.domains[key.label]
        position, common = self._position[key.column or 0], None
        for group in {group for _, group in uses}:
            values = self._elements(shape.groups[group], position)
            if values:
                common = values if common is None else common & values
        if common is None or len(common) != 1:
            return None
        (domain,) = common
        return domain

    def _elements(self, group: GroupShape, position: int) -> Values:
        return frozenset(group.elements[position])


def _start_of(rule: SetRule) -> Values | None:
    """Return what pods that have their place leave to the others."""
    if not rule.standing:
        return None
    sets: list[Values] = [frozenset(values) for values in rule.standing]
    if rule.distinct:
        return frozenset[object]().union(*sets)
    return sets[0].intersection(*sets[1:])
