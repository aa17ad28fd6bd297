"""What a model chose, carried out: pods to nodes and parts, gang by gang."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from solver.engines.blocks import Block
from solver.engines.packing.batch import PackingBatch, Parts
from solver.engines.packing.cells import ModelCell
from solver.engines.packing.loads import Loads, Spot

Place = tuple[int, int]
"""(label, domain); (-1, 0): anywhere."""
ANYWHERE: Place = (-1, 0)
Path = tuple[int, ...]
"""Of a block within its gang: which of the inner blocks, from the root on."""
Offer = tuple[int, int, Parts]
"""(pod kind, node, parts): room for one pod."""


class Want(Struct, frozen=True):
    """Pods of a gang that need a place in a domain."""

    place: Place
    gang: int
    instance: int
    kind: int
    count: int


class Chosen(Struct, frozen=True, kw_only=True):
    """What is to be on some nodes from now on."""

    nodes: frozenset[int]
    touched: tuple[int, ...]
    """Gangs that have pods there now."""
    wholes: Mapping[int, Sequence[int]]
    """By sort, the gangs all of whose pods are there."""
    kept: Mapping[int, Sequence[Want]]
    """Of gangs that have pods elsewhere and stay, what they have there."""
    domains: Mapping[tuple[int, Path, Place], Sequence[int]]
    """By (sort, path of a block, place of the outer block), the domains of blocks."""
    offers: Sequence[Offer] | None
    """None: parts cannot be shared out so."""


def carry_out(batch: PackingBatch, loads: Loads, chosen: Chosen) -> bool:
    """Change the loads; False: that cannot be, and all is as it was."""
    if chosen.offers is None:
        return False
    before = {gang: list(loads.gangs[gang]) for gang in chosen.touched}
    elsewhere = {
        gang: [spot for spot in before[gang] if spot.node not in chosen.nodes]
        for gang in chosen.kept
    }
    wants = [*_list_wants(batch, chosen)]
    spots = _share_out(batch, chosen.offers, wants)
    if spots is None:
        return False
    for gang in chosen.touched:
        loads.remove_gang(gang)
    for gang in chosen.kept:
        loads.add_gang(gang, [*elsewhere[gang], *spots.get(gang, ())])
    for gangs in chosen.wholes.values():
        for gang in gangs:
            loads.add_gang(gang, spots.get(gang, ()))
    return True


def _list_wants(batch: PackingBatch, chosen: Chosen) -> Iterator[Want]:
    pools = {key: list(domains) for key, domains in chosen.domains.items()}
    for wants in chosen.kept.values():
        yield from wants
    for sort, gangs in chosen.wholes.items():
        for gang in gangs:
            yield from _walk(batch, sort, gang, pools)


def _walk(
    batch: PackingBatch,
    sort: int,
    gang: int,
    pools: dict[tuple[int, Path, Place], list[int]],
) -> Iterator[Want]:
    """Give the blocks of a gang their domains, outer ones first."""
    instances = batch.instances[gang]
    paths: list[Path] = []
    places: list[Place] = []
    for number, instance in enumerate(instances):
        if instance.parent < 0:
            paths.append(())
            places.append(ANYWHERE)
        else:
            outer = places[instance.parent]
            inner = [block for block, _ in instances[instance.parent].block.inner]
            path = (*paths[instance.parent], inner.index(instance.block))
            paths.append(path)
            domain = pools[sort, path, outer].pop()
            places.append((instance.block.label, domain))
        for kind, count in instance.block.pods:
            yield Want(places[-1], gang, number, kind, count)


def walk_blocks(
    batch: PackingBatch, gang: int, node_of: Mapping[int, int]
) -> Iterator[tuple[Path, Place, Block, int]]:
    """Go through the blocks of a gang that is placed, the root apart.

    `node_of`: of each instance, a node that its pods are on. With each block: its path,
    the place of the outer block and the number of the instance.
    """
    instances = batch.instances[gang]
    paths: list[Path] = [()]
    places: list[Place] = [ANYWHERE]
    for number, instance in enumerate(instances[1:], start=1):
        inner = [block for block, _ in instances[instance.parent].block.inner]
        paths.append((*paths[instance.parent], inner.index(instance.block)))
        label = instance.block.label
        places.append((label, int(batch.domain[label, node_of[number]])))
        yield paths[-1], places[instance.parent], instance.block, number


def _share_out(
    batch: PackingBatch, offers: Sequence[Offer], wants: Sequence[Want]
) -> dict[int, list[Spot]] | None:
    """Give pods their places, those in the narrowest domains first."""
    by_place: dict[tuple[Place, int], list[int]] = defaultdict(list)
    for number in range(len(offers) - 1, -1, -1):
        kind, node, _ = offers[number]
        by_place[ANYWHERE, kind].append(number)
        for label in range(len(batch.domain)):
            domain = int(batch.domain[label, node])
            if domain >= 0:
                by_place[(label, domain), kind].append(number)
    used = set[int]()
    spots: dict[int, list[Spot]] = defaultdict(list)
    ordered = sorted(wants, key=lambda want: -batch.depth_of.get(want.place[0], -1))
    for want in ordered:
        free = by_place[want.place, want.kind]
        for _ in range(want.count):
            while free and free[-1] in used:
                free.pop()
            if not free:
                return None
            number = free.pop()
            used.add(number)
            kind, node, parts = offers[number]
            spots[want.gang].append(Spot(kind, node, want.instance, parts))
    return spots


def offers_of_nodes(cell: ModelCell, often: Sequence[int]) -> list[Offer]:
    """Give patterns to the nodes of a cell, in their order; `often`: by pattern."""
    offers: list[Offer] = []
    nodes = iter(cell.nodes)
    for pattern, count in zip(cell.node_patterns, often, strict=True):
        for _ in range(count):
            node = next(nodes)
            offers += [(kind, node, parts) for kind, parts in pattern.pods]
    return offers


def offers_of_parts(
    batch: PackingBatch,
    cell: ModelCell,
    pods: Mapping[int, int],
    uses: Mapping[int, Sequence[tuple[int, ...]]],
) -> list[Offer] | None:
    """Give patterns to parts, and the slots of parts to pods; None: it cannot be.

    `pods`: by kind; `uses`: patterns by the first state of parts; none where any slot
    may be anywhere.
    """
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    free: list[tuple[int, int]] = []
    patterns = {start: list(own) for start, own in uses.items()}
    for node in cell.nodes:
        for part, start in enumerate(batch.starts[node]):
            if not uses:
                free.append((node, part))
            elif patterns.get(start):
                for slot in patterns[start].pop():
                    places[slot].append((node, part))
    offers: list[Offer] = []
    kinds = sorted(pods, key=lambda kind: -max(_spread(batch, kind), default=0))
    for kind in kinds:
        for _ in range(pods[kind]):
            parts: list[tuple[int, int]] = []
            node = cell.nodes[0]
            for slot, count in batch.pods[kind].slots:
                pool = places[slot] if uses else free
                spread = count > 1 and batch.is_spread[slot]
                found = _pick(pool, count, spread=spread)
                if found is None:
                    return None
                node = found[0][0]
                parts += [(slot, part) for _, part in found]
            offers.append((kind, node, tuple(parts)))
    return offers


def _spread(batch: PackingBatch, kind: int) -> list[int]:
    return [c for slot, c in batch.pods[kind].slots if c > 1 and batch.is_spread[slot]]


def _pick(
    pool: list[tuple[int, int]], count: int, *, spread: bool
) -> list[tuple[int, int]] | None:
    """Take so many places out of a pool; `spread`: in different parts."""
    if not spread:
        if len(pool) < count:
            return None
        return [pool.pop() for _ in range(count)]
    left = Counter(pool)
    chosen = [place for place, _ in left.most_common(count)]
    if len(chosen) < count:
        return None
    for place in chosen:
        pool.remove(place)
    return chosen
