"""Pods as the cluster would have them, and those that it would not take."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.allocation import Rule
from contracts.names import GANG_UID
from contracts.workload import Container, ContainerPort, PodVolume, PodVolumeClaim
from moorings.plan.pods import PlannedPod, allow_any_node, has_gate, read_pods
from tests import builders
from tests.builders.inputs import (
    GATED,
    Json,
    entries,
    entry,
    pod_spec,
    written_job,
    written_pod,
)

OUR_GATES = GATED["schedulingGates"]


def read(*objects: Json, any_node: bool = False) -> list[PlannedPod]:
    """Read pods that the API server takes."""
    pods, refused = read_pods(entries(*objects), any_node=any_node, any_volume=any_node)
    assert refused == []
    return pods


def test_a_pod_has_a_namespace_and_a_uid() -> None:
    """Made up, and always the same, where the input has none."""
    unsaid = written_pod("a")
    del unsaid["metadata"]["namespace"]
    (one,), (again,) = read(unsaid), read(unsaid)
    assert one.pod.metadata.namespace == "default"
    assert one.pod.metadata.uid == again.pod.metadata.uid != ""
    assert one.uid == ""
    (live,) = read(written_pod("a", live=True))
    assert live.uid == live.pod.metadata.uid == "uid-a"


def test_a_workload_that_the_api_server_refuses_is_told_once() -> None:
    job = written_job("train", 3)
    job["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu"}]
    pods, (refused,) = read_pods(entries(job), any_node=True, any_volume=True)
    assert pods == []
    assert (refused.name, refused.reason.rule) == ("train", "Invalid")
    assert refused.reason.field == "spec.template.spec.resourceClaims[0]"


def test_where_no_node_is_described_a_pod_may_go_anywhere() -> None:
    """What it asks of a node's resources stays; extended ones are among them."""
    picky = builders.pod(
        "a", requests={"cpu": 2}, node_selector={"rack": "r"}, host_network=True
    ).spec
    port = Container(name="c", ports=(ContainerPort(host_port=80),))
    picky = structs.replace(picky, containers=(*picky.containers, port))
    spec = allow_any_node(picky)
    assert (spec.node_selector, spec.host_network) == ({}, False)
    assert [container.ports for container in spec.containers] == [(), ()]
    assert [set(c.resources.requests) for c in spec.containers] == [{"cpu"}, set()]


def test_a_pinned_pod_keeps_its_pin() -> None:
    """It was decided already."""
    raw = written_pod("a", live=True, nodeSelector={"rack": "r"})
    raw["metadata"]["annotations"] = {GANG_UID: "g"}
    (pinned,) = read(raw, any_node=True)
    assert pinned.pod.spec.node_selector == {"rack": "r"}


def test_claims_of_ephemeral_volumes_are_made_for_pods_that_are_there() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {}},
    ]
    (planned,) = read(written_pod("a", volumes=volumes))
    data = PodVolume(
        name="data", persistent_volume_claim=PodVolumeClaim(claim_name="data")
    )
    assert planned.pod.spec.volumes == (data,)
    (live,) = read(written_pod("a", live=True, volumes=volumes))
    assert len(live.pod.spec.volumes) == 2
    (anywhere,) = read(written_pod("a", volumes=volumes), any_node=True)
    assert anywhere.pod.spec.volumes == ()


@pytest.mark.parametrize(
    ("spec", "is_known"),
    [({"size": 3}, False), ({"replicas": None}, False), ({"replicas": 2}, True)],
)
def test_an_unknown_kind_must_say_how_many_pods_it_has(
    spec: Json, is_known: bool
) -> None:
    """In words that we know: a yes for one pod would be taken for all of them."""
    job = written_job("z", 1, template="one")
    template = job["spec"]["template"]
    zork = {**job, "apiVersion": "example.com/v1", "kind": "Zork"}
    zork["spec"] = {**spec, "template": template}
    pods, refused = read_pods(entries(zork), any_node=True, any_volume=True)
    assert len(pods) == (2 if is_known else 0)
    assert [each.reason.rule for each in refused] == [Rule.NOT_MODELLED] * (
        not is_known
    )
    zork |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert read_pods(entries(zork), any_node=True, any_volume=True)[1] == []


def test_only_our_gate_is_a_wish() -> None:
    """Another one holds back a pod that may ask for no device at all."""
    for gates, refused in (([{"name": "example.com/other"}], 0), (OUR_GATES, 1)):
        template = {"metadata": {}, "spec": pod_spec(schedulingGates=gates)}
        raw: Json = {
            "apiVersion": "example.com/v1",
            "kind": "Anything",
            "metadata": {"name": "a"},
            "spec": {"template": template},
        }
        found = read_pods([entry(raw)], any_node=True, any_volume=True)[1]
        assert [has_gate(each.pod.spec) for each in found] == [True] * refused
