"""Gangs that fit only when their pods are decided together: who binds them?

The families of `benchmarks.worlds.joint_gangs` (kubernetes/kubernetes#138765 and its
relatives), many sites of each, every gang on a site of its own where all its pods
have a place.

  kube-scheduler  the pods alone, as Kubernetes does by default
  PodGroup        Kubernetes' own gangs (alpha in 1.37): all pods or none
  Moorings        gated pods of one gang, then kube-scheduler

`whole %` are the gangs with all pods bound, `half` those with some: they hold devices
and cannot run. A way is over when every pod is bound or was refused, and nothing has
changed for 10 s.

    python -m benchmarks.cluster.families [--size full] [--sites N] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Callable

from benchmarks.cluster import setup
from benchmarks.report import Row, parser, print_tables, write
from benchmarks.worlds.joint_gangs import DRIVER, FAMILIES, SITE, Site
from tests.lab.cluster import gang_pod
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.controlplane.server import ControlPlane

SITES = {"small": 4, "full": 40}
NATIVE = Options(
    feature_gates=("GenericWorkload=true",),
    runtime_config=("scheduling.k8s.io/v1beta1=true",),
    controllers=(*CONTROLLERS, "podgroup-protection-controller"),
)
"""With Kubernetes' own gangs, which are off by default."""
QUIET_S = 10.0
LIMIT_S = 300.0
ALONE, NATIVELY, OURS = "kube-scheduler", "PodGroup", "Moorings"


async def publish(kube: Kube, sites: dict[str, Site]) -> None:
    """Create the nodes and devices of all sites."""
    made = [objects.device_class(DRIVER, DRIVER)]
    for name, site in sites.items():
        made += [objects.node(node, {SITE: name}) for node in site.nodes]
        for number, spec in enumerate(site.slices):
            slice_object = objects.resource_slice(DRIVER, spec["nodeName"], ())
            slice_object["metadata"]["name"] += f"-{number}"
            made.append({**slice_object, "spec": spec})
    await setup.create(kube, made)


def alone(namespace: str, name: str, site: Site) -> list[Json]:
    """Make the pods of a site, and nothing that makes them a gang."""
    return [
        objects.pod(namespace, pod, claims={"r": pod}, node_selector={SITE: name})
        for pod in _pods(name, site)
    ]


def native(namespace: str, name: str, site: Site) -> list[Json]:
    """Make them Kubernetes' own gang."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": len(site.claims)}}},
    }
    pods = alone(namespace, name, site)
    for pod in pods:
        pod["spec"]["schedulingGroup"] = {"podGroupName": name}
    return [group, *pods]


def ours(namespace: str, name: str, site: Site) -> list[Json]:
    """Make them a gang of Moorings."""
    return [
        gang_pod(
            namespace,
            pod,
            gang=name,
            size=len(site.claims),
            claims={"r": pod},
            node_selector={SITE: name},
        )
        for pod in _pods(name, site)
    ]


WAYS: dict[str, Callable[[str, str, Site], list[Json]]] = {
    ALONE: alone,
    NATIVELY: native,
    OURS: ours,
}


async def bind(kube: Kube, way: str, sites: dict[str, Site]) -> list[Row]:
    """Create the gangs one after the other and look how far they come."""
    async with setup.namespace(kube) as namespace:
        began_s = time.time()
        for name, site in sites.items():
            for pod, spec in zip(_pods(name, site), site.claims, strict=True):
                await kube.create(objects.claim(namespace, pod, spec))
            for resource in WAYS[way](namespace, name, site):
                await kube.create(resource)
        pods, quiet_since_s = await _settled(kube, namespace)
        bound = Counter(
            pod["spec"]["nodeSelector"][SITE]
            for pod in pods
            if pod["spec"].get("nodeName")
        )
    return [
        *(_row(family, way, sites, bound) for family in FAMILIES),
        {**_row("", way, sites, bound), "seconds": quiet_since_s - began_s},
    ]


async def _settled(kube: Kube, namespace: str) -> tuple[list[Json], float]:
    """Wait until nothing changes any more; gives the pods, and since when."""
    state_by_pod: dict[str, str] = {}
    since_s = time.time()
    until_s = since_s + LIMIT_S
    pods = []
    while time.time() < min(until_s, since_s + QUIET_S):
        pods = await kube.list("v1", "Pod", namespace)
        now = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
        if now != state_by_pod or not all(map(_was_tried, pods)):
            state_by_pod, since_s = now, time.time()
        if pods and all(now.values()):
            break
        await asyncio.sleep(0.5)
    return pods, since_s


def _was_tried(pod: Json) -> bool:
    """Tell whether kube-scheduler has bound the pod, or refused to."""
    conditions = pod["status"].get("conditions", ())
    return any(entry["type"] == "PodScheduled" for entry in conditions)


def _row(family: str, way: str, sites: dict[str, Site], bound: Counter[str]) -> Row:
    """Count the gangs of a family; "" is all of them."""
    prefix = _prefix(family) if family else ""
    gangs = {name: site for name, site in sites.items() if name.startswith(prefix)}
    whole = sum(bound[name] == len(site.claims) for name, site in gangs.items())
    half = sum(0 < bound[name] < len(site.claims) for name, site in gangs.items())
    return {
        "family": family or "all",
        "way": way,
        "gangs": len(gangs),
        "whole": whole,
        "half": half,
        "whole %": 100 * whole / len(gangs),
    }


def _prefix(family: str) -> str:
    return family.lower().replace(" ", "-") + "-"


def _pods(name: str, site: Site) -> list[str]:
    return [f"{name}-{index}" for index in range(len(site.claims))]


async def measure(plane: ControlPlane, count: int) -> list[Row]:
    """Let each way bind the gangs of all sites."""
    names = {
        f"{_prefix(family)}{number}": make
        for number in range(count)
        for family, make in FAMILIES.items()
    }
    sites = {name: make(name) for name, make in names.items()}
    async with plane.client() as kube:
        await publish(kube, sites)
        await setup.create_devices(kube, made := setup.nodes(1))
        await setup.create(kube, made)  # for the pod by which Moorings warms up
        rows = [*await bind(kube, ALONE, sites), *await bind(kube, NATIVELY, sites)]
        async with setup.moorings(plane, kube):
            rows += await bind(kube, OURS, sites)
    order = [*FAMILIES, "all"]
    return sorted(rows, key=lambda row: order.index(str(row["family"])))


def main() -> None:
    """Print the table."""
    arguments = parser(__doc__ or "")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--sites", type=int)
    options = arguments.parse_args()
    with setup.control_plane(NATIVE) as plane:
        rows = asyncio.run(measure(plane, options.sites or SITES[options.size]))
    write("cluster_families", options, print_tables({"gangs bound": rows}))


if __name__ == "__main__":
    main()
