"""Gangs one after the other, each pod where least of what is left loses its value.

For a single pod nothing can be better, so it is proven. For more pods it is an answer
to begin with: see `solver/engines/leftover.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from solver.engines.blocks import Instance
from solver.engines.greedy.block_placing import BlockPlacing, Turn
from solver.engines.greedy.node_table import NodeTable
from solver.engines.greedy.states import DeviceStates, Integers
from solver.engines.greedy.used_node import UsedNode
from solver.engines.pattern.extract import place_in_turn
from solver.engines.pattern.states.graph import Graph
from solver.kinds.counting import is_one_to_a_node
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind
from solver.placement import GangPlacement, PodPlacement


class GreedySearch:
    """Answers to one batch; each begins with the nodes as they are."""

    def __init__(
        self,
        demand: Demand,
        kinds: Sequence[NodeKind],
        *,
        weighs_all: bool = False,
        trees: Sequence[Sequence[Instance]] = (),
    ) -> None:
        """`weighs_all`: see `NodeTable`; `trees`: the blocks of each gang, if any."""
        self._demand = demand
        self._kinds = kinds
        self._weighs_all = weighs_all
        self._trees = trees
        if trees:
            self._adds_up = is_one_to_a_node(demand, kinds)
            self._domain_of = _number_domains(kinds)
        self._states = DeviceStates(demand)
        self._table: NodeTable | None = None

    def run(self, gangs: Iterable[int]) -> tuple[GangPlacement, ...]:
        """Take gangs in, in this order, each if there is room for all of it.

        Raises:
            PatternLimitError: there is too much to count.
        """
        table = self._clear_table()
        turns_by_gang: dict[int, list[Turn]] = {}
        for gang in gangs:
            turns = self._place_gang(table, gang)
            if turns is not None:
                turns_by_gang[gang] = turns
        return extract_turns(self._demand, table.used, turns_by_gang)

    @property
    def is_exact(self) -> bool:
        """True if each pod so far came where it loses least, of all that is left."""
        return self._table is None or self._table.is_exact

    def to_graph(self) -> Graph:
        """Return the states that were met by any answer so far."""
        return self._states.to_graph(self._kinds, sum(self._demand.pods))

    def _clear_table(self) -> NodeTable:
        if self._table is None:
            self._table = NodeTable(
                self._demand, self._kinds, self._states, weighs_all=self._weighs_all
            )
        self._table.clear()
        return self._table

    def _place_gang(self, table: NodeTable, gang: int) -> list[Turn] | None:
        """Place all pods of a gang, those that ask for most first; or none."""
        demand = self._demand
        if self._trees:
            domains, adds_up = self._domain_of, self._adds_up
            tree = self._trees[gang]
            return BlockPlacing(demand, table, tree, domains, adds_up=adds_up).place()
        # Gangs whose members are split into cells are never placed like this.
        kinds = [cells[0].kind for cells in demand.cells_of[gang]]
        asked = [demand.member_kinds[kind].asked for kind in kinds]
        turns: list[Turn] = []
        for member in sorted(range(len(kinds)), key=lambda m: -asked[m]):
            for _ in range(demand.gangs[gang].members[member].count):
                node = table.place(kinds[member])
                if node is None:
                    for _, used, _ in reversed(turns):
                        table.undo(used)
                    return None
                turns.append((member, node, len(node.pods) - 1))
        return turns


def _number_domains(kinds: Sequence[NodeKind]) -> list[Integers]:
    """Number the domains of each label, for each node kind; -1: its nodes lack it."""
    found = []
    for values in zip(*(kind.shape.domains for kind in kinds), strict=True):
        numbers: dict[str | None, int] = {None: -1}
        codes = [numbers.setdefault(value, len(numbers) - 1) for value in values]
        found.append(np.array(codes, np.int64))
    return found


def extract_turns(
    demand: Demand, used: Iterable[UsedNode], turns_by_gang: Mapping[int, list[Turn]]
) -> tuple[GangPlacement, ...]:
    """Name the devices of every gang that is in, most urgent gang first.

    The turns of a member are in the order of its pods.
    """
    members = demand.member_kinds
    placed: dict[int, list[PodPlacement]] = {
        node.row: list(
            place_in_turn(
                (node.view, node.order),
                [(members[pod.member], pod.placement) for pod in node.pods],
            )
        )
        for node in used
    }
    placements = []
    for gang, turns in sorted(turns_by_gang.items()):
        pods: list[list[PodPlacement]] = [[] for _ in demand.gangs[gang].members]
        for member, node, number in turns:
            pods[member].append(placed[node.row][number])
        placements.append(GangPlacement(gang, tuple(map(tuple, pods))))
    return tuple(placements)
