"""A device that is not healthy shows in the claims that hold it, and nothing else."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.claim import ResourceClaim, ResourceClaimStatus
from contracts.ids import DeviceID, DeviceName, DriverName, PoolID, PoolName
from contracts.messages import DeviceHealth
from publisher.device_status.plan import Entry, UnhealthyOf, plan_device_status
from tests import builders

NOW, LATER = "2026-11-20T12:00:00Z", "2026-11-20T12:00:09Z"
DRIVER, POOL = DriverName(builders.DRIVER), PoolName(builders.NODE)


def holding(*devices: str, status: tuple[Entry, ...] = ()) -> ResourceClaim:
    """Make a claim that holds devices of our pool, with what is said of them."""
    allocation = builders.allocation(*(builders.result(name) for name in devices))
    return replace(
        builders.claim(),
        status=ResourceClaimStatus(allocation=allocation, devices=status),
    )


def sick(**verdicts: str) -> UnhealthyOf:
    """Say which devices (`gpu_0`) of our pool are not healthy."""
    items = {
        DeviceName(name.replace("_", "-")): DeviceHealth(
            device=DeviceID(DRIVER, POOL, DeviceName(name.replace("_", "-"))),
            verdict=verdict,
            message="XID 79",
        )
        for name, verdict in verdicts.items()
    }
    return lambda pool: items if pool == PoolID(DRIVER, POOL) else None


def conditions(entries: tuple[Entry, ...] | None) -> list[tuple[Any, ...]]:
    """Give device, status, reason and time of each condition."""
    return [
        (
            entry["device"],
            *(entry["conditions"][0][key] for key in ("status", "reason")),
            entry["conditions"][0]["lastTransitionTime"],
        )
        for entry in entries or ()
    ]


def test_only_devices_that_are_not_healthy_get_a_condition() -> None:
    """A healthy claim is not written to."""
    claim = holding("gpu-0", "gpu-1", "gpu-2")
    assert plan_device_status(claim, sick(), NOW) is None
    found = plan_device_status(claim, sick(gpu_1="Unhealthy", gpu_2="Unknown"), NOW)
    assert conditions(found) == [
        ("gpu-1", "False", "Unhealthy", NOW),
        ("gpu-2", "Unknown", "HealthUnknown", NOW),
    ]


def test_the_message_begins_with_the_agent_s_code() -> None:
    judged = sick(gpu_0="Unhealthy")(PoolID(DRIVER, POOL)) or {}
    coded = {name: replace(each, reason="Xid79") for name, each in judged.items()}
    (entry,) = plan_device_status(holding("gpu-0"), lambda _: coded, NOW) or ()
    assert entry["conditions"][0]["message"] == "Xid79: XID 79"


def test_conditions_change_only_with_health_and_keep_their_time() -> None:
    """A condition that holds on keeps the time of its change."""
    said = plan_device_status(holding("gpu-0"), sick(gpu_0="Unhealthy"), NOW)
    assert said is not None
    told = holding("gpu-0", "gpu-1", status=said)
    assert plan_device_status(told, sick(gpu_0="Unhealthy"), LATER) is None
    both = plan_device_status(told, sick(gpu_0="Unhealthy", gpu_1="Unhealthy"), LATER)
    assert [item[3] for item in conditions(both)] == [NOW, LATER]
    again = plan_device_status(told, sick(), LATER)
    assert conditions(again) == [("gpu-0", "True", "Healthy", LATER)]


def test_what_others_say_stays_unless_the_device_fails() -> None:
    """Whatever they wrote beside our fields does not make us write again."""
    theirs = {
        "type": "Ready",
        "status": "True",
        "reason": "LinkUp",
        "observedGeneration": 1,
    }
    entry = {"driver": DRIVER, "pool": POOL, "device": "gpu-0", "conditions": [theirs]}
    claim = holding("gpu-0", status=(entry,))
    assert plan_device_status(claim, sick(), NOW) is None
    said = plan_device_status(claim, sick(gpu_0="Unhealthy"), NOW)
    assert said is not None
    merged = {**entry, "conditions": [{**theirs, **said[0]["conditions"][0]}]}
    told = holding("gpu-0", status=(merged,))
    assert plan_device_status(told, sick(gpu_0="Unhealthy"), LATER) is None


def test_devices_of_other_drivers_and_unallocated_claims_are_left_alone() -> None:
    """We speak of devices of our agents alone."""
    foreign = builders.result("gpu-0", driver="gpu.nvidia.com")
    status = ResourceClaimStatus(allocation=builders.allocation(foreign))
    claim = replace(builders.claim(), status=status)
    assert plan_device_status(claim, sick(gpu_0="Unhealthy"), NOW) is None
    assert plan_device_status(builders.claim(), sick(gpu_0="Unhealthy"), NOW) is None


def test_device_of_several_requests_has_one_entry() -> None:
    """Status is of devices, not of requests."""
    said = plan_device_status(holding("gpu-0", "gpu-0"), sick(gpu_0="Unhealthy"), NOW)
    assert conditions(said) == [("gpu-0", "False", "Unhealthy", NOW)]
