"""Gang objects: what `kubectl get gangs` shows, and what follows from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from contracts.gang import GangPhase
from contracts.names import API_VERSION
from moorings.bus_client import Client
from runtime.bus.jetstream import Nothing, StreamInfo, call
from tests.lab.cluster import (
    create_pods,
    is_running,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.waits import pods_of, until_phase, until_told


@pytest.fixture(scope="module")
def served(gangs: None) -> None:
    """See that the stack sees Gangs from the start."""
    assert gangs is None


def gang(site: Fleet, name: str, pods: int, devices: str, **spec: Any) -> Json:
    """Describe a Gang of equal pods, each with one claim by template."""
    claims = [{"name": "d", "templateName": devices}]
    return {
        "apiVersion": API_VERSION,
        "kind": "Gang",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {"members": [{"name": "pod", "count": pods, "claims": claims}], **spec},
    }


def shown(kubectl: Kubectl, site: Fleet) -> list[tuple[str, ...]]:
    """Read the table of gangs as people see it, without its last column, the age."""
    columns = ("NAME", "PHASE", "PODS", "REASON", "AGE")
    table = kubectl("get", "gangs", "-n", site.namespace).splitlines()
    starts = [table[0].index(name) for name in columns]
    bounds = list(pairwise(starts))
    return [tuple(row[a:b].strip() for a, b in bounds) for row in table[1:]]


def has(**status: str) -> Callable[[Json], bool]:
    """Make the question whether a Gang says this of itself."""
    return lambda item: status.items() <= item.get("status", {}).items()


def condition(item: Json, kind: str) -> str:
    """Give the status of a condition; empty: there is none."""
    conditions = item.get("status", {}).get("conditions", ())
    return "".join(c["status"] for c in conditions if c["type"] == kind)


@asynccontextmanager
async def without_room(client: Client, stream: str) -> AsyncIterator[None]:
    """Let a stream take nothing more while the block runs."""
    connection, update = client.bus._connection, f"STREAM.UPDATE.{stream}"
    found = await call(connection, f"STREAM.INFO.{stream}", None, StreamInfo)
    full = {**found.config, "max_bytes": found.state.bytes + 1}
    await call(connection, update, full, Nothing)
    yield
    await call(connection, update, found.config, Nothing)


async def free(site: Fleet, pod: Json) -> None:
    """Give the devices of a pod's claim back, as somebody who may."""
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = named(RESOURCE, "ResourceClaim", name, site.namespace)
    status = {"allocation": None, "reservedFor": None}
    await site.kube.patch(claim, {"status": status}, "status")


