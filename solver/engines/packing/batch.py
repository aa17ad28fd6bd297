"""A batch as packing sees it: nodes as parts and amounts, gangs as trees of pods.

Everything is numbered, and nodes are rows of arrays. Amounts are counted in the
greatest common divisor of what pods need, so that models have small numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from solver.engines.blocks import Block, Instance, make_blocks
from solver.engines.packing.part_states import Integers, PartStates
from solver.engines.packing.parts import Piece, cut, part_shape
from solver.engines.packing.slots import SlotTable, SlotUse
from solver.errors import NotPackableError
from solver.kinds.demand import Demand, MemberKind
from solver.kinds.shapes import NodeKind, NodeShape, NodeView

UNLIMITED = 1 << 40
"""What is left of a resource that a node does not limit."""
Parts = tuple[tuple[int, int], ...]
"""(slot, part) of a pod."""
Booleans = NDArray[np.bool_]


class PodKind(Struct, frozen=True):
    """Pods that nothing tells apart, whatever gang they are of."""

    slots: tuple[tuple[int, int], ...]
    """(slot, count), those that most parts serve last."""
    needs: tuple[int, ...]
    """Amounts of each resource, in its unit."""
    fit: int
    labels: frozenset[int]
    """Labels that its node must have."""


class GangSort(Struct, frozen=True):
    """Gangs that nothing tells apart but their names."""

    priority: int
    weight: int
    block: Block


class PackedNode(Struct, frozen=True):
    """A node, and the parts that it is cut into."""

    view: NodeView
    pieces: tuple[tuple[Piece, ...], ...]
    shapes: tuple[NodeShape, ...]


class PackingBatch:
    """One batch. Raises NotPackableError where a rule is no matter of single nodes."""

    def __init__(self, demand: Demand, kinds: Sequence[NodeKind]) -> None:
        self.demand = demand
        if demand.query.domains:
            raise NotPackableError("rules between pods on several nodes")
        if demand.is_elastic:
            raise NotPackableError("gangs that may be in with fewer pods")
        if any(member.compared for member in demand.member_kinds):
            raise NotPackableError("devices of several pods that are compared")
        slots = SlotTable(demand)
        self.uses: tuple[tuple[SlotUse, ...], ...] = slots.uses
        """By member kind."""
        self.nodes: list[PackedNode] = []
        self._list_nodes(kinds)
        shapes = [shape for node in self.nodes for shape in node.shapes]
        self.states = PartStates(demand, slots.kinds, shapes)
        self.starts = [
            [self.states.starts[shape] for shape in node.shapes] for node in self.nodes
        ]
        """By node, the state of each part."""
        self.units = self._find_units()
        self._read_amounts()
        self._make_pod_kinds(slots)
        self._read_domains()
        made = make_blocks(demand, self.pod_kind_of, self.depth_of)
        self.instances: list[tuple[Instance, ...]] = [own for _, own in made]
        """By gang."""
        self._sort_gangs([block for block, _ in made])
        self._find_fits()

    def _list_nodes(self, kinds: Sequence[NodeKind]) -> None:
        for kind in kinds:
            pieces = cut(kind.shape)
            shapes = tuple(part_shape(kind.shape, part) for part in pieces)
            self.nodes += [PackedNode(view, pieces, shapes) for view in kind.nodes]
        self.nodes.sort(key=lambda node: node.view.name)

    def _find_units(self) -> list[int]:
        """Find the unit of each resource; 1 where no pod needs it."""
        needs = np.array([m.needs for m in self.demand.member_kinds], np.int64)
        return [max(int(np.gcd.reduce(column)), 1) for column in needs.T]

    def _read_amounts(self) -> None:
        free = [
            [
                UNLIMITED if amount is None else min(amount // unit, UNLIMITED)
                for amount, unit in zip(node.view.shape.free, self.units, strict=True)
            ]
            for node in self.nodes
        ]
        width = len(self.units)
        self.free: Integers = np.array(free, np.int64).reshape(len(free), width)
        """[node, resource]."""

    def _make_pod_kinds(self, slots: SlotTable) -> None:
        """Forget of pods which gang they are of."""
        needed = self._list_needed_labels()
        numbers: dict[PodKind, int] = {}
        room = self.room.sum(axis=0)
        self.pod_kind_of = []
        for number, member in enumerate(self.demand.member_kinds):
            counts: dict[int, int] = {}
            for use in slots.uses[number]:
                counts[use.slot] = counts.get(use.slot, 0) + use.count
            ordered = sorted(counts.items(), key=lambda item: (room[item[0]], item))
            pod = PodKind(
                tuple(ordered),
                tuple(
                    n // unit for n, unit in zip(member.needs, self.units, strict=True)
                ),
                member.fit,
                needed.get(number, frozenset()),
            )
            if not (pod.slots or any(pod.needs)):
                raise NotPackableError("pods that use nothing up")
            self.pod_kind_of.append(numbers.setdefault(pod, len(numbers)))
        self.pods: tuple[PodKind, ...] = tuple(numbers)
        self.needs: Integers = np.array([p.needs for p in self.pods], np.int64).reshape(
            len(self.pods), len(self.units)
        )
        self.slot_counts: Integers = np.zeros(
            (len(self.pods), len(slots.kinds)), np.int64
        )
        """[pod kind, slot]."""
        for kind, pod in enumerate(self.pods):
            for slot, count in pod.slots:
                self.slot_counts[kind, slot] = count
        self.size_of: Integers = self.slot_counts @ (
            (1 << 20) * max(len(self.nodes), 1) // np.maximum(room, 1)
        ) + _shares(self.needs, self.free)
        """For each pod kind, what it takes of all that there is, in 2^-20 or so."""
        self.is_spread = _find_spread_slots(slots.kinds, self.nodes)

    def _list_needed_labels(self) -> dict[int, frozenset[int]]:
        """List by member kind the labels that its node must have."""
        needed: dict[int, frozenset[int]] = {}
        for rules in self.demand.gang_rules:
            for key, kinds in rules.placed:
                if key.label is None:
                    raise NotPackableError("domains of devices")
                for kind in kinds:
                    needed[kind] = needed.get(kind, frozenset()) | {key.label}
        return needed

    def _read_domains(self) -> None:
        """Number the domains of each label; -1: a node lacks it."""
        labels = len(self.demand.query.labels)
        self.domain: Integers = np.full((labels, len(self.nodes)), -1, np.int64)
        """[label, node]."""
        for label in range(labels):
            numbers: dict[str, int] = {}
            for number, node in enumerate(self.nodes):
                value = node.view.shape.domains[label]
                if value is not None:
                    code = numbers.setdefault(value, len(numbers))
                    self.domain[label, number] = code
        sizes = [len(set(row[row >= 0].tolist())) for row in self.domain]
        self.labels = sorted(range(labels), key=lambda label: (sizes[label], label))
        """The coarsest first."""
        self.depth_of = {label: depth for depth, label in enumerate(self.labels)}
        for outer, inner in zip(self.labels, self.labels[1:], strict=False):
            pairs = set(
                zip(
                    self.domain[inner].tolist(),
                    self.domain[outer].tolist(),
                    strict=True,
                )
            )
            known = [domain for domain, _ in pairs if domain >= 0]
            if len(known) > len(set(known)):
                raise NotPackableError("domains that overlap")

    def _sort_gangs(self, blocks: Sequence[Block]) -> None:
        numbers: dict[GangSort, int] = {}
        self.sort_of = [
            numbers.setdefault(
                GangSort(gang.priority, gang.weight, block), len(numbers)
            )
            for gang, block in zip(self.demand.gangs, blocks, strict=True)
        ]
        self.sorts: tuple[GangSort, ...] = tuple(numbers)
        self.gangs_of: list[list[int]] = [[] for _ in self.sorts]
        """By sort, the oldest first."""
        for gang, sort in enumerate(self.sort_of):
            self.gangs_of[sort].append(gang)
        self.totals: list[dict[int, int]] = [dict(s.block.total) for s in self.sorts]
        """By sort, its pods by kind."""
        self.priorities = sorted({s.priority for s in self.sorts}, reverse=True)
        level = {priority: n for n, priority in enumerate(self.priorities)}
        self.level_of = [level[self.sorts[sort].priority] for sort in self.sort_of]
        """For each gang, the place of its priority among them, 0 for the highest."""

    def _find_fits(self) -> None:
        """[pod kind, node]: whether such a pod may be there while it is empty."""
        bits = [node.view.shape.fits for node in self.nodes]
        fits = {
            fit: np.array([b >> fit & 1 for b in bits], bool)
            for fit in {pod.fit for pod in self.pods}
        }
        self.fits: Booleans = np.zeros((len(self.pods), len(self.nodes)), bool)
        for kind, pod in enumerate(self.pods):
            row = fits[pod.fit].copy()
            for label in pod.labels:
                row &= self.domain[label] >= 0
            self.fits[kind] = row & self._is_served(kind, row)

    def _is_served(self, kind: int, asked: Booleans) -> Booleans:
        """Return for each node whether its parts serve one pod, while it is empty."""
        slots = self.pods[kind].slots
        known: dict[tuple[int, ...], bool] = {}
        served = np.zeros(len(self.nodes), bool)
        for node in np.flatnonzero(asked):
            parts = tuple(self.starts[node])
            if parts not in known:
                ways = list_services(self.states, self.is_spread, parts, slots)
                known[parts] = bool(ways)
            served[node] = known[parts]
        return served

    @property
    def has_shares(self) -> bool:
        """True if some device may be shared."""
        return any(
            group.is_shareable for shape in self.states.starts for group in shape.groups
        )

    @cached_property
    def room(self) -> Integers:
        """[node, slot]: how many of it an empty node serves, and nothing else."""
        most, width = self.states.most, self.states.most.shape[1]
        room = [most[parts].sum(axis=0) for parts in self.starts]
        return np.array(room, np.int64).reshape(len(room), width)

    @cached_property
    def first_rooms(self) -> Integers:
        """[pod kind, node]: pods that each node takes at most, while it is empty."""
        rooms = np.where(self.fits, np.int64(1 << 30), np.int64(0))
        for kind, pod in enumerate(self.pods):
            for resource, need in enumerate(pod.needs):
                if need:
                    limit = self.free[:, resource] // need
                    rooms[kind] = np.minimum(rooms[kind], limit)
            for slot, count in pod.slots:
                rooms[kind] = np.minimum(rooms[kind], self.room[:, slot] // count)
        return np.maximum(rooms, 0)

    def total_of(self, block: Block) -> tuple[tuple[int, int], ...]:
        """List all pods of a block by kind."""
        total = self._block_totals.get(block)
        if total is None:
            total = tuple(sorted(block.total.items()))
            self._block_totals[block] = total
        return total

    @cached_property
    def _block_totals(self) -> dict[Block, tuple[tuple[int, int], ...]]:
        return {}

    def weight_of(self, gang: int) -> int:
        """Return what a gang is worth."""
        return self.sorts[self.sort_of[gang]].weight

    @cached_property
    def weights(self) -> Integers:
        """By gang sort."""
        return np.array([sort.weight for sort in self.sorts], np.int64)


def _shares(needs: Integers, free: Integers) -> Integers:
    """Weigh amounts by their share of all that there is."""
    sums = np.maximum(np.where(free >= UNLIMITED, 0, free).sum(axis=0), 1)
    unlimited = (free >= UNLIMITED).all(axis=0)
    shares = needs * float(1 << 20) * max(len(free), 1) / sums
    total: Integers = np.where(unlimited, 0, shares).sum(axis=1).astype(np.int64)
    return total


def _find_spread_slots(
    kinds: Sequence[MemberKind], nodes: Sequence[PackedNode]
) -> tuple[bool, ...]:
    """Return for each slot whether several of a pod must be in different parts.

    Devices that may be shared would serve one request twice.
    """
    shapes = dict.fromkeys(shape for node in nodes for shape in node.shapes)
    shareable = 0
    for shape in shapes:
        for group in shape.groups:
            if group.is_shareable:
                shareable |= group.mask
    return tuple(any(shareable >> ask.kind & 1 for ask in kind.asks) for kind in kinds)


def list_services(
    states_of_parts: PartStates,
    is_spread: Sequence[bool],
    states: Sequence[int],
    slots: Sequence[tuple[int, int]],
) -> list[tuple[tuple[int, ...], Parts]]:
    """List the ways in which parts serve a pod, those that differ in what is left."""
    after = states_of_parts.after
    ways: dict[tuple[int, ...], tuple[tuple[int, ...], Parts]] = {
        tuple(sorted(states)): (tuple(states), ())
    }
    for slot, count in slots:
        spread = count > 1 and is_spread[slot]
        for _ in range(count):
            grown: dict[tuple[int, ...], tuple[tuple[int, ...], Parts]] = {}
            for own, parts in ways.values():
                used = {part for s, part in parts if s == slot} if spread else set()
                seen = set[int]()
                for part, state in enumerate(own):
                    if after[state, slot] < 0 or part in used or state in seen:
                        continue
                    seen.add(state)
                    left = (*own[:part], int(after[state, slot]), *own[part + 1 :])
                    way = (left, (*parts, (slot, part)))
                    grown.setdefault(tuple(sorted(left)), way)
            ways = grown
    return list(ways.values())
