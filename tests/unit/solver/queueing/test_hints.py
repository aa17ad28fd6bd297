"""What may turn a no into a yes, for whom."""

from __future__ import annotations

from msgspec import structs

from solver.queueing.hints import events_for, widen_events
from solver.snapshot.events import (
    ANYTHING,
    EXTENDED_RESOURCES,
    NODE_EVENT,
    POD_EVENT,
    ClusterEvent,
    claim_event,
    class_event,
    driver_event,
    template_event,
)
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    DRIVER,
    claim,
    claim_template,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.problems import observe, snapshot_of

INSISTS = f'device.driver == "{DRIVER}"'


def events(snapshot: Snapshot) -> frozenset[ClusterEvent]:
    """List what may help the only gang that waits."""
    (record,) = snapshot.waiting.values()
    return events_for(snapshot, record) - {ANYTHING}


def test_a_gang_names_the_classes_of_all_its_alternatives() -> None:
    """Written out, or by the template or claim that it refers to."""
    either = request(
        first_available=[
            sub_request("x", device_class="b"),
            sub_request("y", device_class="c"),
        ]
    )
    wanted = gang(member(member_claim(request("one", device_class="a"), either)))
    classes = {class_event("a"), class_event("b"), class_event("c")}
    assert events(snapshot_of({}, [wanted])) == classes
    by_name = gang(
        member(member_claim(template="t")),
        member(member_claim(claim="c"), name="other"),
        namespace="ns",
    )
    snapshot = snapshot_of({}, [by_name])
    named = {template_event("ns/t"), claim_event("ns/c")}
    assert events(snapshot) == named
    template = claim_template(request(device_class="a"), name="t", namespace="ns")
    snapshot = observe(snapshot, "ns/t", template)
    existing = claim(request(device_class="b"), name="c", namespace="ns")
    snapshot = observe(snapshot, "ns/c", existing)
    assert events(snapshot) == named | {class_event("a"), class_event("b")}


def test_pods_without_claims_look_at_nodes_and_some_at_resources_of_classes() -> None:
    plain = structs.replace(member(resources={"cpu": 1}), claims=())
    assert events(snapshot_of({}, [gang(plain)])) == {NODE_EVENT}
    extended = structs.replace(member(resources={"example.com/gpu": 1}), claims=())
    expected = {NODE_EVENT, EXTENDED_RESOURCES}
    assert events(snapshot_of({}, [gang(extended)])) == expected


def test_devices_concern_the_classes_that_may_choose_them() -> None:
    """One that insists on their driver, and one that insists on none."""
    classes = {
        "own": (INSISTS,),
        "any": ('device.attributes["x"].y == "z"',),
        "both": (INSISTS, 'device.driver == "other"'),
        "other": ('device.driver == "other"',),
    }
    snapshot = snapshot_of({}, classes=classes)
    grown = widen_events(snapshot, [driver_event(DRIVER)])
    assert grown == {
        driver_event(DRIVER),
        class_event("own"),
        class_event("any"),
        EXTENDED_RESOURCES,
    }
    assert widen_events(snapshot, [POD_EVENT]) == {POD_EVENT}
    assert widen_events(snapshot, []) == frozenset()


def test_a_node_concerns_devices_that_no_node_owns() -> None:
    """They may be used from any node, so from this one, too."""
    snapshot = snapshot_of({"a": [pool(*devices(1), name="a")]})
    assert widen_events(snapshot, [NODE_EVENT]) == {NODE_EVENT}
