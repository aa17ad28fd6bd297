"""Hysteresis: how much evidence it takes to change a status."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts import names
from contracts.ids import (
    ClusterName,
    DeviceID,
    DeviceName,
    DriverName,
    NodeName,
    PoolName,
)
from nodeagent.health import (
    DeviceRecord,
    HealthPolicy,
    HealthState,
    HealthStatus,
    Moment,
    Reading,
    Symptom,
    TaintEffect,
    judge,
    keep_devices,
    restore,
    to_message,
)

POLICY = HealthPolicy(
    bad_readings=3, good_readings=2, recovery_s=5.0, unknown_after_s=10.0
)
QUIET = structs.replace(POLICY, unhealthy_effect=TaintEffect.NONE)
SEVERE = structs.replace(POLICY, evict_reasons=frozenset({"Xid79"}))
DEVICE = DeviceID(DriverName("d.io"), PoolName("p"), DeviceName("gpu-0"))
OTHER = DeviceID(DriverName("d.io"), PoolName("p"), DeviceName("gpu-1"))
CLUSTER, NODE = ClusterName("c"), NodeName("n")


def after(
    looks: str,
    state: HealthState | None = None,
    start_s: int = 0,
    policy: HealthPolicy = POLICY,
) -> HealthState:
    """Take one look a second: `b`ad, severe (x), `g`ood or `s`ilent."""
    readings = {
        "b": (Reading(DEVICE, Symptom.BAD, "ECC error"),),
        "x": (Reading(DEVICE, Symptom.BAD, "fell off the bus", "Xid79"),),
        "s": (Reading(DEVICE, Symptom.SILENT),),
        "g": (),
    }
    state = state or {}
    for second, look in enumerate(looks, start_s):
        state, _ = judge(policy, state, readings[look], moment(second))
    return state


def moment(second: float) -> Moment:
    return Moment(float(second), f"at {second}")


def status(state: HealthState) -> HealthStatus:
    return state.get(DEVICE, DeviceRecord()).status


HEALTHY, UNHEALTHY, UNKNOWN = HealthStatus
GONE = "bbb"


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ("bb", HEALTHY),  # too little evidence is none
        (GONE, UNHEALTHY),  # as many as the policy asks for, and no more
        ("bbgbb", HEALTHY),  # a good reading between starts the row again
        ("bbsb", UNHEALTHY),  # silence does not
        (GONE + "g" * 5, UNHEALTHY),  # enough readings, but they came too quickly
        (GONE + "g" * 6, HEALTHY),
        (GONE + "ggggg" + "b" + "ggggg", UNHEALTHY),  # recovery starts again
        ("s" * 10, HEALTHY),
        ("s" * 11, UNKNOWN),  # after the time that the policy allows
        (GONE + "s" * 20, UNHEALTHY),  # nobody recovers by saying nothing
        ("s" * 11 + GONE, UNHEALTHY),  # evidence wins over the lack of it
    ],
)
def test_a_status_follows_from_evidence(looks: str, expected: HealthStatus) -> None:
    """It takes some to change one, and time as well to recover."""
    assert status(after(looks)) is expected


def test_recovery_needs_enough_readings_however_long_it_took() -> None:
    """Enough time is not enough without readings."""
    state = after("bbb")
    for second, expected in ((100, UNHEALTHY), (200, HEALTHY)):
        state, _ = judge(POLICY, state, (), moment(second))
        assert status(state) is expected


def test_a_healthy_device_costs_no_memory() -> None:
    """Nothing is kept of a device about which there is nothing to say."""
    assert after("bbb" + "gggggg") == {}


def test_a_change_is_told_once() -> None:
    """The reading that changes the status is told, those after it are not."""
    state = after("bb")
    reading = Reading(DEVICE, Symptom.BAD, "hot")
    state, changes = judge(POLICY, state, [reading], moment(2))
    assert [(c.before, c.after, c.message) for c in changes] == [
        (HEALTHY, UNHEALTHY, "hot")
    ]
    assert judge(POLICY, state, [reading], moment(3))[1] == ()


def test_taints_say_when_the_status_was_given() -> None:
    """The time of the change stays, however many readings follow."""
    (item,) = to_message(POLICY, CLUSTER, NODE, after("bbbbb")).devices
    (taint,) = item.taints
    assert (taint.key, taint.value) == (names.UNHEALTHY, "Unhealthy")
    assert taint.time_added == "at 2"
    assert item.message == "ECC error"


@pytest.mark.parametrize(
    ("policy", "looks", "effect"),
    [
        (POLICY, "bbb", "NoSchedule"),
        (POLICY, "s" * 11, "NoSchedule"),
        (QUIET, "bbb", "None"),
        (QUIET, "s" * 11, "NoSchedule"),
        (SEVERE, "xxx", "NoExecute"),  # listed, and enough of them in a row
        (POLICY, "xxx", "NoSchedule"),
        (SEVERE, "bbx", "NoSchedule"),
        (SEVERE, "xxbx", "NoSchedule"),
        (SEVERE, "xxxbbb", "NoExecute"),  # pods were ended: milder takes nothing back
    ],
)
def test_effects_follow_the_policy(
    policy: HealthPolicy, looks: str, effect: str
) -> None:
    """Each status has the effect that the policy names; by default none ends pods."""
    assert effect_of(after(looks, policy=policy), policy) == effect


def test_an_unhealthy_device_that_becomes_severe_is_told() -> None:
    """With the time and words of then: what tolerates it counts from there."""
    state = after("bbbxx", policy=SEVERE)
    reading = Reading(DEVICE, Symptom.BAD, "fell off the bus", "Xid79")
    state, changes = judge(SEVERE, state, [reading], moment(5))
    assert [(c.before, c.after, c.evicts) for c in changes] == [
        (UNHEALTHY, UNHEALTHY, True)
    ]
    (item,) = to_message(SEVERE, CLUSTER, NODE, state).devices
    assert (item.reason, item.taints[0].effect) == ("Xid79", "NoExecute")
    assert item.taints[0].time_added == "at 5"


def test_a_reason_that_is_no_longer_listed_evicts_no_more_after_a_restart() -> None:
    """What the configuration says now counts for what was said before, too."""
    message = to_message(SEVERE, CLUSTER, NODE, after("xxx", policy=SEVERE))
    restored = restore(message, {})
    assert to_message(SEVERE, CLUSTER, NODE, restored) == message
    assert effect_of(restored, POLICY) == "NoSchedule"


def test_the_worst_of_several_readings_counts() -> None:
    """A source may report everything that it sees of a device."""
    found = [
        Reading(DEVICE, Symptom.SILENT, "mute"),
        Reading(DEVICE, Symptom.BAD, "gone", "Xid79"),
        Reading(DEVICE, Symptom.BAD, "hot", "Hot"),
    ]
    policy = structs.replace(SEVERE, bad_readings=1)
    for readings in (found, found[::-1]):
        state, _ = judge(policy, {}, readings, moment(0))
        assert (status(state), state[DEVICE].reason) == (UNHEALTHY, "Xid79")


def test_a_device_that_was_not_read_stays_as_it_is() -> None:
    """Neither good nor bad readings, nor silence, are made of no reading."""
    for looks in ("bb", "bbb", "bbbg", "ssss"):
        before = after(looks)
        state, changes = judge(POLICY, before, (), moment(99), {DEVICE})
        assert (state, changes) == (before, ())
    assert judge(POLICY, {}, (), moment(0), {DEVICE}) == ({}, ())


def effect_of(state: HealthState, policy: HealthPolicy) -> str:
    """Return the effect of the taint of the one device."""
    (item,) = to_message(policy, CLUSTER, NODE, state).devices
    return item.taints[0].effect


def test_suspicion_is_no_news() -> None:
    """What has not changed the status does not show in the message."""
    assert to_message(POLICY, CLUSTER, NODE, after("bb")).devices == ()


def test_what_was_said_before_a_restart_is_said_again() -> None:
    """Restoring a message and saying it again gives the same message."""
    for looks in ("bbb", "s" * 11):
        message = to_message(POLICY, CLUSTER, NODE, after(looks))
        assert to_message(POLICY, CLUSTER, NODE, restore(message, {})) == message


def test_restored_devices_recover_as_all_others() -> None:
    """The time before the restart counts for nothing in recovery."""
    restored = restore(to_message(POLICY, CLUSTER, NODE, after("bbb")), {})
    assert status(after("gggggg", restored, start_s=50)) is HEALTHY


@pytest.mark.parametrize(
    ("said", "since"),
    [
        ("bbb", "b"),  # the first readings must not make an old taint flap
        ("s" * 11, "bbb"),  # what was judged after the start is newer
    ],
)
def test_what_was_said_stays_until_there_is_a_new_status(said: str, since: str) -> None:
    """Of a restart nothing is heard but what it finds out."""
    message = to_message(POLICY, CLUSTER, NODE, after(said))
    assert status(restore(message, after(since))) is UNHEALTHY


def test_devices_that_are_gone_are_forgotten() -> None:
    """Records are kept of the devices that are still there alone."""
    state = {**after("bbb"), OTHER: DeviceRecord(status=UNKNOWN)}
    assert keep_devices(state, {OTHER}).keys() == {OTHER}
