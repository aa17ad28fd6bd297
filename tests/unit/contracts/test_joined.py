"""What is said of pods that run has bounds."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import MAX_MEMBERS
from contracts.gang_rules import MAX_CONSTRAINTS, MAX_TOPOLOGY
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.joined import MAX_JOINED_DEVICES, JoinedDevice, JoinedGang, JoinedPod
from tests.builders import gang_constraint, topology_rule

DEVICE = JoinedDevice(
    claim="nic",
    request="nic",
    device=DeviceID(DriverName("d"), PoolName("p"), DeviceName("x")),
)


def pod(*devices: JoinedDevice) -> JoinedPod:
    return JoinedPod(
        member="w", name="w-0", uid="u", node=NodeName("n"), devices=devices
    )


@pytest.mark.parametrize(
    ("part", "one", "most"),
    [
        ("pods", pod(), MAX_MEMBERS),
        ("constraints", gang_constraint("a.io/x"), MAX_CONSTRAINTS),
        ("topology", topology_rule("rack"), MAX_TOPOLOGY),
    ],
)
def test_there_are_so_many_and_no_more(part: str, one: Any, most: int) -> None:
    JoinedGang(**{"pods": (), part: (one,) * most})
    with pytest.raises(ValueError, match=f"joins.{part}: {most + 1}, more"):
        JoinedGang(**{"pods": (), part: (one,) * (most + 1)})


def test_devices_are_counted_over_all_pods() -> None:
    half = pod(*(DEVICE,) * (MAX_JOINED_DEVICES // 2))
    JoinedGang(pods=(half, half))
    with pytest.raises(ValueError, match=r"joins.pods\[\].devices"):
        JoinedGang(pods=(half, half, pod(DEVICE)))
