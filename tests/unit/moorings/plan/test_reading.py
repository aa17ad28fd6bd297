"""Objects are read as far as they can be; the rest is named once."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.codec import to_builtins
from contracts.device import ResourceSlice
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from contracts.workload import Workload
from moorings.plan.reading import Reader
from tests import builders
from tests.builders.inputs import Json, written_job, written_pod
from tests.builders.workloads import pod_group_of_coscheduling

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_unknown_kinds_and_fields_are_said_once() -> None:
    """A hundred equal objects are one note; the objects themselves are read."""
    said: list[str] = []
    reader = Reader(said.append)
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "resourceVersion": "7"},
        "spec": {"colour": 1},
    }
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    objects = list(reader.read([("f", raw) for raw in (claim, event, event, claim)]))
    assert [entry.decoded.kind for entry in objects] == ["ResourceClaim"] * 2
    assert [text.partition(":")[0] for text in said] == ["note", "note"]
    assert reader.refused == 0


def test_a_known_kind_that_cannot_be_read_is_an_error() -> None:
    """It is counted, and the others are read all the same."""
    said: list[str] = []
    reader = Reader(said.append)
    broken = {**POD, "spec": {"containers": 7}}
    assert len(list(reader.read([("f", broken), ("g", POD)]))) == 1
    assert reader.refused == 1
    assert said[0].startswith("error: f: ")


def test_lists_are_taken_apart_and_say_where_their_items_were() -> None:
    """By the place in the list that was handed in."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [POD, POD]}
    sources = [entry.source for entry in Reader(print).read_list([POD, listed])]
    assert sources == ["objects[0]", "objects[1]", "objects[1]"]


def refusal(raw: Any) -> str:
    """Say why an object is an error; empty: it is none."""
    said: list[str] = []
    reader = Reader(said.append)
    found = list(reader.read([("f", raw)]))
    assert reader.refused == 1 - len(found) - reader.skipped
    return said[0] if reader.refused else ""


@pytest.mark.parametrize(
    ("claim", "field"),
    [
        ({"source": {"template": "t"}}, "source"),
        ({"resourceClaimTemplate": "t"}, "resourceClaimTemplate"),
        ({"resourceClaimName": "c", "request": "r"}, "request"),
    ],
)
def test_an_unknown_field_in_a_pods_claims_is_an_error(claim: Json, field: str) -> None:
    """What it wishes is not known."""
    pod, job = written_pod("p"), written_job("j", 2)
    for spec in (pod["spec"], job["spec"]["template"]["spec"]):
        spec["resourceClaims"] = [{"name": "gpu", **claim}]
    place = f"spec.resourceClaims[0].{field}: unknown field"
    assert refusal(pod) == f"error: f: Pod p: {place}"
    assert refusal(job) == f"error: f: Job j: spec.template.{place}"


