"""Devices by class: what is free, held, unhealthy or away, counted node by node."""

from __future__ import annotations

from contracts.device import Device
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from solver.service.device_counts import Classes, DeviceCounts, count_page, list_classes
from solver.snapshot.snapshot import NodePresence, Snapshot, apply
from tests.builders import DRIVER, devices, pool, taint
from tests.builders.problems import evaluate, snapshot_of

CLASSES = {"all": ("true",), "other": ('device.driver == "other.example.com"',)}


class Judging:
    """Evaluates selectors, counts how often, and may not know yet."""

    def __init__(self) -> None:
        self.asked = 0
        self.knows = True

    def __call__(self, expression: str, driver: str, device: Device) -> bool | None:
        """Judge, or say that nobody knows yet."""
        self.asked += 1
        return evaluate(expression, driver, device).value if self.knows else None


def device(node: str, number: int) -> DeviceID:
    name = DeviceName(f"gpu-{number}")
    return DeviceID(DriverName(DRIVER), PoolName(node), name)


def known() -> Snapshot:
    """Two nodes with four devices; of a's one is held, one sick and one is both."""
    return snapshot_of(
        {node: (pool(*devices(4), name=node),) for node in ("a", "b")},
        classes=CLASSES,
        taken=(device("a", 0), device("a", 2)),
        taints={device("a", 1): taint(), device("a", 2): taint()},
    )


def classes_of(snapshot: Snapshot) -> Classes:
    return list_classes(snapshot.inventory.pages.of(""))


def count(snapshot: Snapshot, judge: Judging, classes: Classes) -> DeviceCounts:
    counts = DeviceCounts.of_none()
    for page in snapshot.inventory.pages:
        counts.add(count_page(page, classes, judge))
    return counts


def test_each_device_is_in_one_state_and_in_its_classes() -> None:
    snapshot = known()
    counts = count(snapshot, Judging(), classes_of(snapshot))
    assert counts.devices == {
        ("all", "free"): 5,
        ("all", "held"): 1,
        ("all", "unhealthy"): 1,
        ("all", "held_unhealthy"): 1,
    }
    assert counts.nodes == {("all", 1): 2, ("all", 2): 1, ("all", 4): 1}


def test_what_is_idle_on_a_node_that_is_away_is_not_free() -> None:
    snapshot = apply(known(), NodePresence(node=NodeName("b"), away=True))
    counts = count(snapshot, Judging(), classes_of(snapshot))
    assert counts.devices["all", "unavailable"] == 4
    assert counts.devices["all", "free"] == 1
    assert counts.devices["all", "held"] == 1


def test_only_what_changed_is_counted_again() -> None:
    snapshot, judge = known(), Judging()
    classes = classes_of(snapshot)
    first = count(snapshot, judge, classes)
    asked = judge.asked
    assert count(snapshot, judge, classes) == first
    assert judge.asked == asked

    changed = apply(snapshot, NodePresence(node=NodeName("b"), away=True))
    assert count(changed, judge, classes) != first
    assert judge.asked == asked, "its devices are the same"


def test_a_selector_that_is_not_judged_yet_is_asked_again() -> None:
    snapshot, judge = known(), Judging()
    classes = classes_of(snapshot)
    judge.knows = False
    assert not count(snapshot, judge, classes).devices
    judge.knows = True
    assert count(snapshot, judge, classes).devices["all", "free"] == 5


def test_another_class_has_everything_counted_anew() -> None:
    snapshot, judge = known(), Judging()
    count(snapshot, judge, classes_of(snapshot))
    only = tuple(part for part in classes_of(snapshot) if part.name == "other")
    assert not count(snapshot, judge, only).devices
