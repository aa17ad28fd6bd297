"""What may change in a pod that waits behind a scheduling gate."""

from __future__ import annotations

import asyncio

import pytest

from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import only, pinned, runs, waits

OPEN = {"op": "remove", "path": "/spec/schedulingGates"}
TERMS = (
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    "/nodeSelectorTerms"
)
REFUSED = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"


def required(*terms: Json) -> Json:
    nodes = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [*terms]
        }
    }
    return {"nodeAffinity": nodes}


def labelled(key: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


async def test_pin_and_gate_removal_are_one_patch(kube: Kube, namespace: str) -> None:
    """By required node affinity or by node selector; the pod binds where it says."""
    async with fleet.running(kube, namespace) as site:
        pins = {
            "field": {"op": "add", "path": "/spec/affinity", "value": pinned(site.b)},
            "label": {
                "op": "add",
                "path": "/spec/nodeSelector/kubernetes.io~1hostname",
                "value": site.b,
            },
        }
        for name, pin in pins.items():
            pod = await site.create_pod(name, gated=True)
            await kube.patch(pod, [pin, OPEN])
            pod = await kube.until(pod, runs)
            assert pod["spec"]["nodeName"] == site.b


async def test_every_required_term_takes_the_pin_in_the_same_patch(
    kube: Kube, namespace: str
) -> None:
    """Terms are alternatives: the pin is added to each, and none is added beside."""
    async with fleet.running(kube, namespace) as site:
        affinity = required(labelled("test"), labelled("kubernetes.io/hostname"))
        pod = await site.create_pod("p", gated=True, affinity=affinity)
        pin = [only(site.b)]
        await kube.patch(
            pod,
            [
                {"op": "add", "path": f"{TERMS}/0/matchFields", "value": pin},
                {"op": "add", "path": f"{TERMS}/1/matchFields", "value": pin},
                OPEN,
            ],
        )
        pod = await kube.until(pod, runs)
        assert pod["spec"]["nodeName"] == site.b


async def test_no_term_is_added_beside_others(kube: Kube, namespace: str) -> None:
    """It would be one more alternative, not a pin."""
    async with fleet.running(kube, namespace) as site:
        pod = await site.create_pod(
            "p", gated=True, affinity=required(labelled("test"))
        )
        term = {"matchFields": [only(site.a)]}
        with pytest.raises(RefusedError) as no:
            await kube.patch(
                pod, [{"op": "add", "path": f"{TERMS}/-", "value": term}, OPEN]
            )
        assert no.value.status == 422
        assert REFUSED in no.value.message


async def test_no_pin_once_the_gate_is_gone(kube: Kube, namespace: str) -> None:
    """After the gate a pod's place can only be changed by a new pod."""
    async with fleet.running(kube, namespace) as site:
        pod = await site.create_pod("p", nodeSelector={"nowhere": "yes"}, gated=True)
        await site.open_gate(pod)
        pin = {"op": "add", "path": "/spec/affinity", "value": pinned(site.a)}
        with pytest.raises(RefusedError, match="pod updates may not change") as no:
            await kube.patch(pod, [pin])
        assert no.value.status == 422


async def test_no_node_name_instead_of_a_pin(kube: Kube, namespace: str) -> None:
    """Binding is kube-scheduler's; a gated pod takes no spec.nodeName."""
    async with fleet.running(kube, namespace) as site:
        pod = await site.create_pod("p", gated=True)
        name = {"op": "add", "path": "/spec/nodeName", "value": site.a}
        with pytest.raises(RefusedError) as no:
            await kube.patch(pod, [name, OPEN])
        assert no.value.status == 422
        assert "pod updates may not change fields other than" in no.value.message


async def test_no_gate_comes_back(kube: Kube, namespace: str) -> None:
    """A gate is set when a pod is created, or never."""
    async with fleet.running(kube, namespace) as site:
        pod = await site.create_pod("p", gated=True, nodeSelector={"nowhere": "yes"})
        await site.open_gate(pod)
        with pytest.raises(RefusedError) as no:
            await kube.patch(pod, {"spec": {"schedulingGates": [{"name": "again"}]}})
        assert no.value.status == 422
        told = "only deletion is allowed, but found new scheduling gate 'again'"
        assert told in no.value.message


async def test_no_object_says_since_when_kube_scheduler_refuses_a_pod(
    kube: Kube, namespace: str
) -> None:
    """PodScheduled is False from the beginning, and its time is that of the gate."""
    async with fleet.running(kube, namespace) as site:
        pod = await site.create_pod(
            "p", gated=True, nodeSelector={"nowhere": "yes"}, affinity=pinned(site.a)
        )
        pod = await kube.until(pod, lambda p: "conditions" in p["status"])
        (before,) = pod["status"]["conditions"]
        assert (before["status"], before["reason"]) == ("False", "SchedulingGated")
        await asyncio.sleep(1.1)  # times have whole seconds
        await site.open_gate(pod)
        pod = await kube.until(pod, waits("didn't match Pod's node affinity/selector"))
        (after,) = pod["status"]["conditions"]
        assert (after["status"], after["reason"]) == ("False", "Unschedulable")
        assert after["lastTransitionTime"] == before["lastTransitionTime"]
