"""Laws of health and turns: a look counts once, a turn comes once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from nodeagent.health import (
    DeviceRecord,
    HealthPolicy,
    HealthState,
    HealthStatus,
    Moment,
    Reading,
    Symptom,
    judge,
)
from nodeagent.schedule import list_due

DEVICES = [
    DeviceID(DriverName("d.io"), PoolName("p"), DeviceName(f"gpu-{index}"))
    for index in range(3)
]
POLICY = HealthPolicy(
    bad_readings=2, good_readings=2, recovery_s=1.0, unknown_after_s=2.0
)
looks = st.dictionaries(st.sampled_from(DEVICES), st.sampled_from(Symptom)).map(
    lambda found: [Reading(device, symptom) for device, symptom in found.items()]
)
histories = st.lists(st.tuples(st.integers(1, 4), looks), min_size=1, max_size=25)


def play(history: list[tuple[int, list[Reading]]]) -> tuple[HealthState, float]:
    """Judge looks with so many half seconds between them."""
    state: HealthState = {}
    now_s = 0.0
    for pause, readings in history:
        now_s += pause / 2
        state, _ = judge(POLICY, state, readings, Moment(now_s, ""))
    return state, now_s


@given(histories)
def test_the_same_look_twice_changes_nothing(
    history: list[tuple[int, list[Reading]]],
) -> None:
    """At the same moment, the same readings say nothing new."""
    state, now_s = play(history)
    again, changes = judge(POLICY, state, history[-1][1], Moment(now_s, ""))
    assert again == state
    assert changes == ()


@given(histories)
def test_devices_are_judged_apart(history: list[tuple[int, list[Reading]]]) -> None:
    """What is read of other devices does not matter for a device."""
    state, _ = play(history)
    for device in DEVICES:
        alone, _ = play(
            [
                (pause, [look for look in readings if look.device == device])
                for pause, readings in history
            ]
        )
        assert alone.get(device) == state.get(device)


@given(histories)
def test_only_evidence_changes_a_status(
    history: list[tuple[int, list[Reading]]],
) -> None:
    """Unhealthy has bad readings behind it; Healthy follows good ones, not silence."""
    state: HealthState = {}
    now_s = 0.0
    for pause, readings in history:
        now_s += pause / 2
        symptoms = {look.device: look.symptom for look in readings}
        before = state
        state, changes = judge(POLICY, state, readings, Moment(now_s, ""))
        for change in changes:
            assert before.get(change.device, DeviceRecord()).status is change.before
            assert {
                HealthStatus.UNHEALTHY: Symptom.BAD,
                HealthStatus.UNKNOWN: Symptom.SILENT,
                HealthStatus.HEALTHY: None,
            }[change.after] is symptoms.get(change.device)


@given(histories)
def test_good_readings_heal_in_the_end(
    history: list[tuple[int, list[Reading]]],
) -> None:
    """Whatever went before, enough of them leave nothing behind."""
    state, now_s = play(history)
    for _ in range(3):
        now_s += 1.0
        state, _ = judge(POLICY, state, (), Moment(now_s, ""))
    assert state == {}


@given(
    st.integers(1, 50),
    st.floats(0.1, 100),
    st.floats(0, 1),
    st.lists(st.floats(0.001, 0.4), min_size=3, max_size=40),
)
def test_turns_come_in_a_circle_however_time_is_cut(
    count: int, interval_s: float, phase: float, steps: list[float]
) -> None:
    """One after the other: so everybody comes equally often, to within one turn."""
    now_s = 1000.0
    seen: list[int] = []
    for step in steps:
        seen += list_due(count, interval_s, phase, now_s, now_s + step * interval_s)
        now_s += step * interval_s
    assert all(after == (before + 1) % count for before, after in pairwise(seen))
    assert abs(len(seen) - sum(steps) * count) <= 1.01
