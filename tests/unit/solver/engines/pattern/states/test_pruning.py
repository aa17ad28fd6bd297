"""What no pod can use any more is left out of a state, and nothing else."""

from __future__ import annotations

from msgspec import structs

from solver.engines.pattern.states.pruning import (
    collect_device_demands,
    drop_empty_groups,
    prune,
)
from solver.kinds.demand import MemberKind
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits
from tests.builders.kinds import alternative, group, pod_kind

GPU, NIC = 0, 1
PAIRED = pod_kind(alternative(GPU), alternative(NIC, request=1), match=[(0, 0), (1, 0)])
"""A GPU and a NIC of one PCIe root."""
ONE = pod_kind(alternative())


def kept(
    groups: tuple[GroupShape, ...], *pods: MemberKind, whole_kinds: int = 0
) -> tuple[int, ...]:
    """List the groups that are kept for some pods."""
    return prune(NodeShape(groups, 0), collect_device_demands(pods), whole_kinds)[1]


def drawing(size: int, amount: int) -> GroupShape:
    return structs.replace(group(size), traits=Traits(draws=((0, amount),)))


def test_pods_that_demand_the_same_demand_it_once() -> None:
    """Its request and rank do not matter; how many, and with whom, do."""
    again = pod_kind(alternative(), alternative(count=2, rank=1))
    assert len(collect_device_demands([ONE, again])) == 2
    assert len(collect_device_demands([ONE, PAIRED])) == 3


def test_a_nic_without_a_gpu_on_its_root_is_of_no_use() -> None:
    """Unless some pod wants it alone."""
    gpu, nic = group(1, (1,), kinds=[GPU]), group(1, (1,), kinds=[NIC])
    alone = group(1, (2,), kinds=[NIC])
    assert kept((gpu, nic, alone), PAIRED) == (0, 1)
    assert kept((gpu, nic, alone), PAIRED, pod_kind(alternative(NIC))) == (0, 1, 2)
    assert kept((nic, alone), PAIRED) == ()


def test_too_few_devices_are_as_good_as_none() -> None:
    """Of a request for three; what `All` means stays all the same."""
    three = pod_kind(alternative(count=3))
    assert kept((group(2, (1,)), group(1, (2,))), three) == (0, 1)
    assert kept((group(2),), three) == ()
    assert kept((group(2),), three, whole_kinds=1) == (0,)


def test_devices_that_must_differ_need_no_value_in_common() -> None:
    """Two roots with one device each: of use to a pair that differs, not to one."""
    pair, roots = alternative(count=2), (group(1, (1,)), group(1, (2,)))
    assert kept(roots, pod_kind(pair, distinct=[(0, 0)])) == (0, 1)
    assert kept(roots, pod_kind(pair, match=[(0, 0)])) == ()


def test_a_device_whose_compatibility_groups_are_out_is_of_no_use() -> None:
    """What others have left of its counter set must be a group that it has."""
    traits = Traits(groups=((0, ("one", "two")),))
    for allowed, is_kept in ((None, True), (("two",), True), (("three",), False)):
        shape = NodeShape(
            (structs.replace(group(), traits=traits),), 0, sets=((allowed, ()),)
        )
        assert bool(prune(shape, collect_device_demands([ONE]), 0)[1]) is is_kept


def test_counters_bound_how_many_devices_are_left() -> None:
    """Three that draw 4 of 9 are two, of which the counter needs 8; of 3 none is."""
    demands = collect_device_demands([ONE])
    shape = NodeShape((drawing(3, 4),), all_free=1, counters=(CounterShape(9),))
    pruned, indices = prune(shape, demands, 0)
    assert indices == (0,)
    assert (pruned.groups[0].size, pruned.counters[0].left) == (2, 8)
    assert pruned.all_free == 0
    dry = structs.replace(shape, counters=(CounterShape(3),))
    assert prune(dry, demands, 0)[0].groups == ()


def test_a_shared_device_is_of_use_while_a_share_is_left() -> None:
    """Of the smallest kind of share; costs are by request kind."""
    demands = collect_device_demands([ONE, pod_kind(alternative(1))])
    for left, is_kept in ((5, True), (2, True), (1, False)):
        traits = Traits(left=(left,), costs=((5,), (2,)))
        shared = structs.replace(group(kinds=[0, 1]), traits=traits)
        assert bool(prune(NodeShape((shared,), 0), demands, 0)[1]) is is_kept


def test_only_empty_groups_are_dropped_where_all_that_is_left_counts() -> None:
    """The indices are those of the rest; without empty groups the shape is itself."""
    full = NodeShape((group(2), group(1)), 0)
    assert drop_empty_groups(full) == (full, (0, 1))
    some = NodeShape((group(0), group(1)), 0)
    assert drop_empty_groups(some) == (NodeShape((group(1),), 0), (1,))
