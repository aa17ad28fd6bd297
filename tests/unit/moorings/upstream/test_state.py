"""What upstream's allocator knows: devices, what was given out, what ties them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from contracts.device import Device
from contracts.gang import MemberClaim
from contracts.ids import DeviceID, DeviceName, DriverName, FullyQualifiedName, PoolName
from moorings.upstream.constraints import Constraint
from moorings.upstream.state import State
from moorings.upstream.symmetry import Symmetry
from moorings.upstream.world import RequestData
from solver.errors import FatalError
from tests.builders import (
    DRIVER,
    NODE,
    Value,
    constraint,
    counter_set,
    device,
    devices,
    member_claim,
    request,
    sub_request,
    taint,
    toleration,
)
from tests.builders.upstream import PodAtNode, pod_at_node

HELD = DeviceID(DriverName(DRIVER), PoolName(NODE), DeviceName("gpu-0"))


def in_groups(content: Device, groups: tuple[str, ...]) -> Device:
    """Put a device into compatibility groups."""
    draws = tuple(
        structs.replace(each, compatibility_groups=groups)
        for each in content.consumes_counters
    )
    return structs.replace(content, consumes_counters=draws)


def begin(pod: PodAtNode) -> tuple[State, list[RequestData]]:
    """Begin with nothing given out; returns the first choices, too."""
    requests = [alternatives[0] for claim in pod.requests() for alternatives in claim]
    return pod.state(), requests


def test_a_device_is_given_once_until_it_comes_back() -> None:
    """To no other request of the pod, whatever claim that is of."""
    claims = member_claim(request(), name="a"), member_claim(request(), name="b")
    state, (a, b) = begin(pod_at_node(devices(1), *claims))
    undo = state.take(a, 0, must=False)
    assert undo is not None
    assert state.is_in_use(b, 0)
    assert state.take(b, 0, must=False) is None
    state.give_back(a, undo)
    assert state.take(b, 0, must=False) is not None


def test_admin_access_has_what_others_hold() -> None:
    """But a device only once in its own claim."""
    both = member_claim(request("a", admin_access=True), request("b"))
    state, (admin, plain) = begin(pod_at_node(devices(2), both, taken=[HELD]))
    assert state.take(plain, 0, must=False) is None
    assert state.take(admin, 0, must=False) is not None
    assert state.take(plain, 1, must=False) is not None
    assert state.is_in_use(admin, 1)


def test_a_tainted_device_is_not_given_and_leaves_nothing_behind() -> None:
    """Its counters are there for the next."""
    drawing = {"card": {"memory": 6}}
    content = [
        device("sick", consumes=drawing, taints=(taint(),)),
        device("well", consumes=drawing),
    ]
    state, (asking,) = begin(
        pod_at_node(content, counters=[counter_set("card", memory=6)])
    )
    assert state.take(asking, 0, must=False) is None
    assert state.take(asking, 1, must=False) is not None


def test_devices_draw_from_their_counters_while_there_is_something_left() -> None:
    """A card of 10 has room for one part of 6; the other comes after it."""
    content = devices(2, consumes={"card": {"memory": 6}})
    pod = pod_at_node(
        content,
        member_claim(request(count=2)),
        counters=[counter_set("card", memory=10)],
    )
    state, (asking,) = begin(pod)
    undo = state.take(asking, 0, must=False)
    assert undo is not None
    assert state.take(asking, 1, must=False) is None
    state.give_back(asking, undo)
    assert state.take(asking, 1, must=False) is not None


def test_what_others_hold_has_drawn_already() -> None:
    """The pod has only what is left of the counter."""
    content = devices(2, consumes={"card": {"memory": 6}})
    counters = [counter_set("card", memory=10)]
    state, (asking,) = begin(pod_at_node(content, counters=counters, taken=[HELD]))
    assert state.take(asking, 1, must=False) is None


def test_shares_fit_while_capacity_is_left() -> None:
    """Three shares of 4 are more than 10."""
    shared = device(allow_multiple_allocations=True, capacity={"memory": 10})
    claim = member_claim(request(count=3, capacity={"memory": 4}))
    state, (asking,) = begin(pod_at_node([shared], claim))
    assert state.take(asking, 0, must=False) is not None
    undo = state.take(asking, 0, must=False)
    assert undo is not None
    assert not state.fits(asking, 0)
    assert state.take(asking, 0, must=False) is None
    state.give_back(asking, undo)
    assert state.fits(asking, 0)


def test_a_constraint_refuses_a_device_or_ends_the_attempt() -> None:
    """A device that must be had, and may not be, is no answer but an error."""
    content = [device(f"d{i}", attributes={"rail": i}) for i in range(2)]
    rule = constraint(f"{DRIVER}/rail")
    claim = member_claim(request(count=2), constraints=[rule])
    state, (asking,) = begin(pod_at_node(content, claim))
    assert state.take(asking, 0, must=True) is not None
    assert state.take(asking, 1, must=False) is None
    with pytest.raises(FatalError, match="a claim constraint would not be satisfied"):
        state.take(asking, 1, must=True)


@pytest.mark.parametrize(
    ("groups", "goes"),
    [
        ((("x", "y"), ("y",)), True),
        ((("x",), ("y",)), False),
        (((), ("y",)), False),
        (((), ()), True),
    ],
)
def test_devices_on_a_counter_set_share_a_group_or_have_none(
    groups: tuple[tuple[str, ...], ...], goes: bool
) -> None:
    """One with groups and one without do not go together."""
    content = [
        in_groups(device(f"d{i}", consumes={"card": {"memory": 1}}), names)
        for i, names in enumerate(groups)
    ]
    pod = pod_at_node(
        content,
        member_claim(request(count=2)),
        counters=[counter_set("card", memory=10)],
        compatibility_groups=True,
    )
    state, (asking,) = begin(pod)
    undo = state.take(asking, 0, must=False)
    assert undo is not None
    assert (state.take(asking, 1, must=False) is not None) is goes
    if not goes:
        state.give_back(asking, undo)
        assert state.take(asking, 1, must=False) is not None


def test_devices_are_as_other_claims_left_them() -> None:
    """In the order of the pool; who has one for itself keeps it."""
    pod = pod_at_node(devices(2), taken=[HELD])
    assert [(d.name.device, d.held) for d in pod.world.devices] == [
        ("gpu-0", True),
        ("gpu-1", False),
    ]


def test_a_selector_chooses_devices_or_fails_on_them() -> None:
    """A fault is kept: whether it matters depends on what the search reaches."""
    content = [
        device("a", attributes={"model": "x"}),
        device("b", attributes={"model": "y"}),
        device("c"),
    ]
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    pod = pod_at_node(content, member_claim(request(select=[chosen])))
    (((asking,),),) = pod.requests()
    yes, no, fault = pod.world.verdicts_of(asking.part)
    assert (yes, no) == (True, False)
    assert isinstance(fault, str)
    worded = pod.world.fault(asking, pod.claims[0], 2, fault)
    assert worded.startswith("claim team-a/gpus: selector #0 on device ")
    assert worded.endswith("no such key: model")


def test_a_taint_keeps_away_who_does_not_tolerate_it() -> None:
    """Device by device."""
    content = [device("a", taints=(taint(),)), device("b")]
    stranger = pod_at_node(content)
    (((asking,),),) = stranger.requests()
    assert stranger.world.tolerance_of(asking.part) == [False, True]
    friend = pod_at_node(content, member_claim(request(tolerations=(toleration(),))))
    (((asking,),),) = friend.requests()
    assert friend.world.tolerance_of(asking.part) == [True, True]


def test_a_request_for_all_means_the_devices_that_it_selects() -> None:
    """They are fixed before any search, held or not."""
    content = [device(f"d{i}", attributes={"model": "xyx"[i]}) for i in range(3)]
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    pod = pod_at_node(content, member_claim(request(mode="All", select=[chosen])))
    (((asking,),),) = pod.requests()
    assert (asking.targets, asking.count) == ((0, 2), 2)


def test_a_claim_asks_for_32_devices_at_most() -> None:
    """Requests for all of them count what they mean on this node."""
    thrice = member_claim(*(request(name, mode="All") for name in "abc"))
    pod_at_node(devices(10), thrice).requests()
    with pytest.raises(FatalError, match="adding 11 devices exceeds the claim limit"):
        pod_at_node(devices(11), thrice).requests()


def test_of_alternatives_the_one_for_the_fewest_devices_counts() -> None:
    """Another choice may still leave room for all."""
    either = request(
        "b", first_available=[sub_request("x", count=30), sub_request("y", count=2)]
    )
    claim = member_claim(request("a", mode="All"), either)
    pod_at_node(devices(30), claim).requests()
    with pytest.raises(FatalError, match="request b: adding 2 devices"):
        pod_at_node(devices(31), claim).requests()


RAIL = f"{DRIVER}/rail"


def on_rails(*rails: Value | None) -> list[Device]:
    """Make a device on each of these rails; None: on none."""
    return [
        device(f"d{i}", attributes={} if rail is None else {"rail": rail})
        for i, rail in enumerate(rails)
    ]


def constrained(
    content: list[Device], *, distinct: bool = False, lists: bool = False
) -> tuple[PodAtNode, Constraint, RequestData, RequestData]:
    """Constrain request `a` alone; returns it and request `b` too."""
    rule = constraint(
        None if distinct else RAIL, "a", distinct=RAIL if distinct else None
    )
    claim = member_claim(request("a"), request("b"), constraints=[rule])
    pod = pod_at_node(content, claim, list_type_attributes=lists)
    (((a,), (b,)),) = pod.requests()
    return pod, Constraint(pod.world, pod.claims[0].constraints[0]), a, b


def test_matching_devices_have_the_value_of_the_first() -> None:
    """One without the attribute never matches."""
    _, rule, a, _ = constrained(on_rails("x", "y", None, "x"))
    assert [rule.add(a, index) for index in range(4)] == [True, False, False, True]


def test_distinct_devices_have_each_another_value() -> None:
    """One without the attribute is not distinct from any."""
    _, rule, a, _ = constrained(on_rails("x", "y", None, "y"), distinct=True)
    assert [rule.add(a, index) for index in range(4)] == [True, True, False, False]


def test_what_is_taken_back_binds_nobody() -> None:
    """The last one first."""
    _, rule, a, _ = constrained(on_rails("x", "y"))
    assert rule.add(a, 0)
    assert not rule.add(a, 1)
    rule.remove(a)
    assert rule.add(a, 1)


def test_requests_out_of_scope_may_have_any_device() -> None:
    """And what they take says nothing to those in the scope."""
    _, rule, a, b = constrained(on_rails("x", "y"))
    assert (rule.concerns(a), rule.concerns(b)) == (True, False)
    assert rule.add(b, 0)
    assert rule.add(a, 1)
    rule.remove(b)
    assert not rule.add(a, 0)


def test_lists_match_while_one_value_is_common_to_all() -> None:
    """Not to each pair: x is gone after the second."""
    content = on_rails(["x", "y"], ["y", "z"], ["x", "z"], ["y"])
    _, rule, a, _ = constrained(content, lists=True)
    assert [rule.add(a, index) for index in range(4)] == [True, True, False, True]
    rule.remove(a)
    rule.remove(a)
    assert rule.add(a, 2)


def test_while_lists_are_off_a_list_has_no_value() -> None:
    """It neither matches nor differs."""
    for distinct in (False, True):
        _, rule, a, _ = constrained(on_rails("x", ["x"]), distinct=distinct)
        assert rule.add(a, 0)
        assert not rule.add(a, 1)


def test_the_attribute_is_that_of_the_drivers_domain() -> None:
    """A bare name is one of the driver's own."""
    pod, rule, a, _ = constrained(on_rails("x"))
    attribute = rule.attribute_of(a, 0)
    assert attribute is not None
    assert attribute.string_value == "x"
    assert rule.name == FullyQualifiedName(RAIL)
    assert pod.world.devices[0].device.attributes.keys() == {"rail"}


