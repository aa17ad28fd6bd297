"""What becomes of a Workload that Kueue asks us about."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Gang
from contracts.names import GANG, MEMBER, TOPOLOGY
from publisher.kueue.objects import (
    ADMISSION_GATE,
    GATED_BY,
    read_flavor,
    read_kueue_workload,
)
from publisher.kueue.plan_checks import CheckPlan, make_gang, plan_check, plan_refusal
from tests.builders import topology_rule

Json = dict[str, Any]
SPOT = {"key": "spot", "operator": "Exists"}
FLAVORS = {
    "spot": read_flavor(
        {"spec": {"nodeLabels": {"pool": "spot"}, "tolerations": [SPOT]}}, "spot"
    )
}
SINCE, NOW, LATE = (f"2026-11-22T10:0{minute}:00Z" for minute in range(3))


def workload(
    state: str = "Pending", *, quota: bool = True, message: str = "", **more: Any
) -> Json:
    claim = {"name": "d", "resourceClaimTemplateName": "pair"}
    container = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    template = {"spec": {"containers": [container], "resourceClaims": [claim]}}
    has_quota = {"type": "QuotaReserved", "status": str(quota)}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "ns", "uid": "uid-w"},
        "spec": {
            "priority": 7,
            "podSets": [{"name": "main", "count": 4, "template": template}],
        },
        "status": {
            "conditions": [has_quota | {"lastTransitionTime": SINCE}],
            "admissionChecks": [
                {"name": "other", "state": "Ready", "message": "theirs"},
                {"name": "devices", "state": state, "message": message},
            ],
        },
        **more,
    }


def planned(
    raw: Json, gang: Gang | None = None, now: str = NOW, **status: str
) -> CheckPlan:
    return plan_check(
        raw,
        gang,
        status,
        checks={"devices"},
        now=now,
        patience_s=90.0,
        flavors=FLAVORS,
        multikueue={"other-cluster"},
    )


def held(uid: str = "uid-w") -> Gang:
    raw = workload()
    raw["metadata"]["uid"] = uid
    return made(raw)


def made(raw: Json) -> Gang:
    gang = make_gang(read_kueue_workload(raw), FLAVORS)
    assert isinstance(gang, Gang)
    return gang


def state_of(plan: CheckPlan) -> Json:
    other, ours = plan.states
    assert other == {"name": "other", "state": "Ready", "message": "theirs"}
    return ours


def test_quota_asks_for_devices() -> None:
    """Of all pods that the Workload will have; the Gang goes with the Workload."""
    gang = planned(workload()).create
    assert gang is not None
    (member,) = gang.spec.members
    assert (gang.spec.hold, gang.spec.priority) == (True, 7)
    assert (member.name, member.count) == ("main", 4)
    assert [claim.template_name for claim in member.claims] == ["pair"]
    assert str(member.node.resources["cpu"].text) == "2"
    assert [owner.uid for owner in gang.metadata.owner_references] == ["uid-w"]


@pytest.mark.parametrize("phase", ["Decided", "Allocated", "Running"])
def test_devices_that_are_held_make_the_check_ready(phase: str) -> None:
    """Its labels bring the pods to their devices; other checks stay as they are."""
    state = state_of(planned(workload(), held(), phase=phase))
    assert (state["state"], state["lastTransitionTime"]) == ("Ready", NOW)
    labels = {GANG: "job-train", MEMBER: "main"}
    assert state["podSetUpdates"] == [{"name": "main", "labels": labels}]


def test_what_does_not_fit_waits_and_then_gives_its_quota_back() -> None:
    waits = planned(workload(), held(), phase="Pending", message="1 of 4 nodes")
    assert state_of(waits)["state"] == "Pending"
    assert state_of(waits)["message"] == "1 of 4 nodes"
    assert waits.waits
    said = workload(message="1 of 4 nodes")
    again = planned(said, held(), phase="Pending", message="1 of 4 nodes")
    assert again == CheckPlan(waits=True)
    late = planned(said, held(), LATE, phase="Pending", message="1 of 4 nodes")
    assert state_of(late)["state"] == "Retry"


def test_what_can_never_be_is_rejected() -> None:
    plan = planned(workload(), held(), phase="Rejected", message="no such class")
    assert (state_of(plan)["state"], state_of(plan)["message"]) == (
        "Rejected",
        "no such class",
    )


@pytest.mark.parametrize(
    "raw",
    [
        workload(quota=False),
        workload("Retry"),
        workload("Rejected"),
        workload("Ready", quota=False),
        workload(spec={"active": False}),
    ],
)
def test_without_quota_nothing_is_held(raw: Json) -> None:
    assert planned(raw, held()) == CheckPlan(delete=True)
    assert planned(raw).is_nothing


def test_what_is_ready_stays_ready() -> None:
    """Whatever becomes of its pods later."""
    assert planned(workload("Ready"), held(), phase="Completed").is_nothing


def test_a_gang_of_somebody_else_is_left_alone() -> None:
    plan = planned(workload(), held("uid-of-another"), phase="Decided")
    assert state_of(plan)["state"] == "Retry"
    assert not plan.delete
    assert planned(workload(quota=False), held("uid-of-another")).is_nothing


def test_checks_of_others_are_not_answered() -> None:
    raw = workload()
    raw["status"]["admissionChecks"] = [{"name": "other", "state": "Pending"}]
    assert planned(raw).is_nothing


def admitted(count: int | None, *, pods: int = 4) -> Json:
    """A Workload whose quota is for so many pods."""
    raw = workload()
    raw["spec"]["podSets"][0]["count"] = pods
    assignment = {"name": "main", "flavors": {"cpu": "spot"}, "count": count}
    raw["status"]["admission"] = {"podSetAssignments": [assignment]}
    return raw


@pytest.mark.parametrize(("count", "asked"), [(3, 3), (None, 4)])
def test_devices_are_asked_for_as_many_pods_as_have_quota(
    count: int | None, asked: int
) -> None:
    """Kueue admits fewer than the pod set has where the Job lets it."""
    gang = planned(admitted(count)).create
    assert gang is not None
    assert [member.count for member in gang.spec.members] == [asked]


def test_quota_for_another_number_of_pods_asks_anew() -> None:
    before = made(admitted(3))
    for phase in ("Pending", "Decided"):
        plan = planned(admitted(2), before, phase=phase)
        assert plan == CheckPlan(delete=True)
    assert state_of(planned(admitted(3), before, phase="Decided"))["state"] == "Ready"


@pytest.mark.parametrize(
    "raw", [admitted(None, pods=0), admitted(0)], ids=["empty", "reduced"]
)
def test_an_empty_pod_set_is_no_member(raw: Json) -> None:
    """A member of a Gang has a pod at least; without any, no device is needed."""
    assert state_of(planned(raw))["state"] == "Ready"
    raw["spec"]["podSets"].append({"name": "more", "count": 1, "template": {}})
    gang = planned(raw).create
    assert gang is not None
    assert [(member.name, member.count) for member in gang.spec.members] == [
        ("more", 1)
    ]


@pytest.mark.parametrize("since", ["2026-11-22T10:00:00", "soon", ""])
def test_a_time_that_cannot_be_read_gives_the_quota_back(since: str) -> None:
    """It is not known how long it has waited: it does not wait for ever."""
    raw = workload()
    raw["status"]["conditions"][0]["lastTransitionTime"] = since
    assert state_of(planned(raw, held(), phase="Pending"))["state"] == "Retry"


@pytest.mark.parametrize(("is_final", "state"), [(True, "Rejected"), (False, "Retry")])
def test_what_the_api_server_refuses_is_said(*, is_final: bool, state: str) -> None:
    plan = plan_refusal(
        workload(), checks={"devices"}, message="refused", is_final=is_final, now=NOW
    )
    assert (state_of(plan)["state"], state_of(plan)["message"]) == (state, "refused")


def saying(text: str) -> Json:
    raw = workload()
    template = raw["spec"]["podSets"][0]["template"]
    template["metadata"] = {"annotations": {TOPOLOGY: text}}
    return raw


def test_what_the_pods_ask_together_is_asked_of_what_is_held() -> None:
    """The Gang object comes before the pods, and wins over what they say."""
    asked = planned(saying('[{"key": "rack", "members": ["main"]}]')).create
    assert asked is not None
    assert asked.spec.topology == (topology_rule("rack", "main"),)


def test_an_annotation_that_is_wrong_is_rejected_by_its_field() -> None:
    """Waiting does not mend it."""
    plan = planned(saying('[{"key": 1}]'))
    assert plan.create is None
    (state,) = [one for one in plan.states if one["name"] == "devices"]
    assert state["state"] == "Rejected"
    assert f"pod main: annotation {TOPOLOGY}: [0].key: Expected" in state["message"]


def on_flavor(*domains: Json) -> Json:
    """A Workload with quota of a flavor, in topology domains if there are some."""
    raw = admitted(None)
    (assigned,) = raw["status"]["admission"]["podSetAssignments"]
    if domains:
        assigned["topologyAssignment"] = {"levels": ["rack"], "slices": list(domains)}
    return raw


RACKS = {
    "domainCount": 2,
    "valuesPerLevel": [{"individual": {"prefix": "r", "roots": ["1", "2"]}}],
    "podCounts": {"individual": [3, 1]},
}


def test_devices_are_asked_for_on_nodes_of_the_flavor() -> None:
    """Its labels and tolerations are what Kueue will give the pods."""
    gang = planned(on_flavor()).create
    assert gang is not None
    (member,) = gang.spec.members
    assert member.node.node_selector == {"pool": "spot"}
    assert [each.key for each in member.node.tolerations] == ["spot"]
    assert state_of(planned(on_flavor(), gang, phase="Decided"))["state"] == "Ready"


def test_each_topology_domain_is_a_member() -> None:
    raw = on_flavor(RACKS)
    raw["spec"]["podSets"][0]["template"]["metadata"] = {
        "annotations": {TOPOLOGY: '[{"key": "row", "members": ["main"]}]'}
    }
    gang = planned(raw).create
    assert gang is not None
    assert [(m.name, m.count, m.node.node_selector) for m in gang.spec.members] == [
        ("main", 3, {"pool": "spot", "rack": "r1"}),
        ("main-domain-2", 1, {"pool": "spot", "rack": "r2"}),
    ]
    assert gang.spec.topology == (topology_rule("row", "main", "main-domain-2"),)


def test_another_flavor_or_topology_asks_anew() -> None:
    before = made(on_flavor())
    assert planned(on_flavor(RACKS), before, phase="Decided") == CheckPlan(delete=True)


def test_a_flavor_that_is_not_known_is_waited_for() -> None:
    raw = on_flavor()
    (assigned,) = raw["status"]["admission"]["podSetAssignments"]
    assigned["flavors"] = {"cpu": "new"}
    plan = planned(raw)
    assert state_of(plan)["state"] == "Pending"
    assert "ResourceFlavor new is not known yet" in state_of(plan)["message"]
    assert plan.waits
    assert state_of(planned(raw, now=LATE))["state"] == "Retry"


def test_a_topology_that_comes_later_is_waited_for() -> None:
    raw = on_flavor()
    (assigned,) = raw["status"]["admission"]["podSetAssignments"]
    assigned["delayedTopologyRequest"] = "Pending"
    assert "assigned the topology of main" in state_of(planned(raw))["message"]


def retrying(count: int | None) -> Json:
    raw = workload()
    entry = raw["status"]["admissionChecks"][1]
    entry |= {"requeueAfterSeconds": 7, "podSetUpdates": [{"name": "main"}]}
    if count is not None:
        entry["retryCount"] = count
    return raw


@pytest.mark.parametrize(
    ("count", "delay_s"), [(None, 60), (1, 120), (5, 1920), (6, 3600), (999, 3600)]
)
def test_each_retry_waits_twice_as_long(count: int | None, delay_s: int) -> None:
    """As Kueue's own checks; what it counts stays."""
    late = planned(retrying(count), held(), LATE, phase="Pending")
    state = state_of(late)
    assert (state["requeueAfterSeconds"], state.get("retryCount")) == (delay_s, count)
    assert state["lastTransitionTime"] == LATE
    assert "podSetUpdates" not in state


