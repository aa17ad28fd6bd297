"""Gangs whose parts are in domains, placed at once: by shares, then pod by pod.

First which domain each gang goes to (`packing.py`), the narrowest labels first; then
its pods on nodes there, each where least room is lost. Where shares promised too much,
and for gangs of several parts, the tightest domain that has room.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct, structs

from solver.engines.choose import PATTERN, choose_engine
from solver.engines.domains.packing import WHOLE, ItemKind, Packing
from solver.engines.domains.parts import DomainPart, find_parts, find_whole
from solver.engines.domains.table import DomainTable, Labels
from solver.engines.domains.values import narrow_to_values
from solver.engines.greedy.search import Turn, extract_turns
from solver.engines.greedy.states import DeviceStates
from solver.errors import PatternLimitError
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import spans_pods, without_spanning_rules
from solver.kinds.nodes import find_node_kinds
from solver.placement import GangPlacement
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import DEVICE, MAX_SIZE, ExpectedPart, Problem

MOST_KINDS = 256
"""Member kinds whose room is counted beside each other."""
TRIES = 8
"""Domains that are tried for a part, where counting says that it fits."""


class Placed(Struct, frozen=True):
    """Gangs that have a place, those that no table can tell of, and what it cost."""

    placements: tuple[GangPlacement, ...] = ()
    others: tuple[int, ...] = ()
    """Whose rules are not about labels alone, or whose pods cannot be counted."""
    work: float = 0.0


class PartDemand(Struct, frozen=True):
    """A part of a gang: (member, kind, pods) in the order of placing."""

    gang: int
    labels: Labels
    pods: tuple[tuple[int, int, int], ...]
    firsts: tuple[int, ...]
    """Index of the first pod of each."""
    needs: tuple[tuple[int, int], ...]
    """(member kind, pods)."""


def place_in_domains(
    problem: Problem, gangs: Sequence[GangPart], *, work_limit: float
) -> Placed:
    """Place as many of these gangs as is found, on a cluster as it is.

    `gangs` are numbered as they stand. `work_limit`: deterministic time for choosing
    values and packing together.
    """
    everybody = tuple(range(len(gangs)))
    narrowed = narrow_to_values(problem, gangs, work_limit=work_limit)
    gangs, nobody = narrowed.gangs, Placed(others=everybody, work=narrowed.work)
    demand = Demand(gangs)
    preferring = {r.gang for r in demand.gang_rules if r.has_preferences}
    parts = find_parts(demand, keeps_preferences=True) | {
        gang: (find_whole(demand, gang),)
        for gang in narrowed.numbers
        if not spans_pods(gangs[gang])
    }
    if not parts:
        return nobody
    able = sorted(parts)
    bare = _without_rules(gangs[gang] for gang in able)
    query = structs.replace(bare.query, labels=demand.query.labels)
    kinds = find_node_kinds(problem, query)
    is_countable = len(bare.member_kinds) <= MOST_KINDS
    if not is_countable or choose_engine(bare, kinds).engine != PATTERN:
        return nobody
    work_limit -= narrowed.work
    try:
        table = DomainTable(bare, kinds, DeviceStates(bare))
        search = DomainSearch(
            bare,
            table,
            [parts[gang] for gang in able],
            problem.parameters.seed,
            last=frozenset(n for n, gang in enumerate(able) if gang in preferring),
        )
        found = search.run(work_limit)
    except PatternLimitError:
        return nobody
    work = narrowed.work + search.work
    placements = tuple(GangPlacement(able[item.gang], item.members) for item in found)
    # Of a gang without a place nothing is known where it was asked for more than it
    # needs: another value may do, or less than is preferred.
    gangs_in = {item.gang for item in placements}
    others = tuple(
        gang
        for gang in everybody
        if gang not in parts or gang in (narrowed.numbers | preferring) - gangs_in
    )
    return Placed(placements, others, work)


def _without_rules(gangs: Iterable[GangPart]) -> Demand:
    """Ask without rules that span pods; each member kind is expected as well.

    So room for it is kept.
    """
    bare = tuple(map(without_spanning_rules, gangs))
    plain, samples = Demand(bare), dict[int, MemberPart]()
    for gang, cells in zip(bare, plain.cells_of, strict=True):
        for member, (cell,) in zip(gang.members, cells, strict=True):
            samples.setdefault(cell.kind, member)
    expected = [
        ExpectedPart(
            member=samples[kind],
            weight=1,
            size=min(plain.member_kinds[kind].asked * DEVICE, MAX_SIZE),
        )
        for kind in range(len(plain.member_kinds))
    ]
    return Demand(bare, expected=expected)


class DomainSearch:
    """One run over one table."""

    def __init__(
        self,
        demand: Demand,
        table: DomainTable,
        parts: Sequence[tuple[DomainPart, ...]],
        seed: int,
        *,
        last: frozenset[int] = frozenset(),
    ) -> None:
        """`last`: gangs that are placed after all others."""
        self._demand = demand
        self._last = last
        self._table = table
        self._seed = seed
        self._asked = {
            gang: [self._ask(gang, part) for part in own]
            for gang, own in enumerate(parts)
        }
        self._turns: dict[int, list[tuple[int, int, Turn]]] = {}
        """By gang: (member, index) of each pod, and its turn."""
        self.work = 0.0

    def run(self, work_limit: float) -> tuple[GangPlacement, ...]:
        """Place the gangs of one part by shares, then all others one by one."""
        for labels, parts in self._split_levels():
            limit = work_limit - self.work
            for packed, domain in self._pack(labels, parts, limit):
                self._place_gang(packed.gang, {0: domain})
        return self._finish()

    def _split_levels(self) -> list[tuple[Labels, list[PartDemand]]]:
        """List the gangs of one part by labels, narrowest first.

        Parts that may be anywhere have no domain to be chosen, and what is preferred
        takes none from those that need it.
        """
        by_labels = defaultdict[Labels, list[PartDemand]](list)
        for gang, parts in self._asked.items():
            if len(parts) == 1 and parts[0].labels and gang not in self._last:
                by_labels[parts[0].labels].append(parts[0])
        count = self._table.count_domains
        return sorted(by_labels.items(), key=lambda item: -count(item[0]))

    def _finish(self) -> tuple[GangPlacement, ...]:
        """Place all others one by one, and name the devices of everybody."""
        for gang in sorted(
            self._asked, key=lambda g: (g in self._last, -self._size_of(g), g)
        ):
            if gang not in self._turns:
                self._place_gang(gang, {})
        return self._extract()

    def place_in(self, domain: int) -> tuple[GangPlacement, ...]:
        """Place the first gang, which is of one part, in this domain."""
        self._place_gang(0, {0: domain})
        return self._extract()

    def _extract(self) -> tuple[GangPlacement, ...]:
        turns = {
            gang: [turn for _, _, turn in sorted(own, key=lambda item: item[:2])]
            for gang, own in self._turns.items()
        }
        return extract_turns(self._demand, self._table.used, turns)

    def _ask(self, gang: int, part: DomainPart) -> PartDemand:
        """Say what a part asks for; pods that ask for most come first."""
        members, cells = self._demand.member_kinds, self._demand.cells_of[gang]
        ranges = sorted(
            part.ranges, key=lambda own: -members[cells[own.member][0].kind].asked
        )
        needs = Counter[int]()
        for own in ranges:
            needs[cells[own.member][0].kind] += own.pods
        return PartDemand(
            gang,
            part.labels,
            tuple((own.member, cells[own.member][0].kind, own.pods) for own in ranges),
            tuple(own.first for own in ranges),
            tuple(sorted(needs.items())),
        )

    def _size_of(self, gang: int) -> int:
        """Count the devices of the largest part of a gang."""
        members = self._demand.member_kinds
        return max(
            sum(members[kind].asked * pods for kind, pods in asked.needs)
            for asked in self._asked[gang]
        )

    def _pack(
        self, labels: Labels, parts: list[PartDemand], work_limit: float
    ) -> Iterator[tuple[PartDemand, int]]:
        """Choose a domain for each part, as far as they have room beside each other."""
        same = defaultdict[tuple[object, int], list[PartDemand]](list)
        for part in parts:
            same[part.needs, self._demand.gangs[part.gang].weight].append(part)
        rooms = {
            kind: self._table.count_room(labels, kind).tolist()
            for kind in {kind for part in parts for kind, _ in part.needs}
        }
        kinds = [
            ItemKind(len(alike), worth, _shares(alike[0], rooms))
            for (_, worth), alike in same.items()
        ]
        packing = Packing(kinds, work_limit=work_limit, seed=self._seed)
        queues = [iter(alike) for alike in same.values()]
        for domain, inside in enumerate(packing.run()):
            chosen = [
                part for k, n in sorted(inside.items()) for part in islice(queues[k], n)
            ]
            for part in sorted(chosen, key=lambda part: -self._size_of(part.gang)):
                yield part, domain
        self.work += packing.work

    def _place_gang(self, gang: int, domains: dict[int, int]) -> None:
        """Place the parts of a gang, or none; `domains`: where they are known."""
        placed: list[tuple[PartDemand, list[Turn]]] = []
        numbered = list(enumerate(self._asked[gang]))
        for number, asked in sorted(numbered, key=lambda item: -_pods(item[1])):
            candidates = self._find_tightest(asked)
            if number in domains:
                candidates = [domains[number]]
            for domain in candidates[:TRIES]:
                turns = self._table.place(asked.labels, domain, asked.pods)
                if turns is not None:
                    placed.append((asked, turns))
                    break
            else:
                for _, turns in reversed(placed):
                    self._table.undo(turns)
                return
        self._turns[gang] = [
            item for asked, turns in placed for item in _number(asked, turns)
        ]

    def _find_tightest(self, asked: PartDemand) -> list[int]:
        """List the domains that have room for a part by counting, fullest first."""
        rooms = [self._table.count_room(asked.labels, kind) for kind, _ in asked.needs]
        pods = [pods for _, pods in asked.needs]
        found = []
        for domain, room in enumerate(zip(*(r.tolist() for r in rooms), strict=True)):
            if all(map(int.__ge__, room, pods)):
                found.append((sum(room), domain))
        return [domain for _, domain in sorted(found)]


def _shares(part: PartDemand, rooms: dict[int, list[int]]) -> tuple[int, ...]:
    """Compute what a part takes of each domain; more than there is where it cannot."""
    domains = len(rooms[part.needs[0][0]])
    return tuple(
        sum(
            pods * WHOLE // room if (room := rooms[kind][domain]) else WHOLE + 1
            for kind, pods in part.needs
        )
        for domain in range(domains)
    )


def _pods(asked: PartDemand) -> int:
    return sum(pods for _, pods in asked.needs)


def _number(
    asked: PartDemand, turns: Sequence[Turn]
) -> Iterator[tuple[int, int, Turn]]:
    """Go through the turns of a part, each with its pod: (member, index)."""
    left = iter(turns)
    for (member, _, pods), first in zip(asked.pods, asked.firsts, strict=True):
        for index in range(first, first + pods):
            yield member, index, next(left)