ON_RAIL = constraint(f"{DRIVER}/rail")


def begin_alike(
    content: Sequence[Device], *claims: MemberClaim
) -> tuple[Symmetry, State, RequestData]:
    """Begin with nothing given out; returns the first request, too."""
    pod = pod_at_node(content, *claims)
    state, requests = pod.state(), pod.requests()
    return Symmetry(pod.world, state, requests), state, requests[0][0][0]


def are_alike(symmetry: Symmetry, one: int, other: int) -> bool:
    """Whether two devices have a key in common."""
    return not set(symmetry.keys_of(one)).isdisjoint(symmetry.keys_of(other))


def test_devices_that_nobody_tells_apart_are_interchangeable() -> None:
    """Names and what no request reads do not matter."""
    content = [device(f"d{i}", attributes={"serial": i}) for i in range(2)]
    symmetry, _, _ = begin_alike(content)
    assert are_alike(symmetry, 0, 1)


def test_what_a_selector_or_a_counter_tells_apart_is_not() -> None:
    """Nor what some constraint compares."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    models = [device(f"d{i}", attributes={"model": "xyx"[i]}) for i in range(3)]
    symmetry, _, _ = begin_alike(models, member_claim(request(select=[chosen])))
    assert not are_alike(symmetry, 0, 1)
    assert are_alike(symmetry, 0, 2)


def test_values_with_equal_devices_are_interchangeable_as_a_whole() -> None:
    """Two rails of two devices are; one of one device is another thing."""
    content = [device(f"d{i}", attributes={"rail": "xxyyz"[i]}) for i in range(5)]
    claim = member_claim(request(count=2), constraints=[ON_RAIL])
    symmetry, _, _ = begin_alike(content, claim)
    assert are_alike(symmetry, 0, 1)
    assert are_alike(symmetry, 0, 2)
    assert not are_alike(symmetry, 0, 4)


def test_a_value_that_is_chosen_already_is_no_other_values_equal() -> None:
    """Once a device of a rail is given out, the rail is not exchanged."""
    content = [device(f"d{i}", attributes={"rail": "xxxyyy"[i]}) for i in range(6)]
    claim = member_claim(request(count=2), constraints=[ON_RAIL])
    symmetry, state, asking = begin_alike(content, claim)
    undo = state.take(asking, 0, must=False)
    assert undo is not None
    assert are_alike(symmetry, 1, 2)
    assert not are_alike(symmetry, 1, 3)
    state.give_back(asking, undo)
    assert are_alike(symmetry, 1, 3)


def test_a_device_with_a_share_given_out_is_not_like_one_without() -> None:
    """What is left of it differs."""
    content = devices(2, allow_multiple_allocations=True, capacity={"memory": 10})
    claim = member_claim(request(count=2, capacity={"memory": 4}))
    symmetry, state, asking = begin_alike(content, claim)
    assert are_alike(symmetry, 0, 1)
    assert state.take(asking, 0, must=False) is not None
    assert not are_alike(symmetry, 0, 1)
