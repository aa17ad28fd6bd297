"""Pods of owned classes wait for Moorings, and all others are left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from contracts.claim import ResourceClaim
from contracts.kubernetes.decode import decode_object
from contracts.names import CONSTRAINTS, GANG, TOPOLOGY
from contracts.pods.marks import KNOWN_MARKS, find_unknown_mark
from contracts.workload import Pod
from publisher.gangs.claims import is_prepared
from tests.integration.conftest import Installed
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named

GATE = {"name": "moorings.dev/allocation"}
MARK = {"moorings.dev/owned": "true"}
OWNED, FOREIGN = "gpu.moorings.dev", "gpu.example.com"
NOTICED_S = 120
PUBLISHER = "system:serviceaccount:moorings-system:publisher"

GATED: dict[str, dict[str, Any]] = {
    "template": {"templates": {"x": "owned"}},
    "claim": {"claims": {"x": "owned"}},
    "choice": {"templates": {"x": "either"}},
    "several": {"templates": {"a": "owned", "b": "either"}, "claims": {"c": "owned"}},
    "owned-and-foreign": {"templates": {"a": "foreign", "b": "owned"}},
    "gang": {"labels": {"moorings.dev/gang": "train"}},
    "constraints": {"annotations": {CONSTRAINTS: "[]"}},
    "topology": {"annotations": {TOPOLOGY: '[{"key": "example.com/rack"}]'}},
}
MISSPELT = (
    "moorings.dev/topolgy",
    "mooring.dev/gang",
    "mooorings.dev/gang-size",
    "moorings.dve/topology",
    "noorings.dev/constraints",
    "moorings.de/recovery",
    "moorings.io/gang",
    "moorings.dev.io/gang-size",
)
THEIRS = (
    "app",
    "moorings.dev",
    "moorings.de",
    "moorings.de/app",
    "moorings.com/workload",
    "mornings.dev/app",
    "rings.dev/gang",
    "example.com/gang",
    "kubernetes.io/gang",
    "app.kubernetes.io/name",
    "kueue.x-k8s.io/queue-name",
    "jobset.sigs.k8s.io/jobset-name",
    "ray.io/cluster",
)
UNTOUCHED: dict[str, dict[str, Any]] = {
    "without-claims": {},
    "foreign-template": {"templates": {"x": "foreign"}},
    "foreign-claim": {"claims": {"x": "foreign"}},
    "unknown-template": {"templates": {"x": "nobody-has-this"}},
}


def _choice(*classes: str) -> Json:
    """Make the spec of a claim that takes the first class of several."""
    choices = [
        {"name": f"c{number}", "deviceClassName": name, "count": 1}
        for number, name in enumerate(classes)
    ]
    return {"devices": {"requests": [{"name": "r", "firstAvailable": choices}]}}


@pytest.fixture
async def space(admin: Kube) -> AsyncIterator[str]:
    """A namespace with templates and claims that everybody has taken notice of."""
    async with admin.namespace() as name:
        await _fill(admin, name, marks={})
        yield name


async def _fill(admin: Kube, space: str, marks: Mapping[str, str]) -> None:
    asked = {
        "foreign": objects.requests(FOREIGN),
        "either": _choice(FOREIGN, "nic.moorings.dev"),
        "owned": objects.requests(OWNED),
    }
    for name, spec in asked.items():
        for thing in (
            objects.template(space, name, spec),
            objects.claim(space, name, spec),
        ):
            thing["metadata"]["labels"] = {} if name == "foreign" else dict(marks)
            await admin.create(thing)
    # Policies see what they are bound to a moment later.
    for uses in (GATED["template"], GATED["claim"]):
        async with asyncio.timeout(NOTICED_S):
            await _notice(admin, objects.pod(space, "probe", **uses))


async def _notice(admin: Kube, pod: Json) -> None:
    """Return once a pod would get the gate, or be refused for the lack of it."""
    gates: list[Json] = []
    while GATE not in gates:
        try:
            answer = await admin.create(pod, dryRun="All")
        except RefusedError as refused:
            if "has the scheduling gate" in refused.message:
                return
            raise
        gates = answer["spec"].get("schedulingGates", [])


# --- what is marked ---------------------------------------------------------------


async def test_what_asks_for_an_owned_class_is_marked(admin: Kube, space: str) -> None:
    """Templates and claims, also where it is only one of several choices."""
    marked = {
        (kind, thing["metadata"]["name"])
        for kind in ("ResourceClaim", "ResourceClaimTemplate")
        for thing in await admin.list(objects.RESOURCE, kind, space)
        if thing["metadata"].get("labels") == MARK
    }

    assert marked == {
        (kind, name)
        for kind in ("ResourceClaim", "ResourceClaimTemplate")
        for name in ("either", "owned")
    }


async def test_the_mark_cannot_be_taken_away(admin: Kube, space: str) -> None:
    claim = named(objects.RESOURCE, "ResourceClaim", "owned", space)
    with pytest.raises(RefusedError, match=r"has the label moorings\.dev/owned"):
        await admin.patch(claim, {"metadata": {"labels": None}})


# --- pods get the gate ------------------------------------------------------------


@pytest.mark.parametrize("name", GATED)
async def test_pod_gets_the_gate_once(admin: Kube, space: str, name: str) -> None:
    other = {"name": "example.com/quota"}
    pod = objects.pod(space, name, **GATED[name], schedulingGates=[other])
    created = await admin.create(pod)

    assert created["spec"]["schedulingGates"] == [other, GATE]


@pytest.mark.parametrize("name", GATED)
async def test_gate_that_is_there_is_kept(admin: Kube, space: str, name: str) -> None:
    pod = objects.pod(space, name, **GATED[name], schedulingGates=[GATE])
    created = await admin.create(pod)

    assert created["spec"]["schedulingGates"] == [GATE]


@pytest.mark.parametrize("name", GATED)
async def test_pod_cannot_name_its_node(admin: Kube, space: str, name: str) -> None:
    """The gate would be refused beside it, in words that say nothing of devices."""
    pod = objects.pod(space, name, **GATED[name], nodeName="node-1")
    with pytest.raises(RefusedError) as refused:
        await admin.create(pod)
    assert "cannot set spec.nodeName" in refused.value.message
    assert "kubernetes.io/hostname" in refused.value.message


async def test_others_may_name_their_node(admin: Kube, space: str) -> None:
    pod = objects.pod(space, "p", templates={"x": "foreign"}, nodeName="node-1")
    created = await admin.create(pod)

    assert created["spec"]["nodeName"] == "node-1"


@pytest.mark.parametrize("name", UNTOUCHED)
async def test_other_pods_are_left_alone(admin: Kube, space: str, name: str) -> None:
    created = await admin.create(objects.pod(space, name, **UNTOUCHED[name]))

    assert "schedulingGates" not in created["spec"]


async def test_pods_of_a_job_get_the_gate(admin: Kube, space: str) -> None:
    """Those that replace others too: the Job's own template says nothing of it."""
    job = named("batch/v1", "Job", "job", space)
    pod = objects.pod(space, "of-the-job", templates={"x": "owned"})
    job["spec"] = {
        "completions": 2,
        "parallelism": 2,
        "template": {"spec": pod["spec"]},
    }
    await admin.create(job)
    await admin.until(job, lambda job: job.get("status", {}).get("active") == 2)
    pods = await admin.list("v1", "Pod", space)

    assert [pod["spec"]["schedulingGates"] for pod in pods] == [[GATE]] * 2


