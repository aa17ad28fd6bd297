"""From what claims ask for to pods that run, and what their claims hold then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from contracts.names import GATE
from tests.lab.cluster import create_pods, is_running, name_of
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, named
from tests.lab.controlplane.fleet import Fleet, now, reservation
from tests.lab.controlplane.options import NEWEST, OLDER, RELEASE
from tests.lab.services import eventually
from tests.lab.waits import pods_of


class Bound(NamedTuple):
    """A pod that runs, and the one claim that it has by template."""

    pod: Json
    claim: Json

    @property
    def node(self) -> str:
        """Where the pod runs."""
        name: str = self.pod["spec"]["nodeName"]
        return name

    @property
    def allocation(self) -> Json:
        """What the claim holds."""
        held: Json = self.claim["status"]["allocation"]
        return held

    @property
    def results(self) -> list[Json]:
        """The devices that the claim holds."""
        results: list[Json] = self.allocation["devices"]["results"]
        return results

    @property
    def devices(self) -> list[str]:
        """Their names, in the order of the results."""
        return [result["device"] for result in self.results]


async def create_gang(
    site: Fleet, gang: str, spec: Json, pods: int = 1, **fields: Any
) -> list[Json]:
    """Create pods of a gang, each with a claim of this spec by template."""
    await site.kube.create(objects.template(site.namespace, gang, spec))
    fields = {"node_selector": site.labels, **fields}
    return await create_pods(site, gang, range(pods), gang, size=pods, **fields)


async def until_bound(site: Fleet, gang: str, pods: int = 1) -> list[Bound]:
    """Wait until the pods of a gang run; gives them with what they hold.

    What holds of each allocation, whatever was asked for, is asserted here.
    """
    running = await pods_of(site, gang, pods, is_running)
    return list(await asyncio.gather(*(_read(site, pod) for pod in running)))


async def run_gang(
    site: Fleet, gang: str, spec: Json, pods: int = 1, **fields: Any
) -> list[Bound]:
    """Do both."""
    await create_gang(site, gang, spec, pods, **fields)
    return await until_bound(site, gang, pods)


def exactly(device_class: str, name: str = "r", **fields: Any) -> Json:
    """Make a request without alternatives."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **fields}}


def asks(*requests: Json, **fields: Any) -> Json:
    """Make the spec of a claim of these requests."""
    return {"devices": {"requests": list(requests), **fields}}


def model(site: Fleet, value: str) -> list[Json]:
    """Make the selectors of devices of a model."""
    text = f'device.attributes["{site.driver}"].model == "{value}"'
    return [{"cel": {"expression": text}}]


def device(name: str, model: str = "", **fields: Any) -> Json:
    """Make a device, of a model if there is one."""
    attributes = {"model": {"string": model}} if model else {}
    return {"name": name, "attributes": attributes, **fields}


async def report_condition(site: Fleet, claim: Json, kind: str) -> None:
    """Say as the driver that a condition holds of the claim's one device."""
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    condition = {
        "type": kind,
        "status": "True",
        "reason": "Tried",
        "message": "as the test says",
        "lastTransitionTime": now(),
    }
    names = {name: result[name] for name in ("driver", "pool", "device")}
    status = {"devices": [{**names, "conditions": [condition]}]}
    await site.kube.patch(claim, {"status": status}, "status")


async def told_by_scheduler(site: Fleet, pod: Json, reason: str) -> None:
    """Wait for an event about a pod."""
    selected = f"involvedObject.uid={pod['metadata']['uid']},reason={reason}"

    async def told() -> bool:
        found = await site.kube.list(
            "v1", "Event", site.namespace, fieldSelector=selected
        )
        return bool(found)

    await eventually(told, f"event {reason}")


async def _read(site: Fleet, pod: Json) -> Bound:
    claim = await site.generated(pod)
    status, node = claim["status"], named("v1", "Node", pod["spec"]["nodeName"])
    assert status["reservedFor"] == [reservation(pod)]
    # Which API servers of before 1.34 refuse, and no pod of later ones binds without.
    has_time = "allocationTimestamp" in status["allocation"]
    assert has_time is (os.environ.get(RELEASE, NEWEST) not in OLDER)
    selector = status["allocation"].get("nodeSelector")
    assert selector is None or selects(selector, await site.kube.get(node))
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]
    assert GATE not in gates
    return Bound(pod, claim)


def selects(selector: Mapping[str, Any], node: Json) -> bool:
    """Whether a selector of names and labels, each one of some values, has a node."""

    def holds(requirement: Mapping[str, Any], fields: Mapping[str, str]) -> bool:
        assert requirement["operator"] == "In"
        return fields.get(requirement["key"]) in requirement["values"]

    names = {"metadata.name": name_of(node)}
    return any(
        all(holds(one, names) for one in term.get("matchFields", ()))
        and all(
            holds(one, node["metadata"]["labels"])
            for one in term.get("matchExpressions", ())
        )
        for term in selector["nodeSelectorTerms"]
    )
