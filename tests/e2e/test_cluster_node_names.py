"""Pods that name their node, with k8s/components/node-names and without it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from contracts.names import GANG, GANG_SIZE, OWNED
from tests.lab.cluster import GATES, is_running, template
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, RefusedError
from tests.lab.controlplane.fleet import Fleet, only, pinned
from tests.lab.controlplane.kubectl import build
from tests.lab.manifests import BASE, K8S, write_site
from tests.lab.services import eventually
from tests.lab.waits import until_told

REFUSED = "cannot set spec.nodeName"
POLICIES = ("moorings-gate-gangs", "moorings-gate-templates", "moorings-gate-claims")
NOTICED_S = 60.0
USES: dict[str, dict[str, Any]] = {
    "gang": {"labels": {GANG: "train"}},
    "template": {"templates": {"d": "one"}},
    "claim": {"claims": {"d": "one"}},
    "gate": {"schedulingGates": GATES},
    "all": {
        "labels": {GANG: "train"},
        "templates": {"d": "one"},
        "claims": {"e": "one"},
        "schedulingGates": GATES,
    },
}
RACKS = [
    {"key": "example.com/rack", "operator": "In", "values": [rack]} for rack in "ab"
]


def _policies(
    programs: Path, folder: Path, site: Fleet, *components: str
) -> list[Json]:
    """Build the policies of the gate with components, for one namespace alone."""
    written = write_site(folder / "site", BASE, {"drivers": "", "classes": ""})
    file = written / "kustomization.yaml"
    said = yaml.safe_load(file.read_text())
    folders = (K8S / "components" / name for name in components)
    said["components"] += [os.path.relpath(path, written) for path in folders]
    file.write_text(yaml.safe_dump(said))
    found = [
        thing
        for thing in build(programs, written)
        if "AdmissionPolicy" in thing["kind"] and thing["metadata"]["name"] in POLICIES
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    for thing in found:
        if "matchConstraints" in thing["spec"]:
            thing["spec"]["matchConstraints"]["namespaceSelector"] = here
    return found


@asynccontextmanager
async def _installed(site: Fleet, policies: list[Json]) -> AsyncIterator[None]:
    """Have policies, and what they are bound to, while the block runs.

    Once on a control plane: it does not take up parameters a second time
    (kubernetes/kubernetes#130887).
    """
    kube, space = site.kube, site.namespace
    mark = {"metadata": {"labels": {OWNED: "true"}}}
    await template(site, "one", count=1)
    await kube.patch(objects.template(space, "one", {}), mark)
    await kube.patch(await site.claim("one"), mark)
    await asyncio.gather(*map(kube.create, policies))
    try:
        yield
    finally:
        await asyncio.gather(*map(kube.delete, policies))


async def _try(site: Fleet, **fields: Any) -> Json:
    """Return the spec that a pod for the first node would get, or the refusal."""
    pod = objects.pod(site.namespace, "probe", nodeName=site.a, **fields)
    try:
        made = await site.kube.create(pod, dryRun="All")
    except RefusedError as no:
        return {"refused": no.message}
    return dict(made["spec"])


async def _until_said(site: Fleet, key: str, what: str, **fields: Any) -> None:
    async def is_said() -> bool:
        return bool((await _try(site, **fields)).get(key))

    await eventually(is_said, what, NOTICED_S)


def _required(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }


async def test_with_the_component_a_pod_gets_devices_of_the_node_that_it_names(
    site: Fleet, control_plane_programs: Path, tmp_path: Path
) -> None:
    """It goes the way of all pods: gate, decision, kube-scheduler."""
    policies = _policies(control_plane_programs, tmp_path, site, "node-names")
    async with _installed(site, policies):
        for name, uses in USES.items():
            await _until_said(site, "affinity", f"{name} is pinned", **uses)
        await _every_term_is_pinned(site)
        for uses in USES.values():
            await _is_pinned_once(site, uses)
        others = await _try(site)
        assert others["nodeName"] == site.a
        assert "affinity" not in others
        await _run_where_they_say(site)
        await _one_waits_for_its_node(site)


async def _every_term_is_pinned(site: Fleet) -> None:
    """One of them is enough for kube-scheduler; an empty one selects nothing."""
    pin = only(site.a)
    other = {"key": "metadata.name", "operator": "NotIn", "values": [site.b]}
    either = [{"matchExpressions": [rack]} for rack in RACKS]
    for before, after in (
        ({}, pinned(site.a)),
        ({"nodeAffinity": {}}, pinned(site.a)),
        (_required(*either), _required(*({**t, "matchFields": [pin]} for t in either))),
        (
            _required({"matchFields": [other]}, either[0]),
            _required(
                {"matchFields": [other, pin]}, {**either[0], "matchFields": [pin]}
            ),
        ),
        (_required({}, either[1]), _required({}, {**either[1], "matchFields": [pin]})),
    ):
        spec = await _try(site, affinity=before, **USES["gang"])
        assert spec["affinity"] == after
        assert "nodeName" not in spec


async def _is_pinned_once(site: Fleet, uses: Json) -> None:
    preferred = {"weight": 1, "preference": {"matchExpressions": [RACKS[0]]}}
    apart = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    affinity: Json = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [preferred]
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
    }
    later = {"name": "example.com/later"}
    gates = [later, *uses.get("schedulingGates", ())]
    spec = await _try(site, **{**uses, "affinity": affinity, "schedulingGates": gates})
    both = {**affinity["nodeAffinity"], **pinned(site.a)["nodeAffinity"]}
    assert spec["affinity"] == {**affinity, "nodeAffinity": both}
    assert spec["schedulingGates"] == [later, *GATES]


async def _run_where_they_say(site: Fleet) -> None:
    for name, node in (("a", site.a), ("b", site.b)):
        pod = await site.kube.create(_lone(site, name, node, "one"))
        assert pod["spec"]["schedulingGates"] == GATES
        pod = await site.kube.until(pod, is_running)
        claim = await site.generated(pod)
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert pod["spec"]["nodeName"] == result["pool"] == node


async def _one_waits_for_its_node(site: Fleet) -> None:
    """It is told why, as are all that wait, and goes to no other node."""
    await template(site, "three", count=3)
    first = await site.kube.create(_lone(site, "first", site.a, "three"))
    await site.kube.until(first, is_running)
    second = await site.kube.create(_lone(site, "second", site.a, "three"))
    await until_told(site.kube, second, "GangDevicesTaken")


def _lone(site: Fleet, name: str, node: str, devices: str) -> Json:
    return objects.pod(
        site.namespace,
        name,
        nodeName=node,
        labels={GANG: name},
        annotations={GANG_SIZE: "1"},
        templates={"d": devices},
    )


async def test_without_the_component_it_is_refused(
    site: Fleet, control_plane_programs: Path, tmp_path: Path
) -> None:
    policies = _policies(control_plane_programs, tmp_path, site)
    async with _installed(site, policies):
        uses = USES["gang"]
        await _until_said(site, "refused", "the policy holds", **uses)
        assert REFUSED in (await _try(site, **uses))["refused"]
