"""Which domain each part goes to, beside pods that may be anywhere."""

from __future__ import annotations

from collections import Counter

import pytest

from solver.engines.domains import joint
from solver.engines.domains.joint import (
    AlikeNodes,
    Dealt,
    JointPacking,
    PartKind,
    Pattern,
)

ONE, TWO, SIX = 0, 1, 2
"""Kinds of pod, with so many devices of the eight of a node."""
WORTH = (1, 2, 6)
PATTERNS: tuple[Pattern, ...] = (
    ((TWO, 4),),
    ((TWO, 1), (SIX, 1)),
    ((ONE, 2), (SIX, 1)),
    ((ONE, 8),),
)


def dealt(
    nodes: tuple[int, ...],
    parts: list[PartKind],
    loose: dict[int, int],
    work_limit: float = 2.0,
) -> tuple[Dealt, JointPacking]:
    sites = [AlikeNodes(domain, n, PATTERNS) for domain, n in enumerate(nodes)]
    packing = JointPacking(sites, parts, loose, WORTH, work_limit=work_limit, seed=1)
    return packing.run(), packing


def pods_of(found: Dealt) -> Counter[int]:
    """Count the pods that patterns have places for."""
    places = Counter[int]()
    for chosen in found.patterns:
        for pattern, nodes in chosen.items():
            for member, pods in pattern:
                places[member] += nodes * pods
    return places


def test_pods_that_may_be_anywhere_fill_what_parts_leave_of_nodes() -> None:
    """Two racks of two: sixes on all nodes, and the ones and twos beside them."""
    parts = [PartKind(2, ((SIX, 2),))]
    found, _ = dealt((2, 2), parts, {ONE: 4, TWO: 2})
    assert {domain: +own for domain, own in found.parts.items()} == {
        0: Counter({0: 1}),
        1: Counter({0: 1}),
    }
    assert pods_of(found) == Counter({ONE: 4, TWO: 2, SIX: 4})


def test_parts_of_one_sort_are_with_what_goes_beside_them() -> None:
    """By shares sixes are all of a rack; by patterns twos go beside them."""
    parts = [PartKind(2, ((SIX, 2),)), PartKind(2, ((TWO, 2),))]
    found, _ = dealt((2, 2), parts, {})
    assert [+found.parts[domain] for domain in (0, 1)] == [Counter({0: 1, 1: 1})] * 2


def test_nobody_is_where_nodes_are_in_no_domain() -> None:
    """Pods that may be anywhere are."""
    sites = [AlikeNodes(-1, 2, PATTERNS), AlikeNodes(0, 1, PATTERNS)]
    packing = JointPacking(
        sites, [PartKind(3, ((SIX, 1),))], {TWO: 8}, WORTH, work_limit=2.0, seed=1
    )
    found = packing.run()
    assert not +found.parts[-1]
    assert +found.parts[0] == Counter({0: 1})
    assert found.patterns[0] == Counter({((TWO, 4),): 2})


def test_more_than_there_is_is_not_promised() -> None:
    """Of five sixes four have a place, and no domain has more patterns than nodes."""
    found, _ = dealt((2, 2), [PartKind(5, ((SIX, 1),))], {ONE: 8})
    assert sum(own[0] for own in found.parts.values()) == 4
    assert all(chosen.total() <= 2 for chosen in found.patterns)
    assert pods_of(found)[ONE] == 8


def test_what_is_missing_after_the_first_deal_is_packed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many domains are dealt in groups; a later round mixes them."""
    nodes = (5,) * 110
    counts = {1: 60, 2: 65, 3: 60, 4: 45}
    parts = [PartKind(count, ((SIX, pods),)) for pods, count in counts.items()]
    later, more = dealt(nodes, parts, {})
    monkeypatch.setattr(joint, "PATIENCE", 0)
    first, once = dealt(nodes, parts, {})
    packed = [
        sum(
            pods * own[k]
            for own in found.parts.values()
            for k, pods in enumerate(counts)
        )
        for found in (first, later)
    ]
    assert packed[0] < packed[1]
    assert once.work < more.work


def test_without_work_nothing_is_dealt() -> None:
    """All of it is placed otherwise."""
    found, packing = dealt((2, 2), [PartKind(2, ((SIX, 2),))], {}, work_limit=0)
    assert not any(+own for own in found.parts.values())
    assert not packing.work


def test_the_first_deal_ends_at_the_limit_too() -> None:
    """Of four groups of domains one is packed: each costs something, however small."""
    parts = [PartKind(300, ((SIX, 1),))]
    limit = joint.MODEL_WORK
    found, packing = dealt((1,) * 300, parts, {}, work_limit=limit)
    assert 0 < sum(own[0] for own in found.parts.values()) <= 75
    assert limit <= packing.work < 2 * limit


def test_the_same_is_dealt_the_same_way() -> None:
    """Whatever is drawn depends on the seed alone."""
    parts = [PartKind(9, ((SIX, 1),)), PartKind(7, ((TWO, 2), (ONE, 1)))]
    assert dealt((2, 3, 4), parts, {ONE: 9})[0] == dealt((2, 3, 4), parts, {ONE: 9})[0]
