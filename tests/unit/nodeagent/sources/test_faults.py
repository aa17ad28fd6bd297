"""Faults over time."""

from __future__ import annotations

import pytest

from contracts.ids import NodeName
from nodeagent.errors import SettingsError
from nodeagent.health import Symptom
from nodeagent.sources.expand import Nodes, expand
from nodeagent.sources.faults import FaultSpan, FaultState, find_faults, plan_faults
from nodeagent.sources.fleet import read_faults, read_fleet

FLEET = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
seed: 3
nodes:
- shape: n
  count: 4
  devices:
  - {driver: gpu.example.com, count: 4, name: "gpu-{index}"}
  - {driver: nic.example.com, count: 2, name: "nic-{index}"}
- {shape: cpu, count: 1}
"""
N0 = NodeName("n-0")


def nodes(seed: int = 3) -> Nodes:
    return expand(read_fleet(FLEET.replace("seed: 3", f"seed: {seed}"), "f"), "f")


def plan(fault: str, seed: int = 3) -> tuple[FaultSpan, ...]:
    specs = read_faults(f"faults: [{fault}]", "faults.yaml")
    return plan_faults(specs, nodes(seed), "faults.yaml")


def test_a_fault_comes_and_goes() -> None:
    """It begins at its time and has ended when its duration is over."""
    spans = plan("{node: n-0, device: gpu-1, verdict: Unhealthy, at: 20s, for: 30s}")
    for elapsed_s, active in ((19.9, False), (20, True), (49.9, True), (50, False)):
        assert bool(find_faults(spans, elapsed_s).readings) is active


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("", "Unhealthy"),
        (", reason: Xid", "simulated: Unhealthy"),
        (", message: hot", "hot"),
    ],
)
def test_a_fault_says_once_that_it_is_simulated(said: str, message: str) -> None:
    """Its reason stands before its message, and says so by default."""
    spans = plan("{node: n-0, verdict: Unhealthy" + said + "}")
    assert {span.message for span in spans} == {message}


def test_a_fault_without_an_end_stays() -> None:
    """An empty duration is for good."""
    spans = plan("{node: n-0, device: gpu-1, verdict: Unhealthy}")
    assert find_faults(spans, 0).readings.keys() == {N0}
    assert find_faults(spans, 1e9) == find_faults(spans, 0)


def test_globs_find_nodes_and_devices() -> None:
    """A pattern means every node and device that it matches."""
    spans = plan('{node: "*", device: "nic-*", verdict: Unhealthy}')
    readings = find_faults(spans, 0).readings
    assert sorted(readings) == ["n-0", "n-1", "n-2", "n-3"]
    assert [look.device.device for look in readings[N0]] == ["nic-0", "nic-1"]


def test_verdicts_become_symptoms() -> None:
    """Unhealthy is a bad reading, Unknown is silence."""
    bad, silent = (
        find_faults(plan(f"{{node: n-0, device: gpu-0, verdict: {verdict}}}"), 0)
        for verdict in ("Unhealthy", "Unknown")
    )
    assert bad.readings[N0][0].symptom is Symptom.BAD
    assert silent.readings[N0][0].symptom is Symptom.SILENT


def test_bad_readings_hide_silence_in_either_order() -> None:
    """Of two faults of one device the worse one shows."""
    one = plan("{node: n-0, device: gpu-0, verdict: Unhealthy}")
    other = plan("{node: n-0, device: gpu-0, verdict: Unknown}")
    for spans in (one + other, other + one):
        (look,) = find_faults(spans, 0).readings[N0]
        assert look.symptom is Symptom.BAD


def test_a_removed_device_is_not_read() -> None:
    """A device that is not there has no symptoms."""
    spans = plan("{node: n-0, device: gpu-0, verdict: Removed}") + plan(
        '{node: n-0, device: "gpu-[01]", verdict: Unhealthy}'
    )
    state = find_faults(spans, 0)
    assert [device.device for device in state.removed[N0]] == ["gpu-0"]
    assert [look.device.device for look in state.readings[N0]] == ["gpu-1"]


def test_a_node_without_devices_can_be_away() -> None:
    """Being away is about the node."""
    assert find_faults(plan("{node: cpu-0, verdict: Away}"), 0) == FaultState(
        away=frozenset({NodeName("cpu-0")})
    )


def test_jitter_spreads_nodes_by_the_seed() -> None:
    """Each node's fault starts at its own time, the same in every run."""
    fault = '{node: "n-*", device: gpu-0, verdict: Unhealthy, at: 5s, jitter: 10s}'
    starts = [span.start_s for span in plan(fault)]
    assert len(set(starts)) == 4
    assert all(5 <= start < 15 for start in starts)
    assert starts == [span.start_s for span in plan(fault)]
    assert starts != [span.start_s for span in plan(fault, seed=4)]


@pytest.mark.parametrize(
    ("fault", "field", "rule"),
    [
        ("{node: n-0}", "faults[0]", "missing required field `verdict`"),
        ("{node: n-0, verdict: Sick}", "faults[0].verdict", "Unhealthy, Unknown"),
        ("{node: n-9, verdict: Away}", "faults[0].node", "no node is named 'n-9'"),
        ("{node: n-0, device: x, verdict: Unknown}", "faults[0].device", "named 'x'"),
        (
            "{node: n-0, device: x, verdict: Away}",
            "faults[0].device",
            "Away is for nodes",
        ),
        ("{node: n-0, verdict: Away, at: 5}", "faults[0].at", "Expected `str`"),
        ("{node: n-0, verdict: Away, at: 5d}", "faults[0].at", "must be a duration"),
        ("{node: n-0, verdict: Away, for: x}", "faults[0].for", "must be a duration"),
        ("{node: n-0, verdict: Away, jitter: -1s}", "faults[0].jitter", "duration"),
        ("{node: n-0, verdict: Away, duration: 1s}", "faults[0]", "unknown field"),
    ],
)
def test_a_broken_rule_is_named_with_its_field(
    fault: str, field: str, rule: str
) -> None:
    """Whoever writes a faults file is told where it is wrong."""
    with pytest.raises(SettingsError) as caught:
        plan(fault)
    assert caught.value.field == field
    assert rule in caught.value.rule


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("20s", 20), ("1.5m", 90), ("2h", 7200)]
)
def test_durations_are_read_in_their_unit(text: str, seconds: float) -> None:
    """Milliseconds, seconds, minutes and hours, whole or not."""
    (span,) = plan(f"{{node: n-0, verdict: Away, at: {text}}}")
    assert span.start_s == seconds
