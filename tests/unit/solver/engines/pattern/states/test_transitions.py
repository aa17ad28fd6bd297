"""Taking a device leads to a state in which each rule says what may come next."""

from __future__ import annotations

from msgspec import structs

from solver.engines.pattern.states.transitions import PartialState, Transitions
from solver.kinds.demand import MemberKind
from solver.kinds.shapes import CounterShape, GroupShape, NodeShape
from solver.kinds.traits import Traits
from tests.builders.kinds import alternative, group, pod_kind

TWO_ROOTS = (group(2, (1,)), group(1, (2,)), group(3, ()))
"""Two devices of one PCIe root, one of another, three of none."""


def start(*groups: GroupShape, **shape: object) -> PartialState:
    """Begin with a node that nobody has taken anything of."""
    made = structs.replace(NodeShape(groups, all_free=1), **shape)
    return PartialState(made, (0,) * len(groups))


def candidates_after_begin(pod: MemberKind, *groups: GroupShape) -> list[list[int]]:
    """List the groups that may serve, for each way to begin the first request."""
    transitions = Transitions(pod, (0,))
    return [
        list(transitions.find_candidates(state, 0))
        for state in transitions.begin_request(start(*groups), 0)
    ]


def test_a_match_begins_once_for_each_value_that_has_enough() -> None:
    """One of either root; two of the first alone; three of neither."""
    for count, begun in ((1, [[0], [1]]), (2, [[0]]), (3, [[]])):
        pod = pod_kind(alternative(count=count), match=[(0, 0)])
        assert candidates_after_begin(pod, *TWO_ROOTS) == begun


def test_a_value_that_a_distinct_constraint_has_met_is_closed() -> None:
    """After a device of one root only the other is open, until the request ends."""
    transitions = Transitions(pod_kind(alternative(count=2), distinct=[(0, 0)]), (0,))
    (begun,) = transitions.begin_request(start(*TWO_ROOTS), 0)
    assert list(transitions.find_candidates(begun, 0)) == [0, 1]
    taken = transitions.take_device(begun, 0, 0)
    assert taken is not None
    assert list(transitions.find_candidates(taken, 0)) == [1]
    assert transitions.end_request(taken, 0).tags == (0, 0, 0)


def test_a_constraint_ends_with_its_last_request() -> None:
    """The value that the first request chose binds the second, and nobody after it."""
    asks = (alternative(), alternative(request=1))
    transitions = Transitions(pod_kind(*asks, match=[(0, 0), (1, 0)]), (0,))
    state = next(transitions.begin_request(start(*TWO_ROOTS), 0))
    state = transitions.end_request(state, 0)
    assert list(transitions.begin_request(state, 1)) == [state]
    assert list(transitions.find_candidates(state, 1)) == [0]
    assert transitions.end_request(state, 1).tags == (0, 0, 0)


def test_all_devices_cannot_be_had_where_two_must_differ_and_do_not() -> None:
    """Two of one root are refused on the way, one of each is fine."""
    pod = pod_kind(alternative(count=0), distinct=[(0, 0)])
    transitions = Transitions(pod, (0,))
    for sizes, is_had in (((2, 1), False), ((1, 1), True)):
        groups = [group(size, (root,)) for root, size in enumerate(sizes, start=1)]
        (state,) = transitions.begin_request(start(*groups), 0)
        taken = transitions.take_whole_groups(state, 0, (0, 1))
        assert (taken is not None) is is_had


def test_a_device_that_is_taken_is_gone() -> None:
    """And nobody can have all of its kind any more."""
    taken = Transitions(pod_kind(alternative()), ()).take_device(start(group(2)), 0, 0)
    assert taken is not None
    assert (taken.shape.groups, taken.shape.all_free) == ((group(1),), 0)


def test_counters_and_sets_forbid_what_they_do_not_hold() -> None:
    """A counter of 5 gives 3 once, and a set keeps the groups that all have."""
    transitions = Transitions(pod_kind(alternative()), ())
    traits = Traits(draws=((0, 3),), groups=((0, ("one", "two")),))
    devices = structs.replace(group(2), traits=traits)
    whole = start(devices, counters=(CounterShape(5),), sets=((None, ()),))
    taken = transitions.take_device(whole, 0, 0)
    assert taken is not None
    assert taken.shape.counters == (CounterShape(2),)
    assert taken.shape.sets == ((("one", "two"), ()),)
    assert transitions.take_device(taken, 0, 0) is None
    other = start(devices, counters=(CounterShape(5),), sets=((("three",), ()),))
    assert transitions.take_device(other, 0, 0) is None


def test_a_request_has_one_share_of_a_device_and_the_next_another() -> None:
    """Until too little is left: shares of 3 of 8."""
    transitions = Transitions(pod_kind(alternative(count=2)), ())
    device = structs.replace(group(), traits=Traits(left=(8,), costs=((3,),)))
    state = start(device)
    for left in (5, 2):
        assert list(transitions.find_candidates(state, 0)) == [0]
        shared = transitions.take_device(state, 0, 0)
        assert shared is not None
        assert shared.shape.groups[0].traits.left == (left,)
        assert list(transitions.find_candidates(shared, 0)) == []
        state = transitions.end_request(shared, 0)
    assert transitions.take_device(state, 0, 0) is None


def test_of_groups_that_are_alike_one_is_tried() -> None:
    """Values that nobody else has tell no groups apart; sizes and company do."""
    transitions = Transitions(pod_kind(alternative()), (0,))
    alike = start(group(1, (1,)), group(1, (2,)), group(2, (3,)))
    assert list(transitions.find_candidates(alike, 0)) == [0, 2]
    together = start(group(1, (1,)), group(1, (2,)), group(1, (2,), kinds=[1]))
    assert list(transitions.find_candidates(together, 0)) == [0, 1]


def test_all_devices_are_all_or_none() -> None:
    """None where one is taken, or where they have not one value in common."""
    free, pod = Transitions(pod_kind(alternative(count=0)), (0,)), alternative(count=0)
    state = start(*TWO_ROOTS)
    groups = free.find_whole_groups(state, 0)
    assert groups == (0, 1, 2)
    taken = free.take_whole_groups(state, 0, groups)
    assert taken is not None
    assert [each.size for each in taken.shape.groups] == [0, 0, 0]
    assert free.find_whole_groups(start(*TWO_ROOTS, all_free=0), 0) is None
    same = Transitions(pod_kind(pod, match=[(0, 0)]), (0,))
    for begun in same.begin_request(state, 0):
        assert same.find_whole_groups(begun, 0) is None
