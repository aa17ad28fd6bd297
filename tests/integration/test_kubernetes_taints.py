"""What taints on devices do: to kube-scheduler, and to pods that have the devices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.conftest import release
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError
from tests.lab.controlplane.fleet import Fleet, runs, waits
from tests.lab.controlplane.options import NEXT

KEY = "example.com/owned"


@asynccontextmanager
async def rule(site: Fleet, effect: str, **selector: str) -> AsyncIterator[Json]:
    """Taint devices while the block runs; by default those of the fleet's driver."""
    made = objects.taint_rule(site.namespace, site.driver, effect)
    if selector:
        made["spec"]["deviceSelector"] = selector
    made = await site.kube.create(made)
    try:
        yield made
    finally:
        await site.kube.delete(made)


async def test_taint_in_a_slice_keeps_kube_scheduler_away_and_binds_ours(
    kube: Kube, namespace: str
) -> None:
    """NoSchedule: no toleration is needed in an allocation that somebody else wrote."""
    devices = objects.devices(2)
    for device in devices:
        device["taints"] = [{"key": KEY, "effect": "NoSchedule"}]
    async with fleet.running(kube, namespace, ["a"], devices) as site:
        theirs = await site.create_pod("theirs", await site.claim("theirs"))
        await kube.until(theirs, waits("cannot allocate all claims"))
        claim = await site.allocate(await site.claim("ours"), site.a)
        await kube.until(await site.create_pod("ours", claim), runs)


async def test_taint_rule_does_the_same_to_foreign_slices(
    kube: Kube, namespace: str
) -> None:
    """NoSchedule by DeviceTaintRule: kube-scheduler sees it like the slice's own."""
    async with fleet.running(kube, namespace, ["a"]) as site, rule(site, "NoSchedule"):
        theirs = await site.create_pod("theirs", await site.claim("theirs"))
        await kube.until(theirs, waits("cannot allocate all claims"))
        claim = await site.allocate(await site.claim("ours"), site.a)
        await kube.until(await site.create_pod("ours", claim), runs)


async def test_no_execute_evicts_who_has_the_device(kube: Kube, namespace: str) -> None:
    """Only a toleration in the result with this very effect protects a pod.

    From 1.38 on one without an effect does, too. A gated pod stays with its allocation,
    and is evicted once it is bound.
    """
    tolerations: dict[str, list[Json]] = {
        "none": [],
        "other": [{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}],
        "any": [{"key": KEY, "operator": "Exists"}],
        "same": [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}],
        "gated": [],
    }
    async with fleet.running(kube, namespace, ["a"], objects.devices(5)) as site:
        pods = {}
        for number, (name, tolerated) in enumerate(tolerations.items()):
            claim = await site.claim(name)
            pod = await site.create_pod(name, claim, gated=True)
            result = {"tolerations": tolerated}
            device = f"dev-{number}"
            await site.allocate(claim, site.a, device, pods=[pod], result=result)
            pods[name] = pod
        for name, pod in pods.items():
            if name != "gated":
                await site.open_gate(pod)
                await kube.until(pod, runs)
        async with rule(site, "NoExecute"):
            protected = {"same"} if release() < NEXT else {"same", "any"}
            for name in pods.keys() - {*protected, "gated"}:
                await kube.until_gone(pods[name])
            assert (await kube.get(pods["gated"]))["status"]["phase"] == "Pending"
            await site.open_gate(pods["gated"])
            await kube.until_gone(pods["gated"])
            for name in protected:
                assert runs(await kube.get(pods[name]))


async def test_misspelt_selector_of_a_taint_rule_selects_every_device(
    kube: Kube, namespace: str
) -> None:
    """Unknown fields are dropped with a warning; with strict validation refused."""
    async with fleet.running(kube, namespace, ["a"]) as site:
        async with rule(site, "NoSchedule", drivr="else.example.com") as made:
            assert made["spec"].get("deviceSelector", {}) == {}
            pod = await site.create_pod("p", await site.claim("c"))
            await kube.until(pod, waits("cannot allocate all claims"))
        wrong = objects.taint_rule(namespace, site.driver, "NoSchedule")
        wrong["spec"]["deviceSelector"] = {"drivr": "else.example.com"}
        with pytest.raises(RefusedError, match="unknown field") as no:
            await kube.create(wrong, fieldValidation="Strict")
        assert no.value.status == 400