def test_what_kueue_keeps_in_its_entry_stays() -> None:
    state = state_of(planned(retrying(3), held(), phase="Pending", message="waits"))
    assert (state["retryCount"], state["requeueAfterSeconds"]) == (3, 7)


def test_nothing_is_said_while_kueue_evicts() -> None:
    """A Retry that comes then is reset without a new admission."""
    raw = workload()
    raw["status"]["conditions"].append({"type": "Evicted", "status": "True"})
    assert planned(raw, held(), LATE, phase="Pending") == CheckPlan(delete=True)
    assert planned(raw).is_nothing


def test_what_runs_in_another_cluster_gets_no_yes() -> None:
    raw = workload()
    raw["status"]["admissionChecks"][0] |= {"name": "other-cluster"}
    plan = planned(raw)
    assert plan.create is None
    (ours,) = (one for one in plan.states if one["name"] == "devices")
    assert ours["state"] == "Pending"
    assert "MultiKueue runs it in another cluster" in ours["message"]
    assert planned(raw, held(), phase="Decided") == CheckPlan(delete=True)


def gated(*gates: str) -> Json:
    raw = workload(quota=False)
    raw["metadata"]["annotations"] = {GATED_BY: ", ".join(gates)}
    return raw


def test_devices_come_before_quota_at_our_gate() -> None:
    raw = gated("example.com/data", ADMISSION_GATE)
    gang = planned(raw).create
    assert gang is not None
    assert gang.spec.hold
    assert planned(raw, gang, phase="Pending") == CheckPlan(waits=True)
    assert planned(raw, gang, phase="Decided") == CheckPlan(open_gate=True)
    assert planned(raw, gang, phase="Rejected") == CheckPlan(open_gate=True)
    assert planned(raw, held("uid-of-another")) == CheckPlan(waits=True)
    assert planned(gated("example.com/data"), gang) == CheckPlan(delete=True)
