"""Foreign devices that Moorings owns are kept from kube-scheduler, by real rules."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from tests.lab.agent_objects import WAIT_S, Agents
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.fleet import runs, waits
from tests.lab.controlplane.objects import RESOURCE

SLICES = Path(__file__).parent.parent / "data" / "third-party-slices.yaml"


def devices_of(driver: str) -> list[Json]:
    """Give the devices of a third-party driver as it publishes them."""
    for item in yaml.safe_load_all(SLICES.read_text()):
        if item["spec"]["driver"] == driver:
            found: list[Json] = item["spec"]["devices"]
            return found
    raise AssertionError(driver)


def rule_of(driver: str) -> Json:
    """Name the rule of a driver."""
    return named(RESOURCE, "DeviceTaintRule", f"moorings-owned-{driver}")


def anything(_: Json) -> bool:
    return True


async def test_owned_foreign_device_waits_for_us_until_it_is_not_owned_any_more(
    agents: Agents, kube: Kube, namespace: str
) -> None:
    gpus = devices_of("gpu.nvidia.com")
    async with fleet.running(kube, namespace, ["a"], gpus) as site:
        rule = rule_of(site.driver)
        async with agents.running(site.driver):
            await kube.until(rule, anything)
            theirs = await site.create_pod("theirs", await site.claim("theirs"))
            await kube.until(theirs, waits("cannot allocate all claims"))
            claim = await site.allocate(await site.claim("ours"), site.a, "gpu-1")
            await kube.until(await site.create_pod("ours", claim), runs)
        async with agents.running():
            await kube.until_gone(rule)
            await kube.until(theirs, runs)


async def test_rule_that_somebody_edits_or_deletes_is_made_good(
    agents: Agents, kube: Kube
) -> None:
    """An edited selector may taint every device there is, whoever has it."""
    rule = rule_of(agents.driver)
    selector = {"driver": agents.driver}

    def is_right(found: Json) -> bool:
        spec = found["spec"]
        state = (spec["deviceSelector"], spec["taint"]["effect"])
        return state == (selector, "NoSchedule")

    async with agents.running(agents.driver):
        made = await kube.until(rule, is_right)
        taint = {"effect": "NoExecute"}
        edit = {"spec": {"deviceSelector": {"driver": None}, "taint": taint}}
        edited = await kube.patch(made, edit)
        assert not is_right(edited)
        await kube.until(made, is_right)
        await kube.delete(made)
        again = await kube.until(
            rule, lambda found: found["metadata"]["uid"] != made["metadata"]["uid"]
        )
        assert is_right(again)
    async with agents.running():
        await kube.until_gone(rule)


async def test_pools_of_owned_nodes_get_rules_that_go_with_the_node(
    agents: Agents, kube: Kube
) -> None:
    host = await kube.get(named("v1", "Node", agents.node))
    await kube.patch(host, {"metadata": {"labels": {"test": agents.node}}})
    elsewhere = await kube.create(objects.node(f"{agents.node}-b"))
    for node in (host, elsewhere):
        name = node["metadata"]["name"]
        gpus = devices_of("gpu.example.com")
        await kube.create(objects.resource_slice(agents.driver, name, gpus))

    async def rules() -> list[Json]:
        found = await kube.list(RESOURCE, "DeviceTaintRule")
        return [
            rule
            for rule in found
            if rule["spec"].get("deviceSelector", {}).get("driver") == agents.driver
        ]

    async with agents.running(agents.driver, nodes=f"test={agents.node}"):
        async with asyncio.timeout(WAIT_S):
            while not (found := await rules()):
                pass
        (rule,) = found
        selector = {"driver": agents.driver, "pool": agents.node}
        assert rule["spec"]["deviceSelector"] == selector
    await kube.delete(host)
    await kube.until_gone(rule)