def test_an_unknown_field_in_a_containers_claims_is_an_error() -> None:
    pod = written_pod("p", claim="c")
    claims = [{"name": "gpu", "requests": "r"}]
    pod["spec"]["containers"][0]["resources"] = {"claims": claims}
    assert "containers[0].resources.claims[0].requests: unknown field" in refusal(pod)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (builders.device_class(), "selector"),
        (builders.claim(), "device"),
        (builders.claim_template(), "device"),
        (builders.resource_slice(), "device"),
        (builders.gang(), "member"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_field_that_the_api_server_refuses_is_an_error(
    value: WritableObject, field: str
) -> None:
    """It may be a wish, misspelt; what a cluster has passed it."""
    raw = to_builtins(to_kubernetes(value))
    assert refusal(raw) == ""
    raw["spec"] |= {field: []}
    name = f"{raw['kind']} {raw['metadata']['name']}"
    assert refusal(raw) == f"error: f: {name}: spec.{field}: unknown field"
    twice = {**raw, "spec": {**raw["spec"], "other": 1}}
    assert refusal(twice).endswith(": unknown field; and 1 more")
    said: list[str] = []
    reader = Reader(said.append, as_stored=True)
    stored = {**raw, "metadata": {**raw["metadata"], "resourceVersion": "7"}}
    read = reader.read([("f", raw), ("f", stored)])
    assert [each.decoded.unknown for each in read] == [(f"spec.{field}",)] * 2
    assert said == []
    assert refusal(stored) == ""


def test_a_slice_that_no_node_can_be_told_of_is_an_error_wherever_it_is_from() -> None:
    """The API server takes what kube-scheduler cannot evaluate."""
    raw = to_builtins(to_kubernetes(builders.resource_slice(name="s")))
    label = {"key": "rank", "operator": "Gt", "values": ["high"]}
    terms = [{"matchExpressions": [label]}]
    raw["spec"] |= {"nodeSelector": {"nodeSelectorTerms": terms}, "allNodes": None}
    raw["metadata"]["resourceVersion"] = "7"
    place = "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]"
    assert refusal(raw).startswith(f"error: f: ResourceSlice s: {place}: Invalid value")


def test_other_unknown_fields_of_pods_are_no_error() -> None:
    """Most of a pod decides no device."""
    assert refusal(written_pod("p", colour="red")) == ""


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_a_document_says_what_it_is(field: str) -> None:
    raw: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    del raw[field]
    assert f" p: {field}: required" in refusal(raw)
    assert refusal({}) == "error: f: object: apiVersion: required"


@pytest.mark.parametrize("kind", ["ResourceClaim", "DeviceClass", "ResourceSlice"])
def test_objects_of_dra_of_another_version_are_errors(kind: str) -> None:
    """Claims may hold devices, classes may be referred to."""
    raw = {"apiVersion": "resource.k8s.io/v1alpha1", "kind": kind, "metadata": {}}
    assert "resource.k8s.io/v1alpha1 is not supported; v1, v1beta2" in refusal(raw)
    other = {**raw, "kind": "PodSchedulingContext"}
    assert refusal(other) == ""


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        ("moorings.dev/v1", "Gang", "apiVersion: moorings.dev/v1 is not supported"),
        (
            "moorings.dev/v1alpha1",
            "gang",
            "kind: gang of moorings.dev/v1alpha1 is unknown",
        ),
        ("resource.k8s.io/v1", "ResourceSlices", "did you mean ResourceSlice?"),
    ],
)
def test_what_is_nearly_a_kind_of_ours_or_of_dra_is_an_error(
    api_version: str, kind: str, why: str
) -> None:
    """Also with pods in it: it is no workload that nobody has heard of."""
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    assert why in refusal(raw)
    assert why in refusal({**raw, "spec": written_job("j", 1)["spec"]})


def test_pods_with_claims_that_are_not_read_are_an_error() -> None:
    """Such as a DaemonSet's, whose number no object says."""
    template = written_job("j", 1, claim="c")["spec"]["template"]
    raw = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}}
    assert "pods with claims of apps/v1 DaemonSet" in refusal(
        {**raw, "spec": {"template": template}}
    )
    plain = written_job("j", 1)["spec"]["template"]
    assert refusal({**raw, "spec": {"template": plain}}) == ""


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("apps/v1", "DaemonSet", ("template", "spec", "resources")),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", ("workers", "resources")),
    ],
)
def test_pods_with_extended_resources_that_are_not_read_are_an_error(
    api_version: str, kind: str, path: tuple[str, ...]
) -> None:
    """They ask for devices, whether a class serves the resource or nobody does."""

    def written(**limits: str) -> Json:
        spec: Any = {"limits": limits}
        for key in reversed(path):
            spec = [{key: spec}]
        return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}

    problem = f"pods with example.com/gpu of {api_version} {kind} are not supported"
    assert problem in refusal(written(**{"example.com/gpu": "9"}))
    assert refusal(written(**{"example.com/gpu": "0"}, cpu="9")) == ""


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("kueue.x-k8s.io/v1beta2", "Workload"),
        ("v1", "PodTemplate"),
    ],
)
def test_templates_that_make_no_pods_are_passed_by(api_version: str, kind: str) -> None:
    """Others make the pods, or somebody may: Kueue makes none of a Workload."""
    said: list[str] = []
    reader = Reader(said.append)
    spec = written_job("j", 1, claim="c")["spec"]
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
    assert list(reader.read([("f", raw)])) == []
    assert (reader.refused, reader.skipped) == (0, 1)
    assert said[0].startswith(f"note: {kind} of {api_version}: ")
    assert "is unknown" not in said[0]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("apps/v1", "DaemonSet"),
        ("kueue.x-k8s.io/v1beta1", "AdmissionCheck"),
        ("moorings.dev/v1alpha1", "Fleet"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
    ],
)
def test_a_kind_that_is_known_is_not_said_to_be_unknown(
    api_version: str, kind: str
) -> None:
    """Once for all of a kind, with the reason; others are not known."""
    said: list[str] = []
    reader = Reader(said.append)
    raws = [
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
        for name in "ab"
    ]
    assert list(reader.read([("f", raw) for raw in raws])) == []
    (text,) = said
    assert text.endswith("; skipped")
    list(reader.read([("f", {**raws[0], "apiVersion": "example.com/v1"})]))
    assert "is unknown" in said[1]


