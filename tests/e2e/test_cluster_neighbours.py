"""Pods that care about each other: what is decided is bound by the stock scheduler."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from contracts.names import GANG
from tests.builders.workloads import mpi_job_pod_marks
from tests.lab.cluster import Stack, create_pods, gang_pod, is_running, template
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import Fleet
from tests.lab.waits import pods_of, until_told

HOST, ZONE = "kubernetes.io/hostname", "example.com/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPUS = [f"000{number}:00:00.0" for number in range(1, 9)]


@pytest.fixture
async def zoned(kube: Kube, namespace: str, stack: Stack) -> AsyncIterator[Fleet]:
    """Four nodes, two to a zone, with more devices than all pods of a test could use.

    Who is decided first is left to chance; none may find a node full.
    """
    assert stack.nats.url
    letters = ("a", "b", "c", "d")
    devices = objects.devices(24)
    async with fleet.running(kube, namespace, letters, devices=devices) as site:
        for name, zone in zip(
            site.nodes, ("west", "west", "east", "east"), strict=True
        ):
            labels = {"metadata": {"labels": {ZONE: zone}}}
            await kube.patch(named("v1", "Node", name), labels)
        await template(site, "one", count=1)
        yield site


def term(gang: str, key: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {GANG: gang}}}


def apart(gang: str, key: str = HOST) -> Json:
    return {"podAntiAffinity": {REQUIRED: [term(gang, key)]}}


def near(gang: str, key: str = ZONE) -> Json:
    return {"podAffinity": {REQUIRED: [term(gang, key)]}}


def even(gang: str, **more: Any) -> list[Json]:
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term(gang, ZONE)}
    return [rule | more]


def with_port(port: int) -> list[Json]:
    container = objects.pod("", "", templates={"d": "one"})["spec"]["containers"][0]
    return [container | {"ports": [{"containerPort": 80, "hostPort": port}]}]


async def gang(site: Fleet, name: str, count: int, **asks: Any) -> None:
    await create_pods(site, name, range(count), "one", size=count, **asks)


async def nodes_of(site: Fleet, gang: str, count: int) -> Counter[str]:
    """Wait until all of a gang run; counts them by the letter of their nodes."""
    pods = await pods_of(site, gang, count, is_running, within_s=180.0)
    return Counter(pod["spec"]["nodeName"].rpartition("-")[2] for pod in pods)


async def test_all_that_is_decided_is_bound_in_whatever_order(zoned: Fleet) -> None:
    """Ports, near, apart and spread, all at once, by the stock kube-scheduler."""
    asked: dict[str, tuple[int, Json]] = {
        "apart": (4, {"affinity": apart("apart")}),
        "near": (5, {"affinity": near("near")}),
        "even": (4, {"topologySpreadConstraints": even("even")}),
        "every": (
            4,
            {"topologySpreadConstraints": even("every", nodeAffinityPolicy="Ignore")},
        ),
        "few": (4, {"topologySpreadConstraints": even("few", minDomains=2)}),
        "ports": (2, {"containers": with_port(8080)}),
    }
    await asyncio.gather(
        *(gang(zoned, name, count, **asks) for name, (count, asks) in asked.items())
    )
    found = {
        name: await nodes_of(zoned, name, count) for name, (count, _) in asked.items()
    }
    assert found["apart"] == found["few"] == Counter("abcd")
    assert set(found["near"]) <= {"a", "b"} or set(found["near"]) <= {"c", "d"}
    for name in ("even", "every"):
        assert found[name]["a"] + found[name]["b"] == 2
    assert set(found["ports"].values()) == {1}


async def test_pods_that_run_count_both_ways(zoned: Fleet, kube: Kube) -> None:
    """Whom the newcomer avoids or follows, and who avoids the newcomer."""
    jealous = objects.pod(
        zoned.namespace,
        "jealous",
        labels={GANG: "host"},
        affinity=apart("new", ZONE),
        nodeName=zoned.a,
    )
    await kube.until(await kube.create(jealous), is_running)
    await gang(zoned, "new", 2)
    await gang(zoned, "shy", 3, affinity=apart("host"))
    await gang(zoned, "follow", 2, affinity=near("host", HOST))
    assert set(await nodes_of(zoned, "new", 2)) <= {"c", "d"}
    assert "a" not in await nodes_of(zoned, "shy", 3)
    assert await nodes_of(zoned, "follow", 2) == Counter("aa")


async def test_a_gang_waits_for_the_pods_that_it_must_be_near_to(
    zoned: Fleet, kube: Kube
) -> None:
    """The reason is named; once there is such a pod the gang follows it."""
    await gang(zoned, "lost", 2, affinity=near("found"))
    pods = await pods_of(zoned, "lost", 2, lambda _: True)
    assert GANG in await until_told(kube, pods[0], "GangPodAffinity", 180.0)
    there = objects.pod(
        zoned.namespace, "there", labels={GANG: "found"}, nodeName=zoned.c
    )
    await kube.create(there)
    assert set(await nodes_of(zoned, "lost", 2)) <= {"c", "d"}


def gpu_node(site: Fleet, node: str) -> Iterable[Json]:
    """Eight GPUs and eight NICs on two NUMA nodes, as their drivers publish them."""
    gpus = [
        {
            "name": f"gpu-{n}",
            "attributes": {"resource.kubernetes.io/pciBusID": {"string": bus}},
        }
        for n, bus in enumerate(GPUS)
    ]
    nics = [
        {
            "name": f"nic-{n}",
            "attributes": {"rdma": {"bool": True}, "numaNode": {"int": n // 4}},
        }
        for n in range(8)
    ]
    yield objects.resource_slice(f"gpu.{site.driver}", node, gpus)
    yield objects.resource_slice(f"net.{site.driver}", node, nics)


def aligned_claim(site: Fleet, numa: int) -> Json:
    """Four GPUs by their addresses, and four RDMA NICs of one NUMA node."""
    ours, net = GPUS[:3] + GPUS[7:], f"net.{site.driver}"
    by_address = (
        'device.attributes["resource.kubernetes.io"]["pciBusID"] in '
        f"[{', '.join(f'{bus!r}' for bus in ours)}]"
    )
    by_numa = (
        f'device.attributes["{net}"]["rdma"] == true && '
        f'device.attributes["{net}"]["numaNode"] == {numa}'
    )
    chosen = (("gpu", by_address), ("net", by_numa))
    return {
        "devices": {
            "requests": [
                {
                    "name": name,
                    "exactly": {
                        "deviceClassName": f"{name}.{site.driver}",
                        "count": 4,
                        "selectors": [{"cel": {"expression": expression}}],
                    },
                }
                for name, expression in chosen
            ]
        }
    }


async def mpi_job(site: Fleet, name: str, numa: int) -> None:
    """Create the pods of an MPIJob as its operator does: a launcher and two workers."""
    claims = objects.template(site.namespace, name, aligned_claim(site, numa))
    await site.kube.create(claims)
    meant = {
        key: value
        for key, value in mpi_job_pod_marks(name, "worker")["labels"].items()
        if not key.endswith("operator-name")
    }
    rule = {"labelSelector": {"matchLabels": meant}, "topologyKey": HOST}
    worker: dict[str, Any] = {
        "templates": {"gpu-nic": name},
        "affinity": {"podAntiAffinity": {REQUIRED: [rule]}},
    }
    for role, number in (("launcher", 0), ("worker", 0), ("worker", 1)):
        asks = worker if role == "worker" else {}
        pod = f"{name}-{role}-{number}"
        made = gang_pod(site.namespace, pod, gang=name, size=3, **asks)
        made["metadata"]["labels"] |= mpi_job_pod_marks(name, role)["labels"]
        made["spec"]["nodeSelector"] = site.labels
        await site.kube.create(made)


async def test_published_mpi_jobs_are_decided_as_published(
    kube: Kube, namespace: str, stack: Stack
) -> None:
    """Launcher and workers are one gang; each worker has a node of its own.

    GPUs by address, NICs of the same NUMA node and of the other one, as in dranet's
    example of distributed training.
    """
    assert stack.nats.url
    letters = ("a", "b", "c", "d")
    async with fleet.running(kube, namespace, letters, devices=()) as site:
        for kind in ("gpu", "net"):
            driver = f"{kind}.{site.driver}"
            await site.publish(objects.device_class(driver, driver))
        for node in site.nodes:
            await site.publish(*gpu_node(site, node))
        await mpi_job(site, "aligned", 0)
        await mpi_job(site, "unaligned", 1)
        taken = Counter[str]()
        for name in ("aligned", "unaligned"):
            pods = await pods_of(site, name, 3, is_running, within_s=180.0)
            workers = [pod for pod in pods if "-worker-" in pod["metadata"]["name"]]
            taken.update(pod["spec"]["nodeName"] for pod in workers)
        assert set(taken.values()) == {1}
        assert len(taken) == 4
