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

from solver.engines.packing.batch import UNLIMITED, PackingBatch, Parts, list_services
from solver.engines.packing.part_states import Integers

MOST_NODE_KINDS = 12
"""Kinds of pod beside which no patterns of nodes are listed."""
MOST_NODE_PATTERNS = 150
MOST_PART_PATTERNS = 120
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


class ModelCell(Struct, frozen=True, eq=False):
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


class _AlikeNodes(Struct, frozen=True):
    """What makes nodes alike for a model."""

    domains: tuple[int, ...]
    kinds: tuple[int, ...]
    starts: tuple[int, ...]
    free: bytes


class PartPatterns:
    """Patterns of parts that a model may use: all maximal ones where they are few."""

    def __init__(self, batch: PackingBatch) -> None:
        self._batch = batch
        self._listed: dict[
            tuple[int, frozenset[int]], tuple[tuple[tuple[int, ...], ...], bool]
        ] = {}
        self.is_complete = True
        """True if all maximal ones were listed each time since it was set."""

    def of(
        self, start: int, wanted: frozenset[int], in_use: Iterable[tuple[int, ...]]
    ) -> list[tuple[int, ...]]:
        """List patterns over the wanted slots, which hold those that are in use."""
        key = (start, wanted)
        listed = self._listed.get(key)
        if listed is None:
            listed = self._listed[key] = self._list(start, wanted)
        patterns, is_complete = listed
        if is_complete:
            return list(patterns)
        self.is_complete = False
        own = (tuple(slot for slot in pattern if slot in wanted) for pattern in in_use)
        return list(dict.fromkeys((*filter(None, own), *patterns)))

    def _list(
        self, start: int, wanted: frozenset[int]
    ) -> tuple[tuple[tuple[int, ...], ...], bool]:
        """List maximal multisets of wanted slots, depth first; and if these are all."""
        after = self._batch.states.after
        slots = sorted(wanted)
        found: dict[tuple[int, ...], None] = {}
        stack: list[tuple[int, int, tuple[int, ...]]] = [(start, 0, ())]
        looked = 0
        while stack and looked < MOST_LISTED and len(found) < MOST_PART_PATTERNS:
            looked += 1
            state, first, pattern = stack.pop()
            targets = after[state]
            is_full = True
            for index, slot in enumerate(slots):
                target = int(targets[slot])
                if target >= 0:
                    is_full = False
                    if index >= first:
                        stack.append((target, index, (*pattern, slot)))
            if is_full and pattern:
                found[pattern] = None
        return tuple(found), not stack


def contains(pattern: tuple[int, ...], slots: tuple[int, ...]) -> bool:
    """True if a pattern has all of some slots; both are sorted."""
    rest = iter(pattern)
    return all(any(own == slot for own in rest) for slot in slots)


class CellMaker:
    """Makes the cells of neighborhoods."""

    def __init__(self, batch: PackingBatch) -> None:
        self._batch = batch
        self._node_patterns: dict[
            tuple[tuple[int, ...], bytes, tuple[int, ...]], tuple[NodePattern, ...]
        ] = {}

    def make(self, nodes: Sequence[int], kinds: Sequence[int]) -> list[ModelCell]:
        """Put nodes together as far as they are alike for pods of some kinds."""
        batch = self._batch
        kept = np.array(sorted(kinds), np.int64)
        alike: dict[_AlikeNodes, list[int]] = {}
        for node in sorted(nodes):
            own = tuple(int(kind) for kind in kept[batch.fits[kept, node]])
            if own:
                key = _AlikeNodes(
                    tuple(int(domain) for domain in batch.domain[:, node]),
                    own,
                    tuple(batch.starts[node]),
                    batch.free[node].tobytes(),
                )
                alike.setdefault(key, []).append(node)
        if self._can_merge(nodes, kept):
            return self._merge(alike)
        cells: list[ModelCell] = []
        for key, members in alike.items():
            patterns = self._patterns(members[0], key.kinds)
            if patterns:
                cells.append(
                    ModelCell(tuple(members), key.domains, key.kinds, patterns)
                )
            else:
                cells += [self._single(n, key.domains, key.kinds) for n in members]
        return cells

    def _single(
        self, node: int, domains: tuple[int, ...], own: tuple[int, ...]
    ) -> ModelCell:
        batch = self._batch
        parts = tuple(sorted(Counter(batch.starts[node]).items()))
        free = tuple(int(amount) for amount in batch.free[node])
        return ModelCell((node,), domains, own, (), parts, free)

    def _can_merge(self, nodes: Sequence[int], kinds: Integers) -> bool:
        """True if pods need one slot each, and no node's amounts can bind."""
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

    def _merge(self, alike: dict[_AlikeNodes, list[int]]) -> list[ModelCell]:
        groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for key, members in alike.items():
            groups.setdefault((key.domains, key.kinds), []).extend(members)
        cells = []
        for (domains, own), members in groups.items():
            states = Counter(s for node in members for s in self._batch.starts[node])
            parts = tuple(sorted(states.items()))
            cells.append(ModelCell(tuple(members), domains, own, (), parts))
        return cells

    def _patterns(self, node: int, kinds: tuple[int, ...]) -> tuple[NodePattern, ...]:
        """List the maximal multisets of pods on a node; none where they are many."""
        if len(kinds) > MOST_NODE_KINDS:
            return ()
        batch = self._batch
        key = (tuple(batch.starts[node]), batch.free[node].tobytes(), kinds)
        known = self._node_patterns.get(key)
        if known is None:
            known = self._node_patterns[key] = self._list_patterns(node, kinds)
        return known

    def _list_patterns(
        self, node: int, kinds: tuple[int, ...]
    ) -> tuple[NodePattern, ...]:
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
