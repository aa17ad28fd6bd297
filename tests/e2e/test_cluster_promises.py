"""On a control plane: a gang that waits for long is promised a start, by deadlines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from contracts.names import API_VERSION, DURATION
from moorings.bus_client import Client
from tests.lab import cluster
from tests.lab.cluster import Stack, is_running, job, stateful_set, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.server import ControlPlane
from tests.lab.waits import pods_of, until_priority, until_told

HOUR_S = 3600


@pytest.fixture(scope="module", autouse=True)
def stack(
    gangs: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A stack that sees Gangs, and keeps devices for who waits for a second."""
    assert gangs is None
    folder = tmp_path_factory.mktemp("stack")
    with cluster.started(control_plane, folder, SOLVER_PATIENCE="1s") as running:
        yield running


def is_promised(item: Json) -> bool:
    return "time" in item.get("status", {}).get("expectedStart", {})


def is_lacking(item: Json) -> bool:
    return bool(item.get("status", {}).get("lacks"))


async def create_large(site: Fleet, kube: Kube) -> Json:
    """Create a Gang that needs all devices of both nodes, and its pods."""
    claims = [{"name": "d", "templateName": "four"}]
    large = await kube.create(
        {
            "apiVersion": API_VERSION,
            "kind": "Gang",
            "metadata": {"name": "large", "namespace": site.namespace},
            "spec": {"members": [{"name": "pod", "count": 2, "claims": claims}]},
        }
    )
    await kube.create(stateful_set(site, "large", 2, "four"))
    return large


async def test_the_deadline_of_pods_promises_a_start(site: Fleet, kube: Kube) -> None:
    """The site has two nodes with four devices each; the Gang needs both whole."""
    await template(site, "pair", count=2)
    await template(site, "four", count=4)
    early_job = job(site, "early", 1, "pair")
    early_job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = HOUR_S
    await kube.create(early_job)
    (early,) = await pods_of(site, "early", 1, is_running)
    large = await create_large(site, kube)
    promised = (await kube.until(large, is_promised))["status"]["expectedStart"]
    assert promised["proven"]
    assert promised["because"] == f"{site.namespace}/early must end first"
    start = datetime.fromisoformat(promised["time"])
    assert HOUR_S - 120 < (start - datetime.now(UTC)).total_seconds() <= HOUR_S
    note = await until_told(kube, large, "StartExpected")
    assert note.startswith("devices are kept for it, and it starts by 20")

    # Two devices of one node and all of the other are free: for who ends before.
    endless = await kube.create(job(site, "endless", 1, "pair"))
    assert "gives no duration" in await until_told(kube, endless, "DevicesTaken")
    short = job(site, "short", 1, "pair")
    short["spec"]["template"]["metadata"]["annotations"][DURATION] = "10m"
    await kube.create(short)
    (filled,) = await pods_of(site, "short", 1, is_running)
    site.kubelets.finish(early)
    site.kubelets.finish(filled)
    await pods_of(site, "large", 2, is_running)
    now = await kube.until(large, lambda g: not is_promised(g))
    assert now["status"]["phase"] == "Running"


async def test_who_runs_past_its_duration_is_told_and_named(
    site: Fleet, kube: Kube
) -> None:
    """It goes on; what was promised by its end moves, and says why."""
    await template(site, "four", count=4)
    late = job(site, "late", 1, "four")
    late["spec"]["template"]["metadata"]["annotations"][DURATION] = "20s"
    await kube.create(late)
    (runs,) = await pods_of(site, "late", 1, is_running)
    large = await create_large(site, kube)
    await kube.until(large, is_promised)
    note = await until_told(kube, runs, "GangDurationExceeded")
    assert note.startswith("it runs for longer than its duration 20s")
    why = "later than it was once promised: late runs for longer than its duration"

    def is_moved(item: Json) -> bool:
        return is_promised(item) and why in item["status"]["expectedStart"]["because"]

    await kube.until(large, is_moved)
    site.kubelets.finish(runs)
    await pods_of(site, "large", 2, is_running)


async def test_who_has_no_place_is_told_which_nodes_it_lacks(
    site: Fleet, kube: Kube
) -> None:
    """Of a shape that there is; or that no node has its pods' shape."""
    await template(site, "four", count=4)
    await template(site, "five", count=5)
    await kube.create(job(site, "runs", 1, "four"))
    (runs,) = await pods_of(site, "runs", 1, is_running)
    large = await create_large(site, kube)
    wide = await kube.create(job(site, "wide", 1, "five"))
    lacks = (await kube.until(large, is_lacking))["status"]["lacks"]
    shape = f"4 devices of {site.driver}"
    assert lacks == [{"count": 1, "like": site.a, "shape": shape}]
    note = await until_told(kube, large, "NodesLacking")
    assert note == f"it lacks 1 more node like {site.a} ({shape})"
    note = await until_told(kube, wide, "GangNodesLacking")
    assert note.startswith("it lacks 1 node for a pod of member ")
    assert f"each with 5 devices of {site.device_class}" in note
    assert note.endswith("no node here could hold one")
    site.kubelets.finish(runs)
    await pods_of(site, "large", 2, is_running)
    await kube.until(large, lambda gang: not is_lacking(gang))


async def test_a_waiting_gang_s_priority_can_be_raised(
    site: Fleet, kube: Kube, client: Client
) -> None:
    """It is asked for anew, and comes before what has waited for longer."""
    await template(site, "four", count=4)
    await kube.create(job(site, "runs", 2, "four"))
    runs = await pods_of(site, "runs", 2, is_running)
    await kube.create(job(site, "first", 2, "four"))
    claims = [{"name": "d", "templateName": "four"}]
    urgent = await kube.create(
        {
            "apiVersion": API_VERSION,
            "kind": "Gang",
            "metadata": {"name": "urgent", "namespace": site.namespace},
            "spec": {"members": [{"name": "pod", "count": 2, "claims": claims}]},
        }
    )
    await kube.create(stateful_set(site, "urgent", 2, "four"))
    await kube.until(
        urgent, lambda g: g.get("status", {}).get("reason") == "DevicesTaken"
    )
    await kube.patch(urgent, {"spec": {"priority": 5}})
    await until_priority(client, site, "urgent", 5)
    for pod in runs:
        site.kubelets.finish(pod)
    await pods_of(site, "urgent", 2, is_running)