async def test_generated_claims_are_not_marked(admin: Kube, space: str) -> None:
    """There is one for every pod, and policies are evaluated for each mark."""
    pod = await admin.create(objects.pod(space, "p", templates={"x": "owned"}))
    pod = await admin.until(pod, lambda pod: "resourceClaimStatuses" in pod["status"])
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = await admin.get(named(objects.RESOURCE, "ResourceClaim", name, space))

    assert "labels" not in claim["metadata"]


@pytest.mark.parametrize("template", ["owned", "either", "foreign"])
async def test_generated_claims_of_owned_classes_are_prepared(
    admin: Kube, space: str, template: str
) -> None:
    """With what the publisher would write first, so that it need not."""
    pod = await admin.create(objects.pod(space, "p", templates={"x": template}))
    pod = await admin.until(pod, lambda pod: "resourceClaimStatuses" in pod["status"])
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    raw = await admin.get(named(objects.RESOURCE, "ResourceClaim", name, space))
    claim = decode_object(raw).value
    assert isinstance(claim, ResourceClaim)
    assert is_prepared(claim) is (template != "foreign")


async def test_a_prepared_claim_that_nobody_decides_goes_with_its_pod(
    admin: Kube, space: str
) -> None:
    """The controller manager takes the finalizer from what holds no devices."""
    pod = await admin.create(objects.pod(space, "p", templates={"x": "owned"}))
    pod = await admin.until(pod, lambda pod: "resourceClaimStatuses" in pod["status"])
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    await admin.delete(pod)
    await admin.until_gone(named(objects.RESOURCE, "ResourceClaim", name, space))


