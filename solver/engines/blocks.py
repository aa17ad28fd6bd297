"""Gangs as trees of blocks: pods that must be in one domain of a label.

The root of a gang is in no domain. Groups inside a larger domain are blocks inside a
block; equal ones are one block with a count. Gangs with equal trees, worth and priority
are one kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from solver.errors import NotPackableError
from solver.kinds.demand import Demand
from solver.kinds.topology import GangRules, PodsTogether

PodCounts = tuple[tuple[int, int], ...]
"""(pod kind, pods), ascending."""


class Block(Struct, frozen=True, cache_hash=True, order=True):
    """Pods that must be in one domain, some of them in blocks of their own."""

    label: int
    """Index into `Query.labels`; -1: anywhere."""
    pods: PodCounts
    """Pods that are in no inner block."""
    inner: tuple[tuple[Block, int], ...] = ()
    """(block, how many of it)."""

    @property
    def total(self) -> Counter[int]:
        """Count all its pods by kind."""
        pods = Counter[int](dict(self.pods))
        for block, count in self.inner:
            for kind, number in block.total.items():
                pods[kind] += number * count
        return pods


class CellPlace(Struct, frozen=True, order=True):
    """Pods of a gang that follow each other by index."""

    kind: int
    """Pod kind."""
    member: int
    first: int
    """Index of the first in the member."""
    pods: int


class Instance(Struct, frozen=True):
    """One block of a gang, with the pods that are its own."""

    block: Block
    parent: int
    """Its place in the gang's list; -1: it is the root."""
    cells: tuple[CellPlace, ...]


class _Tree:
    """A block while it is made."""

    def __init__(self, label: int, kinds: frozenset[int]) -> None:
        self.label, self.kinds = label, kinds
        self.inner: list[_Tree] = []
        self.cells: list[CellPlace] = []

    def freeze(self) -> tuple[Block, list[Instance]]:
        """Bring it into canonical form; the instances are in depth-first order."""
        frozen = sorted((tree.freeze() for tree in self.inner), key=lambda f: f[0])
        counts = Counter(block for block, _ in frozen)
        pods = Counter[int]()
        for cell in self.cells:
            pods[cell.kind] += cell.pods
        block = Block(self.label, tuple(sorted(pods.items())), tuple(counts.items()))
        instances = [Instance(block, -1, tuple(sorted(self.cells)))]
        for _, own in frozen:
            start = len(instances)
            instances += [
                Instance(i.block, i.parent + start if i.parent >= 0 else 0, i.cells)
                for i in own
            ]
        return block, instances


def make_blocks(
    demand: Demand,
    pod_kinds: Sequence[int],
    depth_of: Mapping[int, int],
) -> list[tuple[Block, tuple[Instance, ...]]]:
    """Make the tree of every gang.

    `pod_kinds`: of each member kind; `depth_of`: of each label, 0 for the coarsest.

    Raises:
        NotPackableError: a gang has rules that are no such tree.
    """
    rules_by_gang = {rules.gang: rules for rules in demand.gang_rules}
    made = []
    for gang in range(len(demand.gangs)):
        root = _make_tree(rules_by_gang.get(gang), depth_of)
        for cell, kind in _list_cells(demand, gang, pod_kinds):
            _innermost(root, kind).cells.append(cell)
        block, instances = root.freeze()
        made.append((block, tuple(instances)))
    return made


def find_without_tree(demand: Demand) -> frozenset[int]:
    """Find the gangs whose rules are no such tree."""
    labels = range(len(demand.query.labels))
    depth_of, found = dict(zip(labels, labels, strict=True)), set[int]()
    for rules in demand.gang_rules:
        try:
            _make_tree(rules, depth_of)
        except NotPackableError:
            found.add(rules.gang)
    return frozenset(found)


def list_inner(instances: Sequence[Instance]) -> list[list[int]]:
    """List of each block of a gang the places of those directly inside of it."""
    inner: list[list[int]] = [[] for _ in instances]
    for number, instance in enumerate(instances):
        if instance.parent >= 0:
            inner[instance.parent].append(number)
    return inner


def _make_tree(rules: GangRules | None, depth_of: Mapping[int, int]) -> _Tree:
    """Make the blocks of a gang, without its pods."""
    root = _Tree(-1, frozenset())
    if rules is None:
        return root
    if rules.sets or rules.spread or rules.shared:
        raise NotPackableError("rules of gangs about devices, limits or shared claims")
    if rules.has_preferences:
        raise NotPackableError("preferred topology")
    if any(key.label is None for key, _ in rules.placed):
        raise NotPackableError("domains of devices")
    found: list[tuple[int, int, PodsTogether]] = []
    for rule in rules.together:
        if rule.key.label is None or rule.standing:
            raise NotPackableError("domains of devices, or of pods that run")
        found.append((-len(rule.kinds), depth_of[rule.key.label], rule))
    # The outermost first.
    for _, _, rule in sorted(found, key=lambda item: item[:2]):
        label = -1 if rule.key.label is None else rule.key.label
        _nest(root, _Tree(label, frozenset(rule.kinds)))
    return root


def _nest(outer: _Tree, tree: _Tree) -> None:
    for inner in outer.inner:
        if tree.kinds <= inner.kinds:
            _nest(inner, tree)
            return
        if tree.kinds & inner.kinds:
            raise NotPackableError("groups that overlap")
    outer.inner.append(tree)


def _innermost(tree: _Tree, kind: int) -> _Tree:
    for inner in tree.inner:
        if kind in inner.kinds:
            return _innermost(inner, kind)
    return tree


def _list_cells(
    demand: Demand, gang: int, pod_kinds: Sequence[int]
) -> Iterator[tuple[CellPlace, int]]:
    """Go through the cells of a gang, each with its member kind."""
    for member, cells in enumerate(demand.cells_of[gang]):
        first = 0
        for cell in cells:
            yield CellPlace(pod_kinds[cell.kind], member, first, cell.pods), cell.kind
            first += cell.pods
