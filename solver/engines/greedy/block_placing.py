"""One gang placed block by block, each in the tightest domain that has room.

Where it is one block and no node takes two of its pods, what they lose adds up, so the
domain where that is least is found by looking at each node once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.engines.blocks import Instance, list_inner
from solver.engines.greedy.node_table import IMPOSSIBLE, NodeTable
from solver.engines.greedy.states import Integers
from solver.engines.greedy.used_node import UsedNode
from solver.kinds.demand import Demand

TRIES = 8
"""Domains that are tried for a block, where counting says that it fits."""
Turn = tuple[int, UsedNode, int]
"""(member of its gang, node, number on the node) of a pod."""


class BlockPlacing:
    """Places one gang on the nodes of a table, or takes it back."""

    def __init__(
        self,
        demand: Demand,
        table: NodeTable,
        instances: Sequence[Instance],
        domain_of: Sequence[Integers],
        *,
        adds_up: bool = False,
    ) -> None:
        """`domain_of`: by label, of each node kind; `adds_up`: see the module."""
        self._table = table
        self._domain_of = domain_of
        self._adds_up = adds_up
        self._asked = [member.asked for member in demand.member_kinds]
        self._instances = instances
        self._inner = list_inner(instances)
        self._pods = [i.block.total.total() for i in instances]
        self._placed: list[tuple[int, int, UsedNode, int]] = []
        """(member, index, node, number on the node)."""

    def place(self) -> list[Turn] | None:
        """Place all its pods, those that ask for most first; None: there is no room.

        Raises:
            TooManyPlacementsError: on some node there are too many ways to place one.
        """
        if not self._place_block(0, None):
            self._undo(0)
            return None
        ordered = sorted(self._placed, key=lambda placed: placed[:2])
        return [(member, node, number) for member, _, node, number in ordered]

    def _place_block(self, block: int, kinds: Integers | None) -> bool:
        """Place a block on nodes of some kinds; what was placed stays if not."""
        label = self._instances[block].block.label
        if label < 0:
            return self._fill(block, kinds)
        domains, kept = self._domain_of[label], len(self._placed)
        inside = domains if kinds is None else np.where(kinds, domains, -1)
        for domain in self._list_domains(block, inside)[:TRIES]:
            if self._fill(block, inside == domain):
                return True
            self._undo(kept)
        return False

    def _fill(self, block: int, kinds: Integers | None) -> bool:
        inner = sorted(self._inner[block], key=lambda number: -self._pods[number])
        if not all(self._place_block(number, kinds) for number in inner):
            return False
        cells = self._instances[block].cells
        for cell in sorted(cells, key=lambda own: -self._asked[own.kind]):
            for index in range(cell.first, cell.first + cell.pods):
                among = None
                if kinds is not None:
                    among = np.flatnonzero(kinds[self._table.kind_of])
                node = self._table.place(cell.kind, among)
                if node is None:
                    return False
                number = len(node.pods) - 1
                self._placed.append((cell.member, index, node, number))
        return True

    def _undo(self, kept: int) -> None:
        """Take all pods away but the first `kept`."""
        while len(self._placed) > kept:
            self._table.undo(self._placed.pop()[2])

    def _list_domains(self, block: int, domains: Integers) -> list[int]:
        """List the domains that have room by counting, where least is lost first."""
        count = int(domains.max(initial=-1)) + 1
        by_row = domains[self._table.kind_of]
        known = by_row >= 0
        total = self._instances[block].block.total
        if self._adds_up and len(total) == 1 and len(self._instances) == 2:
            ((member, pods),) = total.items()
            cheapest = self._list_cheapest(member, pods, by_row, count)
            if cheapest:
                return cheapest
        has_room, left = np.ones(count, np.bool_), np.zeros(count)
        for member, pods in total.items():
            rooms = self._table.count_room(member)[known]
            room = np.bincount(by_row[known], rooms, count)
            has_room &= room >= pods
            left += room
        order = np.argsort(left, kind="stable")
        return [int(domain) for domain in order if has_room[domain]]

    def _list_cheapest(
        self, member: int, pods: int, by_row: Integers, count: int
    ) -> list[int]:
        """List the domains with nodes for so many pods, by what these lose there.

        By their first choices: there may be none for these.
        """
        losses, nodes = self._table.count_losses(member)
        left, cost = [pods] * count, [0] * count
        for row in np.argsort(losses, kind="stable").tolist():
            domain = int(by_row[row])
            if losses[row] == IMPOSSIBLE or domain < 0:
                continue
            given = min(left[domain], int(nodes[row]))
            left[domain] -= given
            cost[domain] += given * int(losses[row])
        found = [domain for domain in range(count) if not left[domain]]
        return sorted(found, key=cost.__getitem__)
