"""A pod is placed in every way that differs in what it leaves, and in no other."""

from __future__ import annotations

import pytest
from msgspec import structs

from solver.engines.pattern.states.placing import list_placements
from solver.errors import TooManyPlacementsError
from solver.kinds.demand import MemberKind
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits
from tests.builders.kinds import alternative, group, pod_kind, reduction_of

ONE = pod_kind(alternative())


def leftovers(
    pod: MemberKind, *groups: GroupShape, all_free: int = 0
) -> list[tuple[int, tuple[int, ...]]]:
    """List the rank of each way to place a pod, and the sizes of what it leaves.

    Another pod may come that wants any device, so nothing that is left is pruned.
    """
    columns = len(groups[0].values)
    reduction = reduction_of(pod, ONE, columns=columns)
    listed = list_placements(pod, NodeShape(groups, all_free), reduction)
    return [
        (placement.rank, tuple(sorted(left.size for left in placement.after.groups)))
        for placement in listed.placements
    ]


def test_equal_devices_make_one_placement() -> None:
    """Which two of five are taken does not matter; two of one are no placement."""
    pair = pod_kind(alternative(count=2))
    assert leftovers(pair, group(5)) == [(0, (3,))]
    assert leftovers(pair, group(1)) == []


def test_devices_that_differ_make_placements_that_differ() -> None:
    """One of three on one root, or the only one on another."""
    assert sorted(leftovers(ONE, group(3, (1,)), group(1, (2,)))) == [
        (0, (1, 2)),
        (0, (3,)),
    ]


def test_alternatives_come_by_rank_and_one_that_leaves_no_more_is_left_out() -> None:
    """Of two alternatives that leave the same the better one stands."""
    pod = pod_kind(
        alternative(count=2),
        alternative(count=1, rank=1),
        alternative(count=2, rank=2),
    )
    assert leftovers(pod, group(4)) == [(0, (2,)), (1, (3,))]


@pytest.mark.parametrize(("count", "ways"), [(32, 1), (33, 0)])
def test_a_claim_has_32_devices_at_most(count: int, ways: int) -> None:
    """Whether they are counted or all are meant."""
    assert len(leftovers(pod_kind(alternative(count=count)), group(40))) == ways
    everything = pod_kind(alternative(count=0))
    assert len(leftovers(everything, group(count), all_free=1)) == ways


def test_devices_of_one_pod_are_named_by_request_and_group() -> None:
    """What is left leads back to the groups that the node had."""
    pod = pod_kind(alternative(0), alternative(1, count=2, request=1))
    shape = NodeShape((group(1, kinds=[0]), group(3, kinds=[1])), 0)
    reduction = reduction_of(pod, pod_kind(alternative(1)))
    (placement,) = list_placements(pod, shape, reduction).placements
    assert sorted(placement.uses) == [(0, 0), (1, 1), (1, 1)]
    assert placement.alternatives == (0, 0)
    assert [(left.mask, left.size) for left in placement.after.groups] == [(2, 1)]
    assert placement.origin == (1,)


def test_work_grows_with_what_there_is_to_name() -> None:
    """Placements are one and the same; counters and values have to be named besides."""

    def work_on(only: GroupShape, *, columns: int = 0) -> int:
        counters = (CounterShape(9),) * len(only.traits.draws)
        shape = NodeShape((only,), 0, counters)
        listed = list_placements(ONE, shape, reduction_of(ONE, columns=columns))
        assert len(listed.placements) == 1
        return listed.work

    drawing = structs.replace(group(2), traits=Traits(draws=((0, 1),)))
    plain, valued = work_on(group(2)), work_on(group(2, (1,)), columns=1)
    assert 0 < plain < valued < work_on(drawing)


def test_too_many_ways_are_refused() -> None:
    """Eight of sixteen devices of which no two may serve the same."""
    groups = tuple(group(1, kinds=[0, number + 1]) for number in range(16))
    pod = pod_kind(alternative(count=8))
    wanting = [pod_kind(alternative(number + 1)) for number in range(16)]
    with pytest.raises(TooManyPlacementsError):
        list_placements(pod, NodeShape(groups, 0), reduction_of(pod, *wanting))
