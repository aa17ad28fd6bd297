"""The nodes of a batch, numbered by name, and those that are worth a look.

Nodes of one kind that no pod came to are as good as each other, so the first of them
stands for all. They are used in order and given back in the opposite one, so those in
use are always the first of their kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from contracts.ids import NodeName
from solver.engines.construct.undo import Table, UndoLog
from solver.kinds.counting import bound_pods
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind, NodeView


class OpenNodes:
    """The nodes of some kinds."""

    def __init__(
        self, demand: Demand, kinds: Sequence[NodeKind], ledger: UndoLog
    ) -> None:
        self._members = demand.member_kinds
        self._kinds = kinds
        self._ledger = ledger
        self.views: tuple[NodeView, ...] = tuple(
            sorted(
                (view for kind in kinds for view in kind.nodes),
                key=lambda view: view.name,
            )
        )
        self._numbers = {view.name: number for number, view in enumerate(self.views)}
        self._nodes = [
            [self._numbers[view.name] for view in kind.nodes] for kind in kinds
        ]
        self._kind_of = {
            node: kind for kind, nodes in enumerate(self._nodes) for node in nodes
        }
        self._used: Table[int] = {}
        """For each kind, how many of its nodes have pods; they are the first ones."""
        self._fitting: dict[int, list[tuple[int, int]]] = {}

    def begin_with(self, names: Iterable[NodeName]) -> None:
        """Put the nodes first that have pods from the beginning."""
        used = set(names)
        for kind, nodes in enumerate(self._nodes):
            with_pods = [node for node in nodes if self.views[node].name in used]
            others = [node for node in nodes if self.views[node].name not in used]
            self._nodes[kind] = [*with_pods, *others]
            if with_pods:
                self._ledger.write(self._used, kind, len(with_pods))

    def find(self, name: NodeName) -> int:
        """Find the number of a node."""
        return self._numbers[name]

    def use(self, node: int) -> None:
        """Record that a pod came to a node."""
        kind = self._kind_of[node]
        used = self._used.get(kind, 0)
        if used < len(self._nodes[kind]) and self._nodes[kind][used] == node:
            self._ledger.write(self._used, kind, used + 1)

    def list_used(self) -> list[int]:
        """List the nodes that have pods."""
        return [
            node
            for kind, nodes in enumerate(self._nodes)
            for node in nodes[: self._used.get(kind, 0)]
        ]

    def list_for(self, member: int) -> Iterator[int]:
        """Go through the nodes that may have room for a pod, by counting."""
        for kind, _ in self._list_fitting(member):
            yield from self._nodes[kind][: self._used.get(kind, 0) + 1]

    def list_all(self) -> Iterator[int]:
        """Go through the nodes in use, and one of each kind besides."""
        for kind, nodes in enumerate(self._nodes):
            yield from nodes[: self._used.get(kind, 0) + 1]

    def count_room(self, member: int, label: int | None, domain: object) -> int:
        """Bound the pods that fit nodes with a value of a label; None: all nodes."""
        return sum(
            pods * len(self._nodes[kind])
            for kind, pods in self._list_fitting(member)
            if label is None or self._kinds[kind].shape.domains[label] == domain
        )

    def _list_fitting(self, member: int) -> list[tuple[int, int]]:
        """List the kinds that a pod fits, with how many of them do."""
        if member not in self._fitting:
            bounds = (
                (number, bound_pods(self._members[member], kind.shape))
                for number, kind in enumerate(self._kinds)
            )
            self._fitting[member] = [pair for pair in bounds if pair[1]]
        return self._fitting[member]
