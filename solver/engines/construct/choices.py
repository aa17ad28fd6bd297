"""What a gang has to choose once for several pods: a domain, a value, a reach.

Each choice is tried option by option, those first that have least left and are large
enough by counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from contracts.even_parts import list_even_parts
from contracts.pods.node_resources import PODS
from solver.engines.construct.between import Between, Domain
from solver.engines.construct.frame import Division, Frame
from solver.engines.construct.open_nodes import OpenNodes
from solver.engines.construct.stock import Stock
from solver.kinds.counting import PLENTY, bound_uses, is_counted
from solver.kinds.demand import Demand
from solver.kinds.shapes import GroupShape
from solver.kinds.topology import ClaimShared, PodsEven, PodsTogether, SetRule
from solver.problem.attributes import Element

DOMAIN, VALUE, NEAR, REACH, PARTS = "domain", "value", "near", "reach", "parts"
MOST_OPTIONS = 64
"""Options of one choice that are looked at."""


class Choice(Struct, frozen=True):
    """Something that is chosen for pods of some kinds."""

    what: str
    number: int
    """Of the rule."""
    kinds: frozenset[int]


Option = object
"""A domain, a value, a domain of a rule between pods, nodes, or a division; None: not
chosen."""


_Known = tuple[int, frozenset[Hashable]]
"""(position in `Query.named`, values of which devices have one)."""
_Groups = list[tuple[int, int, GroupShape]]
"""(node, number of the group there, group)."""


class Choices:
    """Lists what gangs have to choose, and from what."""

    def __init__(
        self, demand: Demand, places: OpenNodes, between: Between, stock: Stock
    ) -> None:
        self._demand = demand
        self._places = places
        self._between = between
        self._stock = stock
        self._agreeing: dict[tuple[_Known, ...], _Groups] = {}
        """By what is chosen; the same for every gang, as only counts change."""

    def list_of(self, frame: Frame, kinds: Sequence[int]) -> list[Choice]:
        """List what a gang has to choose, that of most pods first."""
        rules = frame.rules
        choices = [
            Choice(DOMAIN, number, frozenset(rule.kinds))
            for number, rule in enumerate(rules.together)
            if not rule.standing and (rule.required or rule.key.label is not None)
        ]
        choices += [
            Choice(VALUE, number, frozenset(kind for kind, _, _ in rule.uses))
            for number, rule in enumerate(rules.sets)
            if rule.each is None and not rule.distinct and not rule.standing
        ]
        choices += [
            Choice(PARTS, number, frozenset(rule.kinds))
            for number, rule in enumerate(rules.even)
        ]
        choices.sort(key=lambda choice: -len(choice.kinds))
        choices[:0] = [
            Choice(REACH, number, frozenset((*shared.users, shared.claim)))
            for number, shared in enumerate(rules.shared)
        ]
        near: dict[int, set[int]] = {}
        for kind in kinds:
            for number in self._between.list_near(kind):
                near.setdefault(number, set()).add(kind)
        choices += [Choice(NEAR, number, frozenset(of)) for number, of in near.items()]
        return choices

    def list_options(
        self, choice: Choice, frame: Frame, wanted: Sequence[tuple[int, int]]
    ) -> list[Option]:
        """List what construction may try for a choice; `wanted`: its (kind, pods)."""
        if choice.what == DOMAIN:
            if choice.number in frame.domains:
                return [None]
            rule = frame.rules.together[choice.number]
            options = self._list_domains(rule, wanted)
            return options if rule.required else [*options, None]
        if choice.what == PARTS:
            return self._list_divisions(frame.rules.even[choice.number])
        if choice.what == VALUE:
            of_devices = frame.rules.sets[choice.number]
            return self._list_values(of_devices, frame, dict(wanted))
        if choice.what == NEAR:
            return [None, *self._list_near(choice.number)]
        return [None, *self._list_reaches(frame.rules.shared[choice.number])]

    def choose(self, choice: Choice, frame: Frame, option: Option) -> None:
        """Bind the pods of a choice to an option."""
        if option is None:
            return
        if choice.what == DOMAIN:
            frame.domains[choice.number] = frozenset([option])
        elif isinstance(option, Division):
            frame.divisions[choice.number] = option
        elif choice.what == VALUE:
            frame.common[choice.number] = frozenset([option])
        else:
            nodes = option
            if choice.what == NEAR:
                nodes = frozenset(
                    node
                    for node in range(len(self._places.views))
                    if self._between.is_in(option, node)  # type: ignore[arg-type]
                )
            for kind in choice.kinds:
                known = frame.allowed.get(kind)
                both = nodes if known is None else known & nodes  # type: ignore[operator]
                frame.allowed[kind] = both  # type: ignore[assignment]

    # --- options ---------------------------------------------------------------------

    def _list_domains(
        self, rule: PodsTogether, wanted: Sequence[tuple[int, int]]
    ) -> list[Option]:
        left: dict[Hashable, int] = {}
        label = rule.key.label
        if label is None:
            return self._list_elements(rule.key.column or 0, rule.kinds)
        for node, view in enumerate(self._places.views):
            domain = view.shape.domains[label]
            if domain is not None:
                left[domain] = left.get(domain, 0) + self._stock.count_free(node)
        large = [
            domain
            for domain in left
            if all(
                self._places.count_room(kind, label, domain) >= pods
                for kind, pods in wanted
                if kind in rule.kinds
            )
        ]
        large.sort(key=lambda domain: (left[domain], str(domain)))
        return list(large[:MOST_OPTIONS])

    def _list_divisions(self, rule: PodsEven) -> list[Option]:
        """List the ways to divide pods of which enough domains have room for a part."""
        label = rule.key.label
        column = self._demand.query.resources.index(PODS)
        weights = {k: self._demand.member_kinds[k].needs[column] for k in rule.kinds}
        pods = sum(self._demand.pods[kind] * weights[kind] for kind in rule.kinds)
        ways = list_even_parts(pods)
        if label is None:
            return [Division(parts, size) for parts, size in ways]
        # Cells of a member are alike.
        kind = rule.kinds[0]
        rooms = {
            domain: self._places.count_room(kind, label, domain) * weights[kind]
            for domain in {view.shape.domains[label] for view in self._places.views}
            if domain is not None
        }
        return [
            Division(parts, size, large)
            for parts, size in ways
            for large in (frozenset(d for d, room in rooms.items() if room >= size),)
            if len(large) >= parts
        ]

    def _list_values(
        self, rule: SetRule, frame: Frame, pods: Mapping[int, int]
    ) -> list[Option]:
        """List the values of which enough is left beside those chosen before."""
        columns: dict[int, list[int]] = {}
        lefts: list[Counter[Element]] = []
        large: set[Element] | None = None
        for kind, ask, column in rule.uses:
            columns.setdefault(column, []).append(kind)
            needed = pods.get(kind, 0) * self._count_exclusive(kind, ask)
            if needed:
                left = self._count_agreeing(frame, kind, ask, column)
                enough = {value for value, count in left.items() if count >= needed}
                large = enough if large is None else large & enough
                lefts.append(left)
        if large is not None:
            most = {value: max(left[value] for left in lefts) for value in large}
            return list(_scarce_first(most))
        listed = (
            self._list_elements(column, kinds) for column, kinds in columns.items()
        )
        return list(dict.fromkeys(value for values in listed for value in values))

    def _count_exclusive(self, kind: int, ask: int) -> int:
        """Count the devices that each pod has for an ask alone; 0: none for certain."""
        member = self._demand.member_kinds[kind]
        asked = member.asks[ask]
        return asked.count if is_counted(member, ask) and not asked.admin else 0

    def _count_agreeing(
        self, frame: Frame, kind: int, ask: int, column: int
    ) -> Counter[Element]:
        """Bound the uses left for an ask by value, beside values that are chosen."""
        asked = self._demand.member_kinds[kind].asks[ask]
        position = self._demand.query.named.index(column)
        known = tuple(
            (condition.columns[ask], condition.start)
            for condition in frame.list_conditions(kind)
            if condition.start is not None
            and ask in condition.columns
            and not condition.distinct
            and not condition.may_lack
        )
        left = Counter[Element]()
        for node, number, group in self._list_agreeing(known):
            uses = min(
                bound_uses(group, asked),
                PLENTY if group.is_shareable else self._stock.count_left(node, number),
            )
            for value in dict.fromkeys(group.elements[position]):
                left[value] += uses
        return left

    def _list_agreeing(self, known: tuple[_Known, ...]) -> _Groups:
        """List the groups that have the chosen values; fewer with each of them."""
        if known not in self._agreeing:
            if known:
                *before, (at, start) = known
                self._agreeing[known] = [
                    each
                    for each in self._list_agreeing(tuple(before))
                    if not start.isdisjoint(each[2].elements[at])
                ]
            else:
                self._agreeing[known] = [
                    (node, number, group)
                    for node, view in enumerate(self._places.views)
                    for number, group in enumerate(view.shape.groups)
                ]
        return self._agreeing[known]

    def _list_elements(self, column: int, kinds: Sequence[int]) -> list[Option]:
        """List the values of devices that pods may ask for, those of few left first."""
        position = self._demand.query.named.index(column)
        mask = 0
        for kind in kinds:
            for ask in self._demand.member_kinds[kind].asks:
                mask |= 1 << ask.kind
        left: dict[Element, int] = {}
        for node, view in enumerate(self._places.views):
            for number, group in enumerate(view.shape.groups):
                if group.mask & mask:
                    for value in group.elements[position]:
                        count = self._stock.count_left(node, number)
                        left[value] = left.get(value, 0) + count
        return list(_scarce_first({v: count for v, count in left.items() if count}))

    def _list_near(self, number: int) -> Sequence[Option]:
        """List the domains of a rule; of those of one node, where something is new."""
        nodes = set(self._places.list_all())
        domains: list[Domain] = self._between.list_domains(number)
        return [d for d in domains if d[2] < 0 or d[2] in nodes][:MOST_OPTIONS]

    def _list_reaches(self, shared: ClaimShared) -> list[Option]:
        """List sets of nodes that see one group which may serve a shared claim."""
        mask = 0
        for ask in self._demand.member_kinds[shared.claim].asks:
            mask |= 1 << ask.kind
        reaches: dict[object, set[int]] = {}
        alone: list[Option] = []
        for node in self._places.list_all():
            groups = [g for g in self._places.views[node].shape.groups if g.mask & mask]
            for group in groups:
                if group.identity and not group.is_pinning:
                    reaches[group.identity] = set()
            if any(not group.identity or group.is_pinning for group in groups):
                alone.append(frozenset([node]))
        for node, view in enumerate(self._places.views):
            for group in view.shape.groups:
                if group.identity in reaches:
                    reaches[group.identity].add(node)
        far: Iterator[Option] = (frozenset(nodes) for nodes in reaches.values())
        return list(dict.fromkeys([*far, *alone]))[:MOST_OPTIONS]


def _scarce_first(left: Mapping[Element, int]) -> list[Element]:
    """Order values by what is left of them, so that large ones stay for others."""
    return sorted(left, key=lambda value: (left[value], repr(value)))[:MOST_OPTIONS]
