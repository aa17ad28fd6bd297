"""Pods made by Jobs and the like: their gangs begin, lose pods, and end."""

from __future__ import annotations

from contracts.gang import GangPhase
from contracts.lifecycle import GangRecord
from contracts.names import MEMBER
from moorings.bus_client import Client
from tests.lab.cluster import (
    exists,
    gang_pod,
    is_running,
    job,
    name_of,
    stateful_set,
    template,
    uid_of,
)
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_over, until_phase, until_told


def restored_by(record: GangRecord) -> int:
    """Return how many pods the gang has again with those of a submission."""
    assert record.submission is not None
    return record.submission.restores


async def test_a_job_ends_and_the_next_has_its_devices(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """The devices are free again, and the gang is over on the bus."""
    await template(site, count=2)
    first = await kube.create(job(site, "first", 4, "pair"))
    pods = await pods_of(site, "first", 4, is_running)
    await kube.create(job(site, "second", 4, "pair"))
    waiting = await pods_of(site, "second", 4, exists)
    await until_told(kube, waiting[0], "GangDevicesTaken")
    for pod in pods:
        site.kubelets.finish(pod)
    await pods_of(site, "second", 4, is_running)
    await kube.until(first, lambda job: job["status"].get("succeeded") == 4)
    await until_phase(client, site, "first", GangPhase.COMPLETED)


async def test_a_failed_pod_is_replaced_while_the_others_run(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """The replacement is decided alone, and gets what the failed one gave back."""
    await template(site, count=2)
    created = await kube.create(job(site, "train", 4, "pair"))
    first, *others = await pods_of(site, "train", 4, is_running)
    site.kubelets.finish(first, exit_code=1)
    await kube.until(created, lambda job: job["status"].get("failed") == 1)
    uids = {pod["metadata"]["uid"] for pod in (first, *others)}

    def replaces(pod: Json) -> bool:
        return is_running(pod) and pod["metadata"]["uid"] not in uids

    (second,) = await pods_of(site, "train", 1, replaces)
    assert second["spec"]["nodeName"] == first["spec"]["nodeName"]
    for pod in others:
        assert is_running(await kube.get(pod))
    for pod in (second, *others):
        site.kubelets.finish(pod)
    await kube.until(created, lambda job: job["status"].get("succeeded") == 4)
    records = await until_over(client, site, "train")
    assert [record.phase for record in records] == [GangPhase.COMPLETED] * 2
    assert sorted(restored_by(record) for record in records) == [0, 4]


async def test_a_deleted_pod_of_a_stateful_set_comes_back(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Under its own name, with another uid, once its predecessor is gone."""
    await template(site, count=2)
    await kube.create(stateful_set(site, "db", 4, "pair"))
    pods = await pods_of(site, "db", 4, is_running)
    await kube.delete(pods[2])
    again = await kube.until(
        named("v1", "Pod", name_of(pods[2]), site.namespace),
        lambda pod: is_running(pod) and pod["metadata"]["uid"] != uid_of(pods[2]),
    )
    assert again["spec"]["nodeName"] == pods[2]["spec"]["nodeName"]
    records = await client.find_gangs("db", site.namespace)
    assert sorted(restored_by(record) for record in records) == [0, 4]


async def test_a_lone_pod_needs_only_the_gate(site: Fleet, kube: Kube) -> None:
    await template(site, count=4)
    pod = gang_pod(site.namespace, "alone", templates={"d": "pair"})
    created = await kube.create(pod)
    await kube.until(created, is_running)


async def test_pods_of_two_members_are_one_gang(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Three workers of two devices and a leader of one, by two Jobs."""
    await template(site, count=2)
    await template(site, "single", count=1)
    kinds = {"worker": (3, "pair"), "leader": (1, "single")}
    for member, (pods, devices) in kinds.items():
        item = job(site, "train", 4, devices, parallelism=pods, completions=pods)
        item["metadata"]["name"] = member
        item["spec"]["template"]["metadata"]["labels"][MEMBER] = member
        await kube.create(item)
    await pods_of(site, "train", 4, is_running)
    record = await until_phase(client, site, "train", GangPhase.RUNNING)
    assert record.submission is not None
    members = record.submission.gang.spec.members
    assert {item.name: item.count for item in members} == {"worker": 3, "leader": 1}
