"""kube-scheduler preempts pods of running gangs: told, and mended as recovery says."""

from __future__ import annotations

from contracts.gang import GangPhase
from contracts.names import RECOVERY
from moorings.bus_client import Client
from publisher.gangs.running.broken_gangs import GANG_BROKEN
from tests.lab.cluster import (
    gang_pod,
    is_running,
    job,
    template,
    uid_of,
)
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.services import eventually
from tests.lab.waits import pods_of, priority_class, until_over, until_told

CPU = {"cpu": "30"}
"""Two such pods fill a node of 64."""
PREEMPTED = "was preempted by kube-scheduler (default-scheduler: preempting"


async def preempt(site: Fleet, node: str = "") -> Json:
    """Create a pod that is worth more and fits only where a pod of the gang goes.

    `node`: on this node; empty: on any.
    """
    pod = objects.pod(
        site.namespace,
        "urgent",
        requests=CPU,
        node_selector={"kubernetes.io/hostname": node} if node else site.labels,
        priorityClassName=await priority_class(site),
    )
    return await site.kube.create(pod)


def training(site: Fleet, recovery: str) -> Json:
    """Describe a Job of four pods that fill both nodes, but for two devices each."""
    made = job(site, "train", 4, "one")
    pattern = made["spec"]["template"]
    pattern["metadata"]["annotations"][RECOVERY] = recovery
    pattern["spec"]["containers"][0]["resources"]["requests"] = CPU
    return made


async def reasons_on_bus(client: Client, site: Fleet) -> list[str]:
    """List what is reported of the gang on the bus."""
    return [
        f"{report.reason}: {report.message}"
        for group in await client.fetch_reports()
        if (group.namespace, group.name) == (site.namespace, "train")
        for report in group.reports
    ]


async def test_a_gang_that_lost_a_pod_is_told_so_until_it_is_whole(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """The others run on; the one in its place waits for the node's CPU."""
    await template(site, "one", count=1)
    await kube.create(training(site, "Report"))
    pods = await pods_of(site, "train", 4, is_running)
    urgent = await preempt(site)
    note = await until_told(kube, pods[0], GANG_BROKEN)
    assert note.startswith("3 of 4 pods run: train-")
    assert PREEMPTED in note
    await kube.until(urgent, is_running)
    rest = {uid_of(pod) for pod in await pods_of(site, "train", 3, is_running)}
    assert rest < {uid_of(pod) for pod in pods}

    async def is_on_bus() -> bool:
        told = await reasons_on_bus(client, site)
        return any(text.startswith(f"{GANG_BROKEN}: 3 of 4") for text in told)

    async def is_taken_down() -> bool:
        told = await reasons_on_bus(client, site)
        return not any(text.startswith(GANG_BROKEN) for text in told)

    await eventually(is_on_bus, "the report is on the bus")
    await kube.delete(urgent, grace_s=0)
    await pods_of(site, "train", 4, is_running)
    await eventually(is_taken_down, "the gang is whole again")


async def test_a_gang_that_lost_a_pod_is_made_anew_as_its_author_wants(
    site: Fleet, kube: Kube
) -> None:
    """All of it: it waits as a gang, and holds nothing meanwhile."""
    await template(site, "one", count=1)
    await kube.create(training(site, "Recreate"))
    pods = await pods_of(site, "train", 4, is_running)
    before = {uid_of(pod) for pod in pods}
    urgent = await preempt(site)
    note = await until_told(kube, pods[0], GANG_BROKEN)
    assert PREEMPTED in note

    def is_new(pod: Json) -> bool:
        return uid_of(pod) not in before and bool(pod["spec"].get("schedulingGates"))

    again = await pods_of(site, "train", 4, is_new)
    await until_told(kube, again[0], "GangNodeResourcesInsufficient")
    assert not await pods_of(site, "train", 0, is_running)
    await kube.delete(urgent, grace_s=0)
    others = await pods_of(site, "train", 4, is_running)
    assert {uid_of(pod) for pod in others} == {uid_of(pod) for pod in again}


async def test_a_gang_all_of_whose_pods_were_preempted_has_not_completed(
    site: Fleet, kube: Kube, client: Client
) -> None:
    await template(site, "one", count=1)
    solo = gang_pod(
        site.namespace,
        "solo",
        templates={"d": "one"},
        requests={"cpu": "60"},
        node_selector={"kubernetes.io/hostname": site.a},
    )
    await kube.until(await kube.create(solo), is_running)
    await preempt(site, site.a)
    (record,) = await until_over(client, site, "solo")
    assert record.phase is GangPhase.CANCELLED
    assert record.command is not None
    assert f"{GANG_BROKEN}: no pod runs: solo {PREEMPTED}" in str(record.command)