async def test_publisher_opens_the_gate_with_the_pin(admin: Kube, space: str) -> None:
    """No policy stands in the way of what a gate is for."""
    pod = await admin.create(objects.pod(space, "p", templates={"x": "owned"}))
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    patch = [
        {"op": "test", "path": "/spec/schedulingGates/0", "value": GATE},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
        {"op": "add", "path": "/spec/affinity", "value": affinity},
    ]
    async with admin.acting_as(PUBLISHER) as publisher:
        opened = await publisher.patch(pod, patch)

    assert "schedulingGates" not in opened["spec"]


async def test_policies_leave_the_cluster_itself_alone(admin: Kube) -> None:
    pod = objects.pod("kube-system", "p", labels={"moorings.dev/gang": "g"})
    created = await admin.create(pod, dryRun="All")

    assert "schedulingGates" not in created["spec"]


# --- marks that nobody reads ------------------------------------------------------


@pytest.mark.parametrize("key", MISSPELT)
async def test_misspelt_mark_is_refused(admin: Kube, space: str, key: str) -> None:
    """Labels, annotations and gates alike, and what nearly has our domain."""
    meant = f"did you mean moorings.dev/{key.partition('/')[2]}?"
    mark = {key: "x"}
    for pod in (
        objects.pod(space, "p", labels=mark),
        objects.pod(space, "p", annotations=mark),
    ):
        assert find_unknown_mark(_read(pod)) is not None
        with pytest.raises(RefusedError) as refused:
            await admin.create(pod, dryRun="All")
        assert f"{key} is unknown" in refused.value.message
        assert meant in refused.value.message or key.startswith("moorings.dev/")


async def test_misspelt_gate_is_refused(admin: Kube, space: str) -> None:
    for gate in ("moorings.dev/alocation", "mooring.dev/x", "moorings.dve/allocation"):
        pod = objects.pod(space, "p", schedulingGates=[{"name": gate}])
        with pytest.raises(RefusedError, match=f"nobody opens the gate {gate}"):
            await admin.create(pod, dryRun="All")


async def test_marks_of_others_are_theirs(admin: Kube, space: str) -> None:
    marks = dict.fromkeys((*THEIRS, *(KNOWN_MARKS - {GANG})), "x")
    pod = objects.pod(space, "p", labels=marks, annotations=dict.fromkeys(THEIRS, "x"))
    assert find_unknown_mark(_read(pod)) is None
    pod["spec"]["schedulingGates"] = [{"name": "example.com/moorings"}]
    await admin.create(pod, dryRun="All")


def _read(pod: Json) -> Pod:
    value = decode_object(pod).value
    assert isinstance(value, Pod)
    return value


# --- what cannot be decided ahead -------------------------------------------------


@pytest.mark.parametrize("where", ["containers", "initContainers"])
async def test_owned_class_is_no_extended_resource_of_a_pod(
    admin: Kube, space: str, where: str
) -> None:
    name = f"deviceclass.resource.kubernetes.io/{OWNED}"
    pod = objects.pod(space, "p")
    asking = {**pod["spec"]["containers"][0], "name": "asking"}
    asking["resources"] = {"requests": {name: "1"}, "limits": {name: "1"}}
    pod["spec"][where] = [*pod["spec"].get(where, []), asking]
    with pytest.raises(RefusedError) as refused:
        await admin.create(pod)
    assert f"{name}: a class that Moorings decides for cannot" in refused.value.message


async def test_owned_class_names_no_extended_resource(admin: Kube) -> None:
    owned = objects.device_class(OWNED, "gpu.moorings.dev")
    foreign = objects.device_class(FOREIGN, FOREIGN)
    for thing in (owned, foreign):
        thing["spec"]["extendedResourceName"] = "example.com/gpu"
    await admin.create(foreign)
    with pytest.raises(RefusedError, match="cannot be an extended resource"):
        await admin.create(owned)


# --- where nothing is added, it is demanded ---------------------------------------


async def test_before_1_36_authors_write_marks_and_gates(
    installed_on_1_35: Installed,
) -> None:
    async with installed_on_1_35.control_plane.client() as admin:
        await admin.create(named("v1", "Namespace", "team"))
        await admin.create(named("v1", "ServiceAccount", "default", "team"))
        for thing in (
            objects.template("team", "t", objects.requests(OWNED)),
            objects.claim("team", "c", _choice(FOREIGN, OWNED)),
        ):
            with pytest.raises(
                RefusedError, match=r"has the label moorings\.dev/owned"
            ):
                await admin.create(thing)
        await _fill(admin, "team", MARK)
        for name, uses in GATED.items():
            with pytest.raises(RefusedError, match="has the scheduling gate"):
                await admin.create(objects.pod("team", name, **uses))
            gated = objects.pod("team", name, **uses, schedulingGates=[GATE])
            await admin.create(gated)
        for name, uses in UNTOUCHED.items():
            await admin.create(objects.pod("team", name, **uses))
