"""What a pod's requests are to the devices of a node, before any is chosen."""

from __future__ import annotations

import pytest

from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.errors import FatalError
from tests.builders import (
    DRIVER,
    NODE,
    device,
    devices,
    member_claim,
    request,
    sub_request,
    taint,
    toleration,
)
from tests.builders.upstream import pod_at_node

HELD = DeviceID(DriverName(DRIVER), PoolName(NODE), DeviceName("gpu-0"))


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