async def test_a_full_stream_is_a_condition_that_says_what_to_do(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Nothing is lost: once there is room the gang is submitted and runs."""
    await template(site, count=1)
    created = await kube.create(gang(site, "late", 1, "pair"))
    async with without_room(client, "SUBMIT"):
        await create_pods(site, "late", range(1), size=1)
        now = await kube.until(created, lambda g: condition(g, "NotStored") == "True")
        assert condition(now, "Allocated") == "False"
        assert has(phase="Waiting", reason="NotStored")(now)
        message = now["status"]["message"]
        assert "the bus has no room: maximum bytes exceeded" in message
        assert "NATS needs more room" in message
    (pod,) = await pods_of(site, "late", 1, is_running, within_s=60)
    now = await kube.until(created, has(phase="Running"))
    assert condition(now, "NotStored") == "False"
    site.kubelets.finish(pod)


async def test_kubectl_shows_how_a_gang_gets_on(
    site: Fleet, kube: Kube, kubectl: Kubectl
) -> None:
    """From no pod to the end of all of them, and after that."""
    await template(site, count=2)
    created = await kube.create(gang(site, "train", 4, "pair"))
    await kube.until(created, has(message="there are no pods yet"))
    assert shown(kubectl, site) == [("train", "Waiting", "0/4", "PodsMissing")]
    await create_pods(site, "train", range(3))
    await kube.until(created, has(message="3 of 4 pods are there"))
    await create_pods(site, "train", range(3, 4))
    pods = await pods_of(site, "train", 4, is_running)
    now = await kube.until(created, has(phase="Running"))
    assert shown(kubectl, site) == [("train", "Running", "4/4", "")]
    assert condition(now, "Allocated") == "True"
    note = await until_told(kube, created, "Allocated")
    assert note.startswith("4 pods have their devices on 2 nodes (solve ")
    for pod in pods:
        site.kubelets.finish(pod)
    now = await kube.until(created, has(phase="Completed"))
    assert shown(kubectl, site) == [("train", "Completed", "4/4", "")]
    assert condition(now, "Allocated") == "False"
    for pod in pods:
        await kube.delete(pod)
    (pod,) = await create_pods(site, "train", [9])
    await until_told(kube, pod, "GangPodsMissing")
    assert shown(kubectl, site) == [("train", "Waiting", "0/4", "PodsMissing")]


async def test_pods_that_are_not_what_the_gang_says_wait(
    site: Fleet, kube: Kube, kubectl: Kubectl
) -> None:
    """The Gang and each pod say which claim of which member differs."""
    await template(site, count=2)
    await template(site, "single", count=1)
    created = await kube.create(gang(site, "train", 2, "pair"))
    pods = await create_pods(site, "train", range(2), "single")
    await kube.until(created, has(reason="ClaimsDiffer"))
    assert shown(kubectl, site) == [("train", "Waiting", "0/2", "ClaimsDiffer")]
    differs = "pod train-0: claim d is from single, not pair"
    for pod in pods:
        assert (await until_told(kube, pod, "GangClaimsDiffer")).startswith(differs)
        await kube.delete(pod)
    for pod in pods:
        await kube.until_gone(pod)
    await create_pods(site, "train", range(2))
    await pods_of(site, "train", 2, is_running)


async def test_deleting_a_gang_object_ends_no_pod(
    site: Fleet, kube: Kube, client: Client, kubectl: Kubectl
) -> None:
    """Running pods run on; those that wait are told what is missing."""
    await template(site, count=2)
    await kube.create(gang(site, "train", 2, "pair"))
    await kube.create(gang(site, "wait", 2, "pair"))
    (waiting,) = await create_pods(site, "wait", range(1))
    await create_pods(site, "train", range(2))
    await pods_of(site, "train", 2, is_running)
    kubectl("delete", "gang", "train", "wait", "-n", site.namespace)
    note = await until_told(kube, waiting, "GangSizeMissing")
    assert note.startswith("there is no Gang object 'wait', and the pods have no ann")
    assert await pods_of(site, "train", 2, is_running)
    await until_phase(client, site, "train", GangPhase.RUNNING)


async def test_lost_devices_are_reported(site: Fleet, kube: Kube) -> None:
    """The pods run on, as long as it lasts."""
    await template(site, count=2)
    created = await kube.create(gang(site, "train", 2, "pair"))
    await create_pods(site, "train", range(2))
    pods = await pods_of(site, "train", 2, is_running)
    await free(site, pods[0])
    lost = await kube.until(created, lambda g: condition(g, "PlacementLost") == "True")
    assert has(phase="Running", reason="PlacementLost")(lost)
    assert condition(lost, "Allocated") == "False"
    for about, reason in ((created, "PlacementLost"), (pods[0], "GangPlacementLost")):
        note = await until_told(kube, about, reason)
        assert note.startswith("somebody took the devices of 1 of 2 pods: train-0")
    assert await pods_of(site, "train", 2, is_running)
    site.kubelets.finish(pods[0])
    now = await kube.until(created, lambda g: condition(g, "PlacementLost") == "False")
    assert condition(now, "Allocated") == "True"


async def test_pods_that_lost_devices_are_made_anew(site: Fleet, kube: Kube) -> None:
    """With `recovery: Recreate` all pods of the gang go, and others are made."""
    await template(site, count=2)
    created = await kube.create(gang(site, "train", 2, "pair", recovery="Recreate"))
    await kube.create(stateful_set(site, "train", 2, "pair"))
    pods = await pods_of(site, "train", 2, is_running)
    uids = {uid_of(pod) for pod in pods}
    await free(site, pods[0])
    await pods_of(site, "train", 2, lambda p: is_running(p) and uid_of(p) not in uids)
    for about, reason in ((created, "PlacementLost"), (pods[1], "GangPlacementLost")):
        note = await until_told(kube, about, reason)
        assert "somebody took the devices of 1 of 2 pods: train-0" in note
