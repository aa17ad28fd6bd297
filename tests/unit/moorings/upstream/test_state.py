"""What a search has given out, and what it may give out next."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.device import Device
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from moorings.upstream.state import State
from moorings.upstream.world import RequestData
from solver.errors import FatalError
from tests.builders import (
    DRIVER,
    NODE,
    constraint,
    counter_set,
    device,
    devices,
    member_claim,
    request,
    taint,
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
