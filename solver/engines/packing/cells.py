"""Nodes of a neighborhood as a model sees them: cells, each one of three ways.

- *Patterns of nodes*: equal nodes whose multisets of pods can be listed, one integer a
  pattern and cell. Strong, where kinds of pod are few.
- *Merged*: nodes whose amounts cannot bind, for pods that need one slot each: all
  parts of a domain are one cell, with patterns of parts.
- *Single*: a node by itself, pods of each kind as integers, patterns of its parts, and
  rows for its amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from solver.engines.packing.batch import UNLIMITED, Batch, Parts, list_services
from solver.engines.packing.part_states import Integers

MOST_NODE_KINDS = 12
"""Kinds of pod beside which no patterns of nodes are listed."""
MOST_NODE_PATTERNS = 150
MOST_PART_PATTERNS = 60
MOST_LISTED = 4_000
"""Multisets of slots of a part that are looked at."""


class NodePattern(Struct, frozen=True):
    """Pods that fit on one node together, and the parts that serve each."""

    pods: tuple[tuple[int, Parts], ...]
    """(kind, parts)."""

    @property
    def counts(self) -> Counter[int]:
        """Count the pods by kind."""
        return Counter(kind for kind, _ in self.pods)


class Cell(Struct, frozen=True, eq=False):
    """Nodes that a model decides together."""

    nodes: tuple[int, ...]
    domains: tuple[int, ...]
    """Their domain of each label."""
    kinds: tuple[int, ...]
    """Pod kinds that may be there."""
    node_patterns: tuple[NodePattern, ...] = ()
    """None: by patterns of parts."""
    parts: tuple[tuple[int, int], ...] = ()
    """(first state, parts of it)."""
    free: tuple[int, ...] = ()
    """Amounts that bind; none where nodes are merged."""


class PartPatterns:
    """Patterns of parts that a model may use: all maximal ones where they are few."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._pool: dict[int, dict[tuple[int, ...], None]] = {}
        self.is_complete = True

    def note(self, start: int, pattern: tuple[int, ...]) -> None:
        """Remember a pattern of some answer or program."""
        self._pool.setdefault(start, {})[pattern] = None

    def of(
        self, start: int, wanted: frozenset[int], in_use: Iterable[tuple[int, ...]]
    ) -> list[tuple[int, ...]]:
        """List patterns over the wanted slots, those in use among them.

        `is_complete` says from then on whether all maximal ones were listed each time.
        """
        found: dict[tuple[int, ...], None] = {}
        for pattern in (*in_use, *self._pool.get(start, ())):
            kept = tuple(slot for slot in pattern if slot in wanted)
            if kept:
                found[kept] = None
        for pattern in self._list(start, wanted):
            found[pattern] = None
            if len(found) >= MOST_PART_PATTERNS * 2:
                self.is_complete = False
                break
        return _drop_contained(list(found))

    def _list(self, start: int, wanted: frozenset[int]) -> list[tuple[int, ...]]:
        """List maximal multisets of wanted slots, depth first, as far as the limit."""
        after = self._batch.states.after
        slots = sorted(wanted)
        found: dict[tuple[int, ...], None] = {}
        stack: list[tuple[int, int, tuple[int, ...]]] = [(start, 0, ())]
        looked = 0
        while stack and looked < MOST_LISTED:
            looked += 1
            state, first, pattern = stack.pop()
            is_full = not any(after[state, slot] >= 0 for slot in slots)
            if is_full and pattern:
                found[pattern] = None
            for index in range(first, len(slots)):
                target = int(after[state, slots[index]])
                if target >= 0:
                    stack.append((target, index, (*pattern, slots[index])))
        if stack:
            self.is_complete = False
        return list(found)


