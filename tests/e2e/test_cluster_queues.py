"""Queues of Kueue in a cluster where none of its controllers runs."""

from __future__ import annotations

import pytest

from contracts.allocation import Rule
from contracts.gang import GangPhase
from contracts.kueue import QUEUE_NAME
from contracts.names import API_VERSION
from moorings.bus_client import Client
from tests.builders.queues import cluster_queue, flavor, local_queue
from tests.lab.cluster import create_pods, is_running, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl, serve_gangs
from tests.lab.waits import pods_of, until_phase
from tests.lab.workloads import KUEUE, serve, stop_serving

KINDS = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor")


def holding(site: Fleet, name: str, pods: int, queue: str = "") -> Json:
    """Describe a Gang that holds devices before its pods exist."""
    labels = {QUEUE_NAME: queue} if queue else {}
    claims = [{"name": "d", "templateName": "claims"}]
    members = [{"name": "pod", "count": pods, "claims": claims}]
    return {
        "apiVersion": API_VERSION,
        "kind": "Gang",
        "metadata": {"name": name, "namespace": site.namespace, "labels": labels},
        "spec": {"hold": True, "members": members},
    }


async def test_a_queue_s_quota_is_kept_and_given_back(
    site: Fleet, kube: Kube, client: Client, kubectl: Kubectl
) -> None:
    """By a LocalQueue that a Gang names, or `default` for pods that name none."""
    serve_gangs(kubectl)
    served = await serve(kube, [(KUEUE, kind) for kind in KINDS])
    queue = f"q-{site.namespace}"
    try:
        await template(site, "claims", count=1)
        for made in (
            flavor("any"),
            cluster_queue(queue, {"any": {site.device_class: 3}}),
            local_queue(site.namespace, queue),
            local_queue(site.namespace, queue, "mine"),
        ):
            await kube.create(made)
        first = await kube.create(holding(site, "first", 2, "mine"))
        await until_phase(client, site, "first", GangPhase.DECIDED)
        await create_pods(site, "second", [0, 1], "claims")
        record = await until_phase(client, site, "second", GangPhase.PENDING)
        while not record.reasons:
            record = await until_phase(client, site, "second", GangPhase.PENDING)
        assert [reason.rule for reason in record.reasons] == [Rule.QUOTA]
        assert f"{queue} holds 2 of its 3 of flavor any" in record.reasons[0].message
        await kube.delete(first)
        await pods_of(site, "second", 2, is_running)
    finally:
        await stop_serving(kube, served)


pytestmark = pytest.mark.usefixtures("stack")
