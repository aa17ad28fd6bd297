"""Beside another driver: our agent judges its devices, and kube-scheduler listens."""

from __future__ import annotations

from pathlib import Path

from contracts import topics
from contracts.ids import NodeName
from runtime.bus.bus import Bus
from tests.builders.decisions import CLUSTER
from tests.lab.agent_objects import Agents
from tests.lab.controlplane import fleet
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import runs, waits
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.services import Process, eventually, running

GPUS: list[Json] = [{"name": "gpu-0"}]
SOURCES = """
apiVersion: moorings.dev/v1alpha1
kind: Sources
sources:
- kind: command
  name: watched
  driver: {driver}
  healthOnly: true
  exec: [/bin/cat, {answer}]
  readSeconds: 0.2
"""
SICK = '{"name": "gpu-0", "health": {"symptom": "Bad", "reason": "Xid79"}}'
WELL = '{"name": "gpu-0"}'


def watcher(site: fleet.Fleet, url: str, folder: Path) -> Process:
    """Make the agent of the first node, which evicts for what it will see."""
    file = folder / "sources.yaml"
    file.write_text(SOURCES.format(driver=site.driver, answer=folder / "answer"))
    return Process(
        "nodeagent",
        folder / "agent.log",
        NODEAGENT_CLUSTER=CLUSTER,
        NODEAGENT_SERVERS=url,
        NODEAGENT_SOURCES=str(file),
        NODEAGENT_NODE=site.a,
        NODEAGENT_RECOVERY_S="0.5",
        NODEAGENT_EVICT_REASONS="Xid79",
    )


def say(folder: Path, device: str) -> None:
    """Replace what the command prints."""
    new = folder / "new"
    new.write_text(f'{{"devices": [{device}]}}')
    new.replace(folder / "answer")


async def test_a_verdict_about_a_foreign_device_keeps_new_pods_away_and_ends_none(
    agents: Agents, kube: Kube, bus: Bus, namespace: str, tmp_path: Path
) -> None:
    """Nothing of the device is announced, and no slice of that driver is ours."""
    say(tmp_path, SICK)
    async with fleet.running(kube, namespace, ["a"], GPUS) as site:
        agent = watcher(site, agents.nats_url, tmp_path)

        async def rules() -> list[Json]:
            found = await kube.list(RESOURCE, "DeviceTaintRule")
            return [
                rule["spec"]
                for rule in found
                if rule["spec"].get("deviceSelector", {}).get("driver") == site.driver
            ]

        async def one_rule() -> bool:
            return len(await rules()) == 1

        async def slices() -> set[str]:
            found = await kube.list(
                RESOURCE, "ResourceSlice", fieldSelector=f"spec.driver={site.driver}"
            )
            return {str(each["metadata"]["uid"]) for each in found}

        before = await slices()
        async with running(agent), agents.running():
            await eventually(one_rule, "a rule about the device")
            (rule,) = await rules()
            selector = {"driver": site.driver, "pool": site.a, "device": "gpu-0"}
            assert rule["deviceSelector"] == selector
            taint = rule["taint"]
            assert (taint["key"], taint["value"], taint["effect"]) == (
                "moorings.dev/unhealthy",
                "Unhealthy",
                "NoSchedule",
            )
            pod = await site.create_pod("late", await site.claim("late"))
            await kube.until(pod, waits("cannot allocate all claims"))
            subject = topics.INVENTORIES.subject(CLUSTER, NodeName(site.a))
            found = await bus.last(topics.INVENTORIES.stream, subject)
            assert found is not None
            assert topics.INVENTORIES.codec.decode(found.data).pools == ()
            assert await slices() == before

            say(tmp_path, WELL)
            await kube.until(pod, runs)
            assert await rules() == []
            say(tmp_path, SICK)
            await eventually(one_rule, "it is sick again")
            assert runs(await kube.get(pod))
