"""Gangs that wait: what their pods are told, and what ends it."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path

from contracts.gang import GangPhase
from contracts.names import GANG, LEASE_NAME
from moorings.bus_client import Client
from tests.lab import command_line
from tests.lab.cluster import (
    Stack,
    create_pods,
    exists,
    is_running,
    job,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.publisher_rights import SYSTEM
from tests.lab.services import eventually
from tests.lab.waits import events_about, pods_of, until_over, until_phase, until_told

WAIT_S = 60.0
FULL = r"each of 2 pods needs 4 {} on one node; \d+ devices match, .*none is free"


async def cancel(stack: Stack, site: Fleet, gang: str, home: Path) -> None:
    """Call the executable."""
    arguments = ("cancel", "-n", site.namespace, gang)
    call = partial(command_line.moorings, home=home, server=stack.nats.url)
    ended = await asyncio.to_thread(call, *arguments)
    assert ended.returncode == 0, ended.stderr


async def running_pair(site: Fleet) -> list[Json]:
    """Let a gang take all devices."""
    await template(site, count=4)
    await create_pods(site, "first", range(2), size=2)
    return await pods_of(site, "first", 2, is_running)


async def test_a_gang_that_does_not_fit_follows_one_that_ends(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Until then every pod leads to why they wait, told once."""
    first = await running_pair(site)
    pods = await create_pods(site, "second", range(2), size=2)
    for pod in pods:
        note = await until_told(kube, pod, "GangDevicesTaken")
        assert re.search(FULL.format(re.escape(site.device_class)), note), note
        assert "wait at scheduling gate moorings.dev/allocation" in note
    for pod in first:
        site.kubelets.finish(pod)
    await pods_of(site, "second", 2, is_running)
    await until_phase(client, site, "second", GangPhase.RUNNING)
    for pod in pods:
        assert len(await events_about(kube, pod)) == 1


async def test_a_gang_of_many_is_told_once_and_every_pod_leads_there(
    site: Fleet, kube: Kube, kubectl: Kubectl
) -> None:
    """Whoever describes any pod reads what controls it, and there the reason."""
    await running_pair(site)
    await template(site, "single", count=1)
    await kube.create(job(site, "many", 8, "single"))
    waiting = await pods_of(site, "many", 8, exists)
    for pod in (waiting[0], waiting[-1]):
        shown = kubectl("describe", "pod", name_of(pod), "-n", site.namespace)
        (owner,) = re.findall(r"Controlled By: +Job/(\S+)", shown)
        await until_told(kube, pod, "GangDevicesTaken")
        told = kubectl("describe", "job", owner, "-n", site.namespace)
        assert re.search(r"Normal +GangDevicesTaken .*none is free", told), told
    events = await kube.list("events.k8s.io/v1", "Event", site.namespace)
    about = [
        (event["regarding"]["kind"], event["related"]["name"])
        for event in events
        if event["reason"] == "GangDevicesTaken"
    ]
    assert about == [("Job", name_of(waiting[0]))]


async def test_a_publisher_that_owns_nothing_says_so(
    stack: Stack, kubectl: Kubectl
) -> None:
    """Whoever looks for the leader reads that kube-scheduler draws from the same."""
    assert stack.nats.url

    def says() -> bool:
        told = kubectl("describe", "lease", LEASE_NAME, "-n", SYSTEM)
        return re.search(r"Warning +NothingOwned .*PUBLISHER_OWNED", told) is not None

    await eventually(says, "the Lease says so")


async def test_a_gang_that_is_never_whole_is_not_submitted(
    site: Fleet, kube: Kube, client: Client
) -> None:
    await template(site, count=2)
    pods = await create_pods(site, "train", range(2), size=3)
    for pod in pods:
        note = await until_told(kube, pod, "GangPodsMissing")
        assert note.startswith("2 of 3 pods are there")
    namespaces = {record.namespace for record in await client.fetch_gangs()}
    assert site.namespace not in namespaces

    async def reasons() -> list[str]:
        """Return what those who read the bus are told."""
        told = await client.fetch_reports()
        mine = (message for message in told if message.namespace == site.namespace)
        return [report.reason for message in mine for report in message.reports]

    async def is_told() -> bool:
        return await reasons() == ["PodsMissing"]

    async def is_withdrawn() -> bool:
        return not await reasons()

    await eventually(is_told, "the bus knows why the pods wait", WAIT_S)
    await create_pods(site, "train", range(2, 3), size=3)
    await pods_of(site, "train", 3, is_running)
    await eventually(is_withdrawn, "the bus forgets it", WAIT_S)