@pytest.mark.parametrize(
    "extra",
    [
        {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
        {"containers": [{"resources": {"limits": {"example.com/gpu": 1}}}]},
    ],
)
def test_pods_outside_of_templates_are_not_lost(extra: Json) -> None:
    """A kind that has one template as usual, and others where nobody looks."""
    job = written_job("j", 1)
    job["apiVersion"] = "example.com/v1"
    assert refusal(job) == ""
    job["spec"]["launcher"] = {"spec": extra}
    assert "outside of its templates are not supported" in refusal(job)


def test_objects_that_say_the_size_of_a_gang_are_read() -> None:
    (found,) = Reader(print).read([("f", pod_group_of_coscheduling("g", 3))])
    assert isinstance(found.decoded.value, Workload)
    assert found.decoded.value.templates == ()
    broken = pod_group_of_coscheduling("g", 3)
    broken["spec"] = {"minMember": "many"}
    assert "minMember" in refusal(broken)


def cron_job(spec: Any) -> Json:
    """Write a CronJob."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": spec,
    }


def test_a_cron_job_that_says_no_job_is_an_error() -> None:
    """Its pods are found by shape, wherever they are."""
    job = {"spec": written_job("x", 2)["spec"]}
    assert refusal(cron_job({"jobTemplate": job})) == ""
    assert "nightly: spec: Expected `object`" in refusal(cron_job([job]))
    listed = refusal(cron_job({"jobTemplate": [job]}))
    assert "nightly: spec.jobTemplate: Expected `object`" in listed
    elsewhere = refusal(cron_job({"other": job}))
    assert "nightly: spec.jobTemplate: Expected a Job" in elsewhere


def test_an_owner_whose_metadata_is_no_object_is_an_error() -> None:
    """Also where it has no pods of its own."""
    for metadata in (["x"], "x"):
        raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
        assert "metadata: Expected `object`" in refusal(raw)


def test_a_selector_of_spread_that_is_not_known_is_an_error() -> None:
    """Left out, everything would be spread alike, or nothing."""
    constraint = {"topologyKey": "zone", "labelSelector": {"matchLabls": {"a": "b"}}}
    spread = written_pod("a", topologySpreadConstraints=[constraint])
    field = "spec.topologySpreadConstraints[0].labelSelector.matchLabls"
    assert f"{field}: unknown field" in refusal(spread)


def test_devices_share_what_is_equal() -> None:
    """A large cluster has each model a hundred thousand times; no value changes."""
    raws = [
        to_builtins(to_kubernetes(builders.resource_slice(each, name=name)))
        for name, memory in (("a", "1Gi"), ("b", "1Gi"), ("c", "1024Mi"))
        for attributes in [{"model": "X1", "id": name}]
        for capacity in [{"memory": memory}]
        for each in [builders.device("d", attributes=attributes, capacity=capacity)]
    ]
    read = Reader(print).read([("f", raw) for raw in raws])
    slices = [entry.decoded.value for entry in read]
    assert slices == [decode_object(raw).value for raw in raws]
    first, second, third = (
        value.spec.devices[0] for value in slices if isinstance(value, ResourceSlice)
    )
    assert first.attributes["model"] is second.attributes["model"]
    assert first.attributes["id"] != second.attributes["id"]
    assert first.capacity is second.capacity
    assert third.capacity["memory"].value.text == "1024Mi"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"nodeName": None}, "spec: Required value: exactly one of `nodeName`"),
        ({"nodeName": "N_1"}, "spec.nodeName: Invalid value"),
        ({"devices": [{"name": "GPU_0"}]}, r"spec.devices[0].name: Invalid value"),
    ],
)
def test_a_slice_that_nobody_would_store_is_an_error(spec: Json, problem: str) -> None:
    """No driver can publish it, so nothing is allocated from it."""
    raw = to_builtins(to_kubernetes(builders.resource_slice(*builders.devices(1))))
    raw["spec"] |= spec
    assert problem in refusal(raw)
    stored = {**raw, "metadata": {**raw["metadata"], "resourceVersion": "7"}}
    assert refusal(stored) == ""
    assert len(list(Reader(print, as_stored=True).read([("f", raw)]))) == 1