def _drop_contained(patterns: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Leave out patterns that others contain."""
    counted = sorted(((Counter(p), p) for p in patterns), key=lambda c: -len(c[1]))
    kept: list[tuple[Counter[int], tuple[int, ...]]] = []
    for counts, pattern in counted:
        if not any(counts <= other for other, _ in kept):
            kept.append((counts, pattern))
    return [pattern for _, pattern in kept]


class CellMaker:
    """Makes the cells of neighborhoods."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._node_patterns: dict[
            tuple[tuple[int, ...], bytes, tuple[int, ...]], tuple[NodePattern, ...]
        ] = {}

    def make(self, nodes: Sequence[int], kinds: Sequence[int]) -> list[Cell]:
        """Put nodes together as far as they are alike for pods of some kinds."""
        batch = self._batch
        kept = np.array(sorted(kinds), np.int64)
        alike: dict[tuple[object, ...], list[int]] = {}
        for node in sorted(nodes):
            own = tuple(int(k) for k in kept[batch.fits[kept, node]])
            if own:
                domains = tuple(int(d) for d in batch.domain[:, node])
                starts = tuple(batch.starts[node])
                key = (domains, own, starts, batch.free[node].tobytes())
                alike.setdefault(key, []).append(node)
        if self._can_merge(nodes, kept):
            return self._merge(alike)
        cells: list[Cell] = []
        for (domains, own, *_), members in alike.items():
            patterns: tuple[NodePattern, ...] = ()
            if len(own) <= MOST_NODE_KINDS:  # type: ignore[arg-type]
                patterns = self._patterns(members[0], own)  # type: ignore[arg-type]
            if patterns:
                cells.append(
                    Cell(tuple(members), domains, own, patterns)  # type: ignore[arg-type]
                )
            else:
                cells += [self._single(n, domains, own) for n in members]  # type: ignore[arg-type]
        return cells

    def _single(self, node: int, domains: tuple[int, ...], own: tuple[int, ...]) -> Cell:
        batch = self._batch
        parts = tuple(sorted(Counter(batch.starts[node]).items()))
        free = tuple(int(amount) for amount in batch.free[node])
        return Cell((node,), domains, own, (), parts, free)

    def _can_merge(self, nodes: Sequence[int], kinds: Integers) -> bool:
        """Whether pods need one slot each, and no node's amounts can bind."""
        batch = self._batch
        if (batch.slot_counts[kinds].sum(axis=1) != 1).any():
            return False
        for resource in range(batch.needs.shape[1]):
            most = np.zeros(batch.slot_counts.shape[1], np.int64)
            for kind in kinds:
                slot = int(batch.slot_counts[kind].argmax())
                most[slot] = max(most[slot], batch.needs[kind, resource])
            used = batch.states.value(most)
            for node in nodes:
                free = batch.free[node, resource]
                if free < UNLIMITED and used[batch.starts[node]].sum() > free:
                    return False
        return True

    def _merge(self, alike: dict[tuple[object, ...], list[int]]) -> list[Cell]:
        groups: dict[tuple[object, object], list[int]] = {}
        for (domains, own, *_), members in alike.items():
            groups.setdefault((domains, own), []).extend(members)
        cells = []
        for (domains, own), members in groups.items():
            states = Counter(s for node in members for s in self._batch.starts[node])
            parts = tuple(sorted(states.items()))
            cells.append(Cell(tuple(members), domains, own, (), parts))  # type: ignore[arg-type]
        return cells

    def _patterns(self, node: int, kinds: tuple[int, ...]) -> tuple[NodePattern, ...]:
        """List the maximal multisets of pods on a node; none where they are many."""
        batch = self._batch
        key = (tuple(batch.starts[node]), batch.free[node].tobytes(), kinds)
        known = self._node_patterns.get(key)
        if known is None:
            known = self._node_patterns[key] = self._list_patterns(node, kinds)
        return known

    def _list_patterns(self, node: int, kinds: tuple[int, ...]) -> tuple[NodePattern, ...]:
        batch = self._batch
        found: dict[tuple[tuple[int, int], ...], NodePattern] = {}
        stack = [(tuple(batch.starts[node]), batch.free[node], 0, NodePattern(()))]
        looked = 0
        while stack:
            states, free, first, pattern = stack.pop()
            looked += 1
            if looked > MOST_NODE_PATTERNS * 4:
                return ()
            is_full = True
            for index, kind in enumerate(kinds):
                if (batch.needs[kind] > free).any():
                    continue
                for after, parts in list_services(
                    batch.states, batch.is_spread, states, batch.pods[kind].slots
                ):
                    is_full = False
                    if index < first:
                        break
                    grown = NodePattern((*pattern.pods, (kind, parts)))
                    stack.append((after, free - batch.needs[kind], index, grown))
            if is_full and pattern.pods:
                found[tuple(sorted(pattern.counts.items()))] = pattern
                if len(found) > MOST_NODE_PATTERNS:
                    return ()
        return tuple(found.values())
