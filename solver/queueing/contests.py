"""Tournaments of gangs: in each cohort its queues and cohorts, then among the roots.

Each child of a cohort has one candidate, the winner of its own contest. A change costs
the logarithm of the children on the way to the root. Knows no quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from msgspec import Struct

from contracts.ids import GangKey
from solver.problem.quota.tree import NodeKey, QuotaNode, QuotaShare
from solver.queueing.turns import LineName

Urgency = tuple[QuotaShare, int, GangKey]
"""A share, the age of the gang, and which it is: the smaller comes first."""
WITHIN = QuotaShare()
_TOP: NodeKey = (True, "")


class Head(Struct):
    """The first gang of a line, and the share of each node that it stands for."""

    gang: GangKey
    age: int
    node: QuotaNode | None
    """Its ClusterQueue; None: it has none."""
    shares: Callable[[], tuple[QuotaShare, ...]]
    """Return those of its queue and the cohorts of that now, the root left out."""
    is_guess: bool = False
    """True if the shares are only the least that they may be."""

    def at(self, level: int) -> Urgency:
        """Return by what it is compared: its queue's share at 0, then its cohorts'."""
        shares = self.shares()
        share = shares[level] if level < len(shares) else WITHIN
        return (share, self.age, self.gang)

    @property
    def top(self) -> Urgency:
        """Return by what it is compared with those of other trees."""
        return self.at(max(len(self.shares()) - 1, 0))


class _Contest:
    """The candidates of one node's children."""

    __slots__ = ("_candidates", "_heap")

    def __init__(self) -> None:
        self._candidates: dict[NodeKey, tuple[Urgency, LineName]] = {}
        self._heap: list[tuple[Urgency, NodeKey, LineName]] = []

    def put(self, child: NodeKey, candidate: tuple[Urgency, LineName] | None) -> None:
        """Take a child's candidate; None: it has none any more."""
        if candidate is None:
            self._candidates.pop(child, None)
        elif self._candidates.get(child) != candidate:
            self._candidates[child] = candidate
            heappush(self._heap, (candidate[0], child, candidate[1]))

    def best(self) -> LineName | None:
        """Return the winner; None: there is no candidate."""
        while self._heap:
            urgency, child, line = self._heap[0]
            if self._candidates.get(child) == (urgency, line):
                return line
            heappop(self._heap)
        return None


class Tournament:
    """The heads of all lines of one rank, and who of them is next."""

    def __init__(self) -> None:
        self.heads: dict[LineName, Head] = {}
        self.stale: set[LineName] = set()
        """Lines that must be looked at again before anybody is chosen."""
        self.added = 0
        """By which it is known whether lines came since."""
        self._contests: dict[NodeKey, _Contest] = {}
        self._below: dict[NodeKey, dict[LineName, None]] = {}

    def put(self, line: LineName, head: Head) -> None:
        """Let a gang be the first of its line."""
        self.heads[line] = head
        for node in () if head.node is None else head.node.path:
            self._below.setdefault(node.key, {})[line] = None
        self._update(line, head)

    def remove(self, line: LineName) -> None:
        """Take a line out, if it is here."""
        head = self.heads.pop(line, None)
        if head is not None:
            for node in () if head.node is None else head.node.path:
                self._below[node.key].pop(line, None)
            self._update(line, head)

    def best(self) -> LineName | None:
        """Return the line that is next; None: there is none."""
        return self._contest(_TOP).best()

    def mark_stale(self, node: QuotaNode) -> None:
        """Let all lines below a node be looked at again."""
        self.stale.update(self._below.get(node.key, ()))

    def compare_again(self, node: QuotaNode) -> None:
        """Compare the cohorts of a node by the shares that they have now."""
        if node.parent is not None:
            self._pass_up(node.path)

    def _contest(self, node: NodeKey) -> _Contest:
        found = self._contests.get(node)
        if found is None:
            found = self._contests[node] = _Contest()
        return found

    def _update(self, line: LineName, head: Head) -> None:
        path = () if head.node is None else head.node.path
        key: NodeKey = path[0].key if path else (False, f"/{line[1]}")
        own = line if line in self.heads else None
        if len(path) > 1:
            self._contest(path[1].key).put(key, self._candidate(own, 0))
            self._pass_up(path)
        else:
            self._contest(_TOP).put(key, self._top_candidate(own))

    def _pass_up(self, path: Sequence[QuotaNode]) -> None:
        """Let the winner below each cohort of a path stand for it in the next one."""
        for level, (cohort, above) in enumerate(pairwise(path[1:]), start=1):
            winner = self._contest(cohort.key).best()
            contest = self._contest(above.key)
            contest.put(cohort.key, self._candidate(winner, level))
        root = path[-1].key
        winner = self._contest(root).best()
        self._contest(_TOP).put(root, self._top_candidate(winner))

    def _candidate(
        self, winner: LineName | None, level: int
    ) -> tuple[Urgency, LineName] | None:
        return None if winner is None else (self.heads[winner].at(level), winner)

    def _top_candidate(
        self, winner: LineName | None
    ) -> tuple[Urgency, LineName] | None:
        return None if winner is None else (self.heads[winner].top, winner)