async def test_a_pod_that_was_bound_by_its_author_is_told_what_to_write(
    site: Fleet, kube: Kube
) -> None:
    """It has a mark of ours; nobody allocates its claim."""
    await template(site, count=1)
    pod = objects.pod(
        site.namespace,
        "bound",
        nodeName=site.a,
        labels={GANG: "train"},
        templates={"d": "pair"},
    )
    note = await until_told(kube, await kube.create(pod), "GangNodeNamed")
    assert note.startswith(f"it is on node {site.a} and does not start: schedulers")
    assert "nodeSelector: {kubernetes.io/hostname: NODE}" in note


async def test_a_gang_that_was_scaled_is_told_that_its_annotation_was_not(
    site: Fleet, kube: Kube, kubectl: Kubectl
) -> None:
    """It waits for a pod that nobody makes."""
    await template(site, count=4)
    await kube.create(stateful_set(site, "serve", 3, "pair"))
    await pods_of(site, "serve", 3, exists)
    target = ("statefulset/serve", "-n", site.namespace)
    kubectl("scale", *target, "--replicas=2")
    pods = await pods_of(site, "serve", 2, exists)
    why = "gang-size says 3, StatefulSet serve has replicas 2"

    async def is_told() -> bool:
        return any(why in note for _, note in await events_about(kube, pods[0]))

    await eventually(is_told, "its author is told", WAIT_S)


async def test_a_cancelled_gang_waits_until_its_pods_are_made_anew(
    site: Fleet, kube: Kube, client: Client, stack: Stack, tmp_path: Path
) -> None:
    first = await running_pair(site)
    pods = await create_pods(site, "second", range(2), size=2)
    await until_phase(client, site, "second", GangPhase.PENDING)
    await cancel(stack, site, "second", tmp_path)
    for pod in pods:
        note = await until_told(kube, pod, "GangCancelled")
        assert note.startswith("the gang was cancelled; delete its pods to try again")
    await until_phase(client, site, "second", GangPhase.CANCELLED)
    for pod in (*first, *pods):
        await kube.delete(pod)
        await kube.until_gone(pod)
    await create_pods(site, "second", range(2), size=2)
    await pods_of(site, "second", 2, is_running)


async def test_cancelling_a_running_gang_ends_no_pod(
    site: Fleet, kube: Kube, client: Client, stack: Stack, tmp_path: Path
) -> None:
    """What its pods hold is theirs until they end."""
    first = await running_pair(site)
    await cancel(stack, site, "first", tmp_path)
    await until_phase(client, site, "first", GangPhase.CANCELLED)
    (pod, _) = await create_pods(site, "second", range(2), size=2)
    await until_told(kube, pod, "GangDevicesTaken")
    assert await pods_of(site, "first", 2, is_running)
    for pod in first:
        site.kubelets.finish(pod)
    await pods_of(site, "second", 2, is_running)


async def test_a_pod_deleted_before_the_decision_is_waited_for(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """The other one is submitted again with its replacement, and goes through once."""
    first = await running_pair(site)
    gone, stays = await create_pods(site, "second", range(2), size=2)
    await until_told(kube, stays, "GangDevicesTaken")
    await kube.delete(gone)
    note = await until_told(kube, stays, "GangPodsMissing")
    assert note.startswith("1 of 2 pods are there")
    await until_phase(client, site, "second", GangPhase.CANCELLED)
    await create_pods(site, "second", range(1), size=2)
    for pod in first:
        site.kubelets.finish(pod)
    pods = await pods_of(site, "second", 2, is_running)
    assert uid_of(pods[1]) == uid_of(stays)


async def test_pods_deleted_before_they_are_bound_give_back_what_they_had(
    site: Fleet, kube: Kube, client: Client
) -> None:
    await template(site, count=4)
    nobody = {"schedulerName": "nobody"}
    pods = await create_pods(site, "first", range(2), size=2, **nobody)
    await until_phase(client, site, "first", GangPhase.RUNNING)
    for pod in pods:
        await kube.delete(pod)
    (record,) = await until_over(client, site, "first")
    assert record.phase is GangPhase.COMPLETED
    await create_pods(site, "second", range(2), size=2)
    await pods_of(site, "second", 2, is_running)
