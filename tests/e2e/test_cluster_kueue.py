"""Beside Kueue: quota is Kueue's, devices are decided here. The test plays Kueue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contracts.gang import GangPhase
from contracts.names import API_VERSION, GATE
from moorings.bus_client import Client
from publisher.kueue.objects import CONTROLLER
from tests.builders.workloads import kueue_pod_marks
from tests.lab import cluster, workloads
from tests.lab.cluster import Stack, is_running, name_of, pods_until, template
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet, now
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually
from tests.lab.waits import until_phase, until_told

CHECK = "devices"
KUEUES_GATE = "kueue.x-k8s.io/admission"


@pytest.fixture(scope="module")
def stack(
    control_plane_programs: Path,
    control_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """A stack that answers for AdmissionChecks, and gives quota back soon."""
    folder = tmp_path_factory.mktemp("stack")
    kubectl = Kubectl(control_plane_programs / "kubectl", control_plane.kubeconfig())
    serve_gangs(kubectl)
    with cluster.started(
        control_plane,
        folder,
        PUBLISHER_KUEUE_CHECKS="true",
        PUBLISHER_KUEUE_PATIENCE_S="3",
    ) as running:
        yield running


@pytest.fixture
async def kueue(kube: Kube) -> AsyncIterator[Json]:
    """The kinds of Kueue, and an AdmissionCheck of ours that is active."""
    crds = await workloads.serve_kueue(kube)
    check = named(workloads.KUEUE, "AdmissionCheck", CHECK)
    check["spec"] = {"controllerName": CONTROLLER}
    await kube.create(check)
    yield await kube.until(check, _is_active, 60.0)
    await workloads.stop_serving(kube, crds)


def _is_active(check: Json) -> bool:
    conditions = (check.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)


async def admit(site: Fleet, name: str, pods: int, pod: Json) -> Json:
    """Create the Workload of so many pods, with quota, as Kueue does."""
    spec = {"podSets": [{"name": "main", "count": pods, "template": pod}]}
    workload = named(workloads.KUEUE, "Workload", name, site.namespace)
    await site.kube.create(workload | {"spec": spec | {"active": True}})
    asked = {"name": CHECK, "state": "Pending", "message": ""}
    status = {
        "conditions": [_quota("True")],
        "admissionChecks": [asked | {"lastTransitionTime": now()}],
    }
    await site.kube.patch(workload, {"status": status}, "status")
    return workload


def _quota(status: str) -> Json:
    return {
        "type": "QuotaReserved",
        "status": status,
        "reason": "QuotaReserved",
        "message": "",
        "lastTransitionTime": now(),
    }


def state_of(workload: Json) -> Json:
    (state,) = workload["status"]["admissionChecks"]
    return dict(state)


async def test_pods_that_kueue_has_not_admitted_hold_no_device(
    site: Fleet, kube: Kube
) -> None:
    """Both gates stand in the template: Kueue takes its own first, then we ours."""
    await template(site, "one", count=1)
    marks = kueue_pod_marks("batch", 2)
    made = [workloads.made_pod(site, f"batch-{n}", marks, "one") for n in range(2)]
    for pod in made:
        pod["spec"]["schedulingGates"] = [{"name": KUEUES_GATE}, {"name": GATE}]
        await kube.create(pod)
    names = [name_of(pod) for pod in made]
    pods = await pods_until(kube, site.namespace, names, lambda _: True)
    assert "Kueue has not admitted" in await until_told(
        kube, pods[0], "GangQuotaPending", 90.0
    )
    claims = await kube.list("resource.k8s.io/v1", "ResourceClaim", site.namespace)
    assert not any((claim.get("status") or {}).get("allocation") for claim in claims)
    for pod in pods:
        gates = {"spec": {"schedulingGates": [{"name": GATE}]}}
        await kube.patch(pod, gates)
    await pods_until(kube, site.namespace, names, is_running, 60.0)


async def test_a_workload_is_admitted_once_its_devices_are_held(
    site: Fleet, kube: Kube, client: Client, kueue: Json
) -> None:
    """The labels of the check bring its pods to them."""
    assert kueue["metadata"]["name"] == CHECK
    await template(site, "pair", count=2)
    job = workloads.made_job(site, "train", 4, "pair", suspend=True)
    await kube.create(job)
    workload = await admit(site, "job-train", 4, job["spec"]["template"])
    ready = await kube.until(workload, lambda w: state_of(w)["state"] == "Ready", 60.0)
    (update,) = state_of(ready)["podSetUpdates"]
    await until_phase(client, site, "job-train", GangPhase.DECIDED)
    # Kueue now starts the Job with these labels.
    labels = {"template": {"metadata": {"labels": update["labels"]}}}
    await kube.patch(job, {"spec": labels})
    await kube.patch(job, {"spec": {"suspend": False}})

    async def all_run() -> bool:
        pods = await kube.list("v1", "Pod", site.namespace)
        return sum(map(is_running, pods)) == 4

    await eventually(all_run, "four pods run", 60.0)


async def test_what_does_not_fit_gives_its_quota_back(
    site: Fleet, kube: Kube, kueue: Json
) -> None:
    """With the reason; without quota nothing is asked for any more."""
    assert kueue["metadata"]["name"] == CHECK
    await template(site, "pair", count=2)
    pod = workloads.made_pod(site, "", {}, "pair")
    workload = await admit(site, "too-large", 20, {"spec": pod["spec"]})
    told = await kube.until(workload, lambda w: state_of(w)["state"] == "Retry", 60.0)
    assert state_of(told)["message"]
    await kube.patch(workload, {"status": {"conditions": [_quota("False")]}}, "status")
    gang = named(API_VERSION, "Gang", "too-large", site.namespace)
    await kube.until_gone(gang, 60.0)
