"""Parts of gangs dealt to domains by patterns of nodes, each pod to a node."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from solver.engines.domains.joint import (
    AlikeNodes,
    Dealt,
    JointPacking,
    PartKind,
    Pattern,
)
from solver.engines.domains.table import DomainTable, Labels, NodeSlot, Site
from solver.engines.greedy.node_table import Look
from solver.kinds.demand import Demand

MOST_LISTED = 4_000
"""Sets of pods that are looked at for nodes that are alike."""
MOST_LOOKS = 200
"""Sorts of nodes whose patterns are listed."""


class PartDemand(Struct, frozen=True):
    """A part of a gang: (member, kind, pods) in the order of placing."""

    gang: int
    labels: Labels
    pods: tuple[tuple[int, int, int], ...]
    firsts: tuple[int, ...]
    """Index of the first pod of each."""
    needs: tuple[tuple[int, int], ...]
    """(member kind, pods)."""


class DealtPart(Struct, frozen=True):
    """A part, the domain that it goes to, and a node for each of its pods."""

    part: PartDemand
    domain: int
    slots: tuple[NodeSlot, ...]


class Dealer:
    """Deals the parts of one batch; `work` is what it took."""

    def __init__(self, demand: Demand, table: DomainTable, seed: int) -> None:
        self._demand = demand
        self._table = table
        self._seed = seed
        self.work = 0.0

    def deal(
        self,
        labels: Labels,
        parts: Sequence[PartDemand],
        loose: Mapping[int, int],
        work_limit: float,
    ) -> list[DealtPart] | None:
        """Deal parts of some labels; None: nodes have too many patterns.

        `loose`: pods by member kind that want room, wherever it is.
        """
        members = sorted({kind for part in parts for kind, _ in part.needs} | {*loose})
        sites = self._table.list_sites(labels)
        patterns = self._list_patterns(sites, members)
        if patterns is None:
            return None
        alike = defaultdict[tuple[tuple[int, int], ...], list[PartDemand]](list)
        for part in parts:
            alike[part.needs].append(part)
        packing = JointPacking(
            [
                AlikeNodes(site.domain, len(site.rows), patterns[site.look])
                for site in sites
            ],
            [PartKind(len(own), needs) for needs, own in alike.items()],
            loose,
            [max(1, kind.asked) for kind in self._demand.member_kinds],
            work_limit=work_limit,
            seed=self._seed,
        )
        dealt = packing.run()
        self.work += packing.work
        return list(_find_slots(sites, dealt, list(alike.values())))

    def _list_patterns(
        self, sites: Sequence[Site], members: Sequence[int]
    ) -> dict[Look, tuple[Pattern, ...]] | None:
        found = dict[Look, tuple[Pattern, ...]]()
        for look in dict.fromkeys(site.look for site in sites):
            patterns = self._table.list_patterns(look, members, MOST_LISTED)
            if patterns is None or len(found) == MOST_LOOKS:
                return None
            found[look] = patterns
        return found


def _find_slots(
    sites: Sequence[Site], dealt: Dealt, alike: Sequence[Sequence[PartDemand]]
) -> Iterator[DealtPart]:
    """Give each pod of each part a node whose pattern has a place for it."""
    slots = defaultdict[tuple[int, int], deque[NodeSlot]](deque)
    for site, chosen in zip(sites, dealt.patterns, strict=True):
        taken = (p for p, nodes in sorted(chosen.items()) for _ in range(nodes))
        for row, pattern in zip(site.rows, taken, strict=False):
            slot = NodeSlot(row)
            for member, pods in pattern:
                slots[site.domain, member].extend([slot] * pods)
    queues = [iter(own) for own in alike]
    for domain, inside in sorted(dealt.parts.items()):
        for kind, count in sorted(inside.items()):
            for part in islice(queues[kind], count):
                found = tuple(
                    slots[domain, member].popleft()
                    for _, member, pods in part.pods
                    for _ in range(pods)
                )
                yield DealtPart(part, domain, found)


def count_loose(
    demand: Demand, parts: Sequence[PartDemand], others: Sequence[int]
) -> Counter[int]:
    """Count the pods of some parts, and of gangs that may be anywhere."""
    pods = Counter[int]()
    for part in parts:
        pods.update(dict(part.needs))
    for gang in others:
        for cells in demand.cells_of[gang]:
            for cell in cells:
                pods[cell.kind] += cell.pods
    return pods
