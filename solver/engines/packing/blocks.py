"""Gangs as trees of blocks: pods that must be in one domain of a label.

The root of a gang is in no domain. Groups inside a larger domain are blocks inside a
block; equal ones are one block with a count. Gangs with equal trees, worth and priority
are one kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from solver.errors import NotPackableError
from solver.kinds.demand import Demand
from solver.kinds.gang_rules import GangRules, PodsTogether

PodCounts = tuple[tuple[int, int], ...]
"""(pod kind, pods), ascending."""


class Block(Struct, frozen=True, cache_hash=True, order=True):
    """Pods that must be in one domain, some of them in blocks of their own."""

    label: int
    """Index into `Query.labels`; -1: anywhere."""
    pods: PodCounts
    """Those in no block inside of it."""
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
    depth_of: dict[int, int],
) -> list[tuple[Block, tuple[Instance, ...]]]:
    """Make the tree of every gang.

    `pod_kinds`: of each member kind; `depth_of`: of each label, 0 for the coarsest.

    Raises:
        NotPackableError: a gang has rules that are no such tree.
    """
    rules_by_gang = {rules.gang: rules for rules in demand.gang_rules}
    made = []
    for gang in range(len(demand.gangs)):
        rules = rules_by_gang.get(gang)
        root = _Tree(-1, frozenset())
        trees = [] if rules is None else _make_trees(rules, depth_of)
        for tree in trees:
            _nest(root, tree)
        for cell, kind in _list_cells(demand, gang, pod_kinds):
            _innermost(root, kind).cells.append(cell)
        block, instances = root.freeze()
        made.append((block, tuple(instances)))
    return made


def _make_trees(rules: GangRules, depth_of: dict[int, int]) -> list[_Tree]:
    """Make a block of each rule, the outermost first."""
    if rules.sets or rules.spread or rules.shared:
        raise NotPackableError("rules of gangs about devices, limits or shared claims")
    if rules.has_preferences:
        raise NotPackableError("preferred topology")
    found: list[tuple[int, int, PodsTogether]] = []
    for rule in rules.together:
        if rule.key.label is None or rule.standing:
            raise NotPackableError("domains of devices, or of pods that run")
        found.append((-len(rule.kinds), depth_of[rule.key.label], rule))
    found.sort(key=lambda item: item[:2])
    return [
        _Tree(-1 if rule.key.label is None else rule.key.label, frozenset(rule.kinds))
        for _, _, rule in found
    ]


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
