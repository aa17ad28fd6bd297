"""What one author writes on his own pods stops nobody, with no policy against it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from contracts.gang import GangPhase
from contracts.names import ATTEMPT, GANG_UID, INDEX, SOLVE, VOID
from moorings.bus_client import Client
from tests.lab import cluster
from tests.lab.cluster import Stack, create_pods, is_running, template
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.fleet import Fleet, pinned
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually
from tests.lab.waits import pods_of, until_phase

UNREADABLE = "9" * 5000
LEADS_S = 60.0


@pytest.fixture(scope="module")
def stack(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """NATS, a solver and two publishers."""
    folder = tmp_path_factory.mktemp("stack")
    with cluster.started(control_plane, folder, standby=True) as running:
        yield running


async def test_pods_that_say_they_were_placed_fill_no_node(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """Pinned, annotated as ours and held back by a gate of somebody else, for ever."""
    uid = "11111111-2222-3333-4444-555555555555"
    notes = {GANG_UID: uid, ATTEMPT: "1", SOLVE: "x", INDEX: "worker/0"}
    for number, node in enumerate(site.nodes):
        for gate in ("", "example.com/never"):
            stranger = objects.pod(
                site.namespace,
                f"stranger-{number}{gate.partition('/')[2]}",
                annotations=notes,
                requests={"cpu": "100000"},
                affinity=pinned(node),
                schedulingGates=[{"name": gate}] if gate else [],
            )
            await kube.create(stranger)
    await template(site, count=2)
    await create_pods(site, "train", range(4), size=4, requests={"cpu": "1"})
    await until_phase(client, site, "train", GangPhase.RUNNING)


async def test_a_mark_that_nobody_can_read_ends_no_publisher(
    site: Fleet, kube: Kube, client: Client, stack: Stack
) -> None:
    """Neither who leads, nor who stands by, nor who starts with it and then leads."""
    await template(site, count=4)
    holders = await create_pods(site, "first", range(2), size=2)
    await until_phase(client, site, "first", GangPhase.RUNNING)
    # First a gang that waits is marked, and what it waits for becomes free.
    waiting = await create_pods(site, "second", range(2), size=2)
    record = await until_phase(client, site, "second", GangPhase.PENDING)
    for pod in waiting:
        mark = {VOID: f"{record.uid}/{UNREADABLE} {record.uid}/1"}
        await kube.patch(pod, {"metadata": {"annotations": mark}})
    leader, other = _who_leads(stack)
    stack[other].kill()
    stack[other].start()
    for pod in holders:
        await kube.delete(pod, grace_s=0)
    await pods_of(site, "second", 2, is_running)
    # Then whoever leads is gone, and who began with the mark goes on.
    stack[leader].kill()
    terms = stack[other].log().count('"lease.acquired"')

    async def leads() -> bool:
        return stack[other].log().count('"lease.acquired"') > terms

    await eventually(leads, "another publisher leads", LEADS_S)
    await asyncio.gather(*(kube.delete(pod, grace_s=0) for pod in waiting))
    await create_pods(site, "third", range(2), size=2)
    await pods_of(site, "third", 2, is_running)
    assert '"service.failed"' not in stack[other].log()
    stack[leader].start()


def _who_leads(stack: Stack) -> tuple[str, str]:
    """Name the publisher that leads, and the other one."""
    names = ("publisher", "standby")
    leads = '"lease.acquired"' in stack["publisher"].log()
    return names if leads else (names[1], names[0])
