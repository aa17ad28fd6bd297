"""Some nodes decided anew: which gangs are there, by one model of CP-SAT.

Everything on these nodes is taken out. A gang all of whose pods were there may leave,
and gangs that are out may come, with all of their pods; both are counted by sort. Of a
gang that has pods elsewhere, those here stay here, unless it is free to leave.

Domains are nested, so it is enough to count: what the nodes of a domain supply is at
least what blocks in it need, for every domain from the narrowest to the widest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import Struct

from solver.engines import cp_model, cpsat
from solver.engines.blocks import Block
from solver.engines.cpsat import Term
from solver.engines.packing.batch import PackingBatch
from solver.engines.packing.carrying import (
    ANYWHERE,
    Chosen,
    Offer,
    Path,
    Place,
    Want,
    carry_out,
    offers_of_nodes,
    offers_of_parts,
    walk_blocks,
)
from solver.engines.packing.cells import CellMaker, ModelCell, PartPatterns, contains
from solver.engines.packing.loads import Loads, Spot
from solver.engines.packing.work import Work

MOST_WORTH = 1 << 50
"""What all gangs of a model together are worth at most, priorities combined."""


class Scope(Struct, frozen=True):
    """What is decided anew."""

    nodes: frozenset[int]
    leaving: frozenset[int]
    """Gangs with pods there and elsewhere that may leave."""
    coming: tuple[int, ...]
    """Gangs that are out and may come."""


class Decided(Struct, frozen=True):
    """How a neighborhood ended."""

    is_better: bool
    is_solved: bool
    """True if nothing better is there."""
    bound: int | None = None
    """What the gangs there cannot exceed together, where one priority is decided."""


class _BlockCount(Struct, frozen=True):
    """How many of a block: `terms` plus `fixed`, at most `most`."""

    terms: tuple[Term, ...]
    fixed: int
    most: int

    def times(self, factor: int) -> _BlockCount:
        """Multiply it."""
        terms = tuple((var, pods * factor) for var, pods in self.terms)
        return _BlockCount(terms, self.fixed * factor, self.most * factor)


class _Choice(Struct, frozen=True):
    """Gangs of which the model says how many are here."""

    var: cp_model.IntVar
    priority: int
    weight: int
    now: int
    most: int


class _Uses:
    """What blocks need of each domain, by pod kind."""

    def __init__(self) -> None:
        self.terms: dict[tuple[Place, int], list[Term]] = defaultdict(list)
        self.fixed: Counter[tuple[Place, int]] = Counter()


class NeighborhoodModel:
    """One model; `solve` it once."""

    def __init__(
        self,
        batch: PackingBatch,
        loads: Loads,
        scope: Scope,
        makers: tuple[CellMaker, PartPatterns],
    ) -> None:
        self._batch, self._loads, self._scope = batch, loads, scope
        self._cell_maker, self._part_patterns = makers
        self.model = cp_model.CpModel()
        self._uses = _Uses()
        self._inside: dict[int, list[int]] = {}
        """By sort, the gangs that are in with all of their pods here."""
        self._partial: list[int] = []
        self._coming: dict[int, list[int]] = {}
        """By sort, those that may come."""
        self._sort_out_gangs()
        kinds = self._list_kinds()
        self.cells: list[ModelCell] = self._cell_maker.make(sorted(scope.nodes), kinds)
        self._rooms = self._count_rooms()
        self._gangs: dict[int, cp_model.IntVar] = {}
        self._stays: dict[int, cp_model.IntVar] = {}
        self._blocks: dict[tuple[int, Path, Place, int], cp_model.IntVar] = {}
        """By (sort or ~gang, path, place of the outer block, domain)."""
        self._supply: dict[tuple[int, int], list[Term]] = {}
        """By (cell, pod kind)."""
        self._pods: dict[tuple[int, int], cp_model.IntVar] = {}
        self._node_uses: dict[tuple[int, int], cp_model.IntVar] = {}
        self._part_uses: dict[tuple[int, int, tuple[int, ...]], cp_model.IntVar] = {}
        self._blocks_now = self._count_blocks()
        self._add_gangs()
        self._part_patterns.is_complete = True
        for number, cell in enumerate(self.cells):
            if cell.node_patterns:
                self._add_node_patterns(number, cell)
            else:
                self._add_parts(number, cell)
        self._balance()
        self._maximize()

    # --- what is there ---------------------------------------------------------------

    def _sort_out_gangs(self) -> None:
        batch, loads, nodes = self._batch, self._loads, self._scope.nodes
        touched = sorted({gang for node in nodes for gang in loads.on_node[node]})
        for gang in touched:
            if all(spot.node in nodes for spot in loads.gangs[gang]):
                self._inside.setdefault(batch.sort_of[gang], []).append(gang)
            else:
                self._partial.append(gang)
        for gang in self._scope.coming:
            self._coming.setdefault(batch.sort_of[gang], []).append(gang)

    def _list_kinds(self) -> list[int]:
        kinds = {
            kind
            for sort in (*self._inside, *self._coming)
            for kind in self._batch.totals[sort]
        }
        for gang in self._partial:
            kinds |= {
                spot.kind
                for spot in self._loads.gangs[gang]
                if spot.node in self._scope.nodes
            }
        return sorted(kinds)

    def _count_rooms(self) -> dict[tuple[Place, int], int]:
        """Count the pods of each kind that the nodes of a domain take, at most."""
        rooms: Counter[tuple[Place, int]] = Counter()
        for cell in self.cells:
            places = self._places_of(cell)
            for kind in cell.kinds:
                count = sum(self._batch.first_rooms[kind][list(cell.nodes)].tolist())
                for place in places:
                    rooms[place, kind] += count
        return rooms

    def _places_of(self, cell: ModelCell) -> list[Place]:
        own = [
            (label, domain) for label, domain in enumerate(cell.domains) if domain >= 0
        ]
        return [ANYWHERE, *own]

    # --- gangs and blocks ------------------------------------------------------------

    def _add_gangs(self) -> None:
        for sort in sorted({*self._inside, *self._coming}):
            inside = len(self._inside.get(sort, ()))
            most = inside + len(self._coming.get(sort, ()))
            var = self.model.new_int_var(0, most, "")
            self.model.add_hint(var, inside)
            self._gangs[sort] = var
            block = self._batch.sorts[sort].block
            self._add_block(
                sort, (), block, _BlockCount(((var, 1),), 0, most), ANYWHERE
            )
        for gang in self._partial:
            self._add_partial(gang)

    def _count_blocks(self) -> Counter[tuple[int, Path, Place, int]]:
        """Count the blocks of the gangs that are here, by where they are now."""
        found: Counter[tuple[int, Path, Place, int]] = Counter()
        for sort, gangs in self._inside.items():
            for gang in gangs:
                node_of: dict[int, int] = {}
                for spot in self._loads.gangs[gang]:
                    number = spot.instance
                    while number >= 0 and number not in node_of:
                        node_of[number] = spot.node
                        number = self._batch.instances[gang][number].parent
                for path, outer, block, number in walk_blocks(
                    self._batch, gang, node_of
                ):
                    domain = int(self._batch.domain[block.label, node_of[number]])
                    found[sort, path, outer, domain] += 1
        return found

    def _add_partial(self, gang: int) -> None:
        """Keep the pods of a gang here, in the domains of their blocks."""
        stays = _BlockCount((), 1, 1)
        if gang in self._scope.leaving:
            var = self.model.new_int_var(0, 1, "")
            self.model.add_hint(var, 1)
            self._stays[gang] = var
            stays = _BlockCount(((var, 1),), 0, 1)
        for want in self._list_kept(gang):
            self._use(want.place, want.kind, want.count, stays)

    def _list_kept(self, gang: int) -> list[Want]:
        """List the pods of a gang here, each with the domain that it must stay in."""
        counts: Counter[tuple[Place, int, int]] = Counter()
        for spot in self._loads.gangs[gang]:
            if spot.node in self._scope.nodes:
                place = self._place_of(gang, spot)
                counts[place, spot.instance, spot.kind] += 1
        return [
            Want(place, gang, instance, kind, count)
            for (place, instance, kind), count in counts.items()
        ]

    def _place_of(self, gang: int, spot: Spot) -> Place:
        instances = self._batch.instances[gang]
        number = spot.instance
        while number >= 0 and instances[number].block.label < 0:
            number = instances[number].parent
        if number < 0:
            return ANYWHERE
        label = instances[number].block.label
        return label, int(self._batch.domain[label, spot.node])

    def _use(self, place: Place, kind: int, pods: int, count: _BlockCount) -> None:
        own = count.times(pods)
        self._uses.terms[place, kind] += own.terms
        if own.fixed:
            self._uses.fixed[place, kind] += own.fixed

    def _add_block(
        self, owner: int, path: Path, block: Block, count: _BlockCount, outer: Place
    ) -> None:
        """Add so many of a block inside an outer place, with all in them."""
        places = [(outer, count)]
        if block.label >= 0:
            places = []
            for place, limit in self._list_places(block, outer, count.most):
                var = self.model.new_int_var(0, limit, "")
                key = (owner, path, outer, place[1])
                self.model.add_hint(var, self._blocks_now[key])
                self._blocks[key] = var
                places.append((place, _BlockCount(((var, 1),), 0, limit)))
            mine = [term for _, own in places for term in own.terms]
            whole = [*mine, *((var, -factor) for var, factor in count.terms)]
            self.model.add(cpsat.total(whole) == count.fixed)
        for place, own in places:
            for kind, pods in block.pods:
                self._use(place, kind, pods, own)
            for number, (inner, often) in enumerate(block.inner):
                self._add_block(owner, (*path, number), inner, own.times(often), place)

    def _list_places(
        self, block: Block, outer: Place, most: int
    ) -> list[tuple[Place, int]]:
        """List domains of a block's label inside an outer place that may hold some."""
        label, batch = block.label, self._batch
        domains = set[int]()
        for cell in self.cells:
            own = cell.domains[label]
            inside = outer[0] < 0 or cell.domains[outer[0]] == outer[1]
            if own >= 0 and inside:
                domains.add(own)
        found = []
        for domain in sorted(domains):
            limit = most
            for kind, count in batch.total_of(block):
                limit = min(limit, self._rooms.get(((label, domain), kind), 0) // count)
            if limit:
                found.append(((label, domain), limit))
        return found

    # --- nodes -----------------------------------------------------------------------

    def _add_node_patterns(self, number: int, cell: ModelCell) -> None:
        count = len(cell.nodes)
        uses: list[Term] = []
        now = self._count_node_patterns(cell)
        for index, pattern in enumerate(cell.node_patterns):
            var = self.model.new_int_var(0, count, "")
            self._node_uses[number, index] = var
            self.model.add_hint(var, now[index])
            uses.append((var, 1))
            for kind, pods in pattern.counts.items():
                self._supply.setdefault((number, kind), []).append((var, pods))
        self.model.add(cpsat.total(uses) <= count)

    def _count_node_patterns(self, cell: ModelCell) -> Counter[int]:
        """Count by pattern the nodes whose pods it holds now."""
        counts = [pattern.counts for pattern in cell.node_patterns]
        found: Counter[int] = Counter()
        for node in cell.nodes:
            pods = self._loads.pods_on(node)
            for index, own in enumerate(counts):
                if pods <= own:
                    found[index] += 1
                    break
        return found

    def _add_parts(self, number: int, cell: ModelCell) -> None:
        batch, loads = self._batch, self._loads
        wanted = frozenset(
            slot for kind in cell.kinds for slot, _ in batch.pods[kind].slots
        )
        now: Counter[int] = Counter()
        for node in cell.nodes:
            now += loads.pods_on(node)
        needed: dict[int, list[Term]] = defaultdict(list)
        for kind in cell.kinds:
            most = int(batch.first_rooms[kind][list(cell.nodes)].sum())
            if not most:
                continue
            var = self.model.new_int_var(0, most, "")
            self.model.add_hint(var, now[kind])
            self._pods[number, kind] = var
            self._supply[number, kind] = [(var, 1)]
            for slot, count in batch.pods[kind].slots:
                needed[slot].append((var, count))
        for resource, amount in enumerate(cell.free):
            terms = [
                (self._pods[number, kind], int(batch.needs[kind, resource]))
                for kind in cell.kinds
                if (number, kind) in self._pods and batch.needs[kind, resource]
            ]
            if terms:
                self.model.add(cpsat.total(terms) <= amount)
        if self._is_plain(cell, wanted):
            for _, count in cell.parts:
                terms = [term for terms in needed.values() for term in terms]
                if terms:
                    self.model.add(cpsat.total(terms) <= count)
            return
        served = loads.served_on(cell.nodes)
        supply: dict[int, list[Term]] = defaultdict(list)
        for start, count in cell.parts:
            uses: list[Term] = []
            own = served.get(start, [])
            for pattern in self._part_patterns.of(start, wanted, own):
                var = self.model.new_int_var(0, count, "")
                held = [slots for slots in own if contains(pattern, slots)]
                self.model.add_hint(var, len(held))
                own = [slots for slots in own if slots not in held]
                self._part_uses[number, start, pattern] = var
                uses.append((var, 1))
                for slot, often in Counter(pattern).items():
                    supply[slot].append((var, -often))
            if uses:
                self.model.add(cpsat.total(uses) <= count)
        for slot, terms in needed.items():
            self.model.add(cpsat.total([*terms, *supply[slot]]) <= 0)

    def _is_plain(self, cell: ModelCell, wanted: frozenset[int]) -> bool:
        """True if all parts are of one sort that serves any one slot."""
        if len(cell.parts) != 1:
            return False
        start, after = cell.parts[0][0], self._batch.states.after
        return all(
            after[start, slot] >= 0 and not (after[after[start, slot]] >= 0).any()
            for slot in wanted
        )

    def _balance(self) -> None:
        """Let every narrowest domain supply what it serves, of itself and of others.

        Blocks in wider domains, and pods that may be anywhere, say how many of their
        pods each of the narrowest serves: rows stay short.
        """
        leaves: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, cell in enumerate(self.cells):
            leaves[cell.domains].append(number)
        kinds = {kind for _, kind in (*self._uses.terms, *self._uses.fixed)}
        for kind in sorted(kinds):
            rows = {
                domains: [
                    term
                    for number in numbers
                    for term in self._supply.get((number, kind), ())
                ]
                for domains, numbers in leaves.items()
            }
            fixed: Counter[tuple[int, ...]] = Counter()
            for place in self._list_used(kind):
                terms = self._uses.terms.get((place, kind), [])
                constant = self._uses.fixed.get((place, kind), 0)
                inside = [
                    domains
                    for domains in rows
                    if place[0] < 0 or domains[place[0]] == place[1]
                ]
                if len(inside) == 1:
                    rows[inside[0]] += [(var, -pods) for var, pods in terms]
                    fixed[inside[0]] += constant
                    continue
                served: list[Term] = []
                for domains in inside:
                    most = sum(
                        int(self._batch.first_rooms[kind][list(cell.nodes)].sum())
                        for cell in map(self.cells.__getitem__, leaves[domains])
                    )
                    if most:
                        var = self.model.new_int_var(0, most, "")
                        served.append((var, 1))
                        rows[domains].append((var, -1))
                whole = [*served, *((var, -pods) for var, pods in terms)]
                if whole or constant:
                    self.model.add(cpsat.total(whole) == constant)
            for domains, row in rows.items():
                if row or fixed[domains]:
                    self.model.add(cpsat.total(row) >= fixed[domains])

    def _list_used(self, kind: int) -> list[Place]:
        """List the places that blocks have pods of a kind in."""
        keys = (*self._uses.terms, *self._uses.fixed)
        return sorted({place for place, own in keys if own == kind})

    @property
    def size(self) -> int:
        """Count the variables of the model."""
        return len(self.model.proto.variables)

    # --- solving ---------------------------------------------------------------------

    def _list_choices(self) -> Iterator[_Choice]:
        """Go through the gangs that may come or leave, by sort or each by itself."""
        sorts = self._batch.sorts
        for sort, var in self._gangs.items():
            now = len(self._inside.get(sort, ()))
            most = now + len(self._coming.get(sort, ()))
            yield _Choice(var, sorts[sort].priority, sorts[sort].weight, now, most)
        for gang, var in self._stays.items():
            own = sorts[self._batch.sort_of[gang]]
            yield _Choice(var, own.priority, own.weight, 1, 1)

    def _maximize(self) -> None:
        """Weigh gangs so that no lower priority outweighs a higher one.

        Priorities for which 64 bits are not enough keep what they have.
        """
        choices = list(self._list_choices())
        most: Counter[int] = Counter()
        for choice in choices:
            most[choice.priority] += choice.most * choice.weight
        weighed, size = list[int](), 1
        for priority in sorted(most, reverse=True):
            size *= most[priority] + 1
            if weighed and size > MOST_WORTH:
                break
            weighed.append(priority)
        factors, factor = dict[int, int](), 1
        for priority in reversed(weighed):
            factors[priority] = factor
            factor *= most[priority] + 1
        terms: list[Term] = []
        self._before = 0
        for choice in choices:
            if choice.priority not in factors:
                self.model.add(choice.var == choice.now)
            elif choice.weight:
                worth = factors[choice.priority] * choice.weight
                terms.append((choice.var, worth))
                self._before += worth * choice.now
        self._has_objective = bool(terms)
        if terms:
            self._objective = cpsat.total(terms)
            self.model.maximize(self._objective)

    def solve(self, work: Work, limit: float, bound: int | None = None) -> Decided:
        """Solve, and carry out what is at least as good; `bound`: of the objective."""
        if not self._has_objective:
            return Decided(is_better=False, is_solved=True)
        if bound is not None:
            self.model.add(self._objective <= bound)
        outcome = cpsat.solve(self.model, work_limit=limit, seed=1, feasibility=False)
        work.spend_units(outcome.work)
        if not isinstance(outcome, cpsat.Solved):
            solved = isinstance(outcome, cpsat.Infeasible)
            return Decided(is_better=False, is_solved=solved)
        if outcome.value_reached < self._before:
            return Decided(is_better=False, is_solved=False)
        found = outcome.whole_bound if self._part_patterns.is_complete else None
        is_better = outcome.value_reached > self._before
        done = carry_out(self._batch, self._loads, self._read(outcome))
        return Decided(
            is_better=is_better and done, is_solved=outcome.optimal, bound=found
        )

    def _read(self, outcome: cpsat.Solved) -> Chosen:
        """Read what was chosen: gangs, domains of blocks, places on nodes."""
        wholes: dict[int, list[int]] = {}
        for sort, var in self._gangs.items():
            gangs = (*self._inside.get(sort, ()), *self._coming.get(sort, ()))
            wholes[sort] = list(gangs[: outcome.value(var)])
        gone = [g for g, var in self._stays.items() if not outcome.value(var)]
        kept = {
            gang: self._list_kept(gang) for gang in self._partial if gang not in gone
        }
        domains: dict[tuple[int, Path, Place], list[int]] = defaultdict(list)
        for (owner, path, outer, domain), var in self._blocks.items():
            domains[owner, path, outer] += [domain] * outcome.value(var)
        offers: list[Offer] | None = []
        for number, cell in enumerate(self.cells):
            own = self._read_cell(number, cell, outcome)
            offers = None if own is None or offers is None else [*offers, *own]
        touched = [gang for gangs in self._inside.values() for gang in gangs]
        return Chosen(
            nodes=self._scope.nodes,
            touched=(*touched, *self._partial),
            wholes=wholes,
            kept=kept,
            domains=domains,
            offers=offers,
        )

    def _read_cell(
        self, number: int, cell: ModelCell, outcome: cpsat.Solved
    ) -> list[Offer] | None:
        if cell.node_patterns:
            often = [
                outcome.value(self._node_uses[number, index])
                for index in range(len(cell.node_patterns))
            ]
            return offers_of_nodes(cell, often)
        pods = {
            kind: outcome.value(var)
            for kind in cell.kinds
            if (var := self._pods.get((number, kind))) is not None
        }
        uses: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for (own, start, pattern), var in self._part_uses.items():
            if own == number:
                uses[start] += [pattern] * outcome.value(var)
        return offers_of_parts(self._batch, cell, pods, uses)
