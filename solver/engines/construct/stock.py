"""What the nodes have left of devices and resources while pods come to them.

Devices are counted by group. What several nodes see is counted once, by who it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from solver.engines.construct.undo import Table, UndoLog
from solver.kinds.demand import MemberKind, RequestAlternative
from solver.kinds.shapes import GroupShape, NodeView


class Stock:
    """The devices and resources of some nodes, numbered as they are given."""

    def __init__(
        self,
        members: Sequence[MemberKind],
        views: Sequence[NodeView],
        ledger: UndoLog,
    ) -> None:
        self._views = views
        self._ledger = ledger
        self._taken: Table[int] = {}
        """Devices of a group that pods have for themselves."""
        self._shared: Table[tuple[int, ...]] = {}
        """What shares of a device consume of its capacities."""
        self._drawn: Table[int] = {}
        """Of each counter."""
        self._allowed: Table[tuple[str, ...]] = {}
        """Compatibility groups that are left of a counter set."""
        self._left: Table[tuple[int | None, ...]] = {}
        """Of each resource of a node."""
        self._needs = [
            [pair for pair in enumerate(member.needs) if pair[1]] for member in members
        ]
        self._uses: Table[int] = {}
        """Of all devices of a node."""
        self._looks: Table[int] = {}
        """What a node has come to: equal numbers mean equal devices left."""
        self._numbers: dict[Hashable, int] = {}
        self._has_far = [
            any(group.identity for group in view.shape.groups)
            or any(counter.identity for counter in view.shape.counters)
            or any(identity for _, identity in view.shape.sets)
            for view in views
        ]
        self._sizes = [sum(group.size for group in view.shape.groups) for view in views]

    def count_free(self, node: int) -> int:
        """Count the devices of a node, less the uses of them."""
        return self._sizes[node] - self._uses.get(node, 0)

    def look_of(self, node: int) -> int | None:
        """Say what a node has left; None: what happens elsewhere decides it, too."""
        if self._has_far[node]:
            return None
        look = self._looks.get(node)
        return self._number(self._views[node].shape) if look is None else look

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def count_left(self, node: int, group: int) -> int:
        """Count the devices of a group that nobody has; a shared one is always left."""
        shape = self._views[node].shape.groups[group]
        return shape.size - self._taken.get(key_of(shape, node, group), 0)

    def count_drawn_left(self, node: int, group: int) -> int:
        """Add up what is left of the counters that a device of a group draws from."""
        shape = self._views[node].shape
        return sum(
            shape.counters[number].left
            - self._drawn.get(shape.counters[number].identity or (node, number), 0)
            for number, _ in shape.groups[group].traits.draws
        )

    def has_resources(self, node: int, kind: int) -> bool:
        """Whether a node has what a pod needs besides devices."""
        left = self._left.get(node) or self._views[node].shape.free
        for resource, need in self._needs[kind]:
            amount = left[resource]
            if amount is not None and amount < need:
                return False
        return True

    def take_resources(self, node: int, kind: int) -> None:
        """Count what a pod needs besides devices."""
        left = list(self._left.get(node) or self._views[node].shape.free)
        for resource, need in self._needs[kind]:
            amount = left[resource]
            if amount is not None:
                left[resource] = amount - need
        self._ledger.write(self._left, node, tuple(left))

    def take(self, node: int, group: int, ask: RequestAlternative) -> bool:
        """Take a device, or a share of it; False: there is none.

        What was written in vain is still to be undone then. Not for admin access, which
        takes nothing.
        """
        shape = self._views[node].shape.groups[group]
        key = key_of(shape, node, group)
        is_first = True
        if shape.traits.left is not None:
            costs = shape.traits.costs[ask.kind]
            used = self._shared.get(key)
            is_first = used is None
            after = tuple(
                amount + cost
                for amount, cost in zip(used or (0,) * len(costs), costs, strict=True)
            )
            pairs = zip(after, shape.traits.left, strict=True)
            if any(amount > left for amount, left in pairs):
                return False
            self._ledger.write(self._shared, key, after)
        else:
            taken = self._taken.get(key, 0)
            if taken >= shape.size:
                return False
            self._ledger.write(self._taken, key, taken + 1)
        self._ledger.write(self._uses, node, self._uses.get(node, 0) + 1)
        look = self.look_of(node)
        if look is not None:
            kind = -1 if shape.traits.left is None else ask.kind
            look = self._number((look, group, kind))
            self._ledger.write(self._looks, node, look)
        return not is_first or (self._draw(node, shape) and self._agree(node, group))

    def _draw(self, node: int, group: GroupShape) -> bool:
        counters = self._views[node].shape.counters
        for number, amount in group.traits.draws:
            key: Hashable = counters[number].identity or (node, number)
            drawn = self._drawn.get(key, 0) + amount
            if drawn > counters[number].left:
                return False
            self._ledger.write(self._drawn, key, drawn)
        return True

    def _agree(self, node: int, group: int) -> bool:
        """Narrow the compatibility groups of counter sets to those of a device."""
        shape = self._views[node].shape
        for number, names in shape.groups[group].traits.groups:
            left, identity = shape.sets[number]
            key: Hashable = identity or (node, number)
            allowed = self._allowed.get(key, left)
            common = (
                names
                if allowed is None
                else tuple(name for name in allowed if name in names)
            )
            if not common:
                return False
            self._ledger.write(self._allowed, key, common)
        return True


def key_of(shape: GroupShape, node: int, group: int) -> Hashable:
    """Say who the devices of a group are."""
    return shape.identity or (node, group)
