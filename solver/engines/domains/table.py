"""All nodes as rows, by the domains that they are in: room there, and who was placed.

A domain is the nodes that have each of some labels with one value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.engines.greedy.node_table import (
    IMPOSSIBLE,
    NodeTable,
)
from solver.engines.greedy.search import Turn
from solver.engines.greedy.states import DeviceStates, Integers
from solver.engines.greedy.used_node import UsedNode
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind

Labels = tuple[int, ...]
"""Indices into `Query.labels`."""


class DomainTable:
    """The nodes of one batch; `place` changes them, `undo` takes that back."""

    def __init__(
        self, demand: Demand, kinds: Sequence[NodeKind], states: DeviceStates
    ) -> None:
        """Make a table without pods.

        Raises:
            PatternLimitError: there is too much to count.
        """
        self._kinds = kinds
        self._table = NodeTable(demand, kinds, states)
        self._domains: dict[Labels, tuple[Integers, int]] = {}
        """By labels: of each node kind its domain, -1 for none; how many there are."""

    @property
    def used(self) -> list[UsedNode]:
        """The nodes with pods."""
        return self._table.used

    def count_domains(self, labels: Labels) -> int:
        """Count the domains that labels make."""
        return self._sort(labels)[1]

    def count_room(self, labels: Labels, member: int) -> Integers:
        """Bound the pods of a member kind that each domain has room for."""
        domains, count = self._sort(labels)
        by_row = domains[self._table.kind_of]
        known = by_row >= 0
        room = self._table.count_room(member)[known]
        return np.bincount(by_row[known], room, count).astype(np.int64)

    def find_cheapest(self, labels: Labels, pods: int) -> int | None:
        """Find the domain where pods of the first kind lose least, each on its node.

        By first choices alone; None: no domain has so many nodes for them. Of equal
        ones the first.

        Raises:
            TooManyPlacementsError: on some node there are too many ways to place one.
        """
        by_kind, count = self._sort(labels)
        losses, nodes = self._table.count_losses(0)
        by_row = by_kind[self._table.kind_of]
        left, cost = [pods] * count, [0] * count
        for row in np.argsort(losses, kind="stable").tolist():
            domain = int(by_row[row])
            if losses[row] == IMPOSSIBLE or domain < 0:
                continue
            given = min(left[domain], int(nodes[row]))
            left[domain] -= given
            cost[domain] += given * int(losses[row])
        return min(
            (domain for domain in range(count) if not left[domain]),
            key=cost.__getitem__,
            default=None,
        )

    def place(
        self, labels: Labels, domain: int, pods: Sequence[tuple[int, int, int]]
    ) -> list[Turn] | None:
        """Place (member, kind, pods) in a domain; None: they do not all fit.

        Raises:
            TooManyPlacementsError: on some node there are too many ways to place one.
        """
        by_kind, _ = self._sort(labels)
        rows: list[int] = np.flatnonzero(
            by_kind[self._table.kind_of] == domain
        ).tolist()
        known, turns = set(rows), list[Turn]()
        for member, kind, count in pods:
            for _ in range(count):
                node = self._table.place(kind, rows)
                if node is None:
                    self.undo(turns)
                    return None
                turns.append((member, node, len(node.pods) - 1))
                if node.row not in known:
                    known.add(node.row)
                    rows.append(node.row)
        return turns

    def undo(self, turns: Sequence[Turn]) -> None:
        """Take the pods away that were placed last."""
        for _, node, _ in reversed(turns):
            self._table.undo(node)

    def _sort(self, labels: Labels) -> tuple[Integers, int]:
        known = self._domains.get(labels)
        if known is None:
            numbers: dict[tuple[str | None, ...], int] = {}
            domains = []
            for kind in self._kinds:
                values = tuple(kind.shape.domains[label] for label in labels)
                has_all = None not in values
                domains.append(
                    numbers.setdefault(values, len(numbers)) if has_all else -1
                )
            known = (np.array(domains, np.int64), len(numbers))
            self._domains[labels] = known
        return known
