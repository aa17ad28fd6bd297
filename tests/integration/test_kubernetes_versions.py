"""What differs between releases of Kubernetes, of what we rely on.

Runs on each release: `MOORINGS_KUBERNETES=1.35 pytest -m every_release`. Emulated: the
newest programs with the gates and the API of an older release, not with its bugs.
"""

from __future__ import annotations

import re

import pytest

from contracts.features import GATES, RELEASES
from tests.conftest import release
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Kube, named
from tests.lab.controlplane.fleet import runs, users, waits
from tests.lab.controlplane.options import NEWEST

pytestmark = pytest.mark.every_release

DRA = "/apis/resource.k8s.io"
KINDS = {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
_GATE = re.compile(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])')


@pytest.fixture
def recent() -> bool:
    """Whether taints and binding conditions are on: from 1.36."""
    return release() >= "1.36"


NOT_OF_ALLOCATORS = {"DRAResourceClaimGranularStatusAuthorization"}
"""A gate of the API server alone: see the tests of permissions."""


async def test_gates_are_on_as_we_say(kube: Kube) -> None:
    """Every gate of `contracts.features`: its default, or that it is not there yet."""
    text = await kube.text("/metrics")
    told = {name: on == "1" for name, on in _GATE.findall(text)}
    column = RELEASES.index(release())
    ours = {name: by_release[column] for name, by_release in GATES.items()}
    assert {name: told.get(name) for name in ours} == ours
    of_dra = {name for name in told if name.startswith("DRA")}
    assert of_dra <= set(ours) | NOT_OF_ALLOCATORS


async def test_v1_is_served_and_preferred(kube: Kube) -> None:
    """From 1.34 on; the versions before it where they are switched on."""
    group = await kube.request("GET", DRA)
    assert group["preferredVersion"]["version"] == "v1"
    served = {entry["version"] for entry in group["versions"]}
    betas = set() if release() >= NEWEST else {"v1beta1", "v1beta2"}
    assert served == {"v1"} | betas
    for version in served:
        assert await kinds(kube, version) >= KINDS


async def kinds(kube: Kube, version: str) -> set[str]:
    found = await kube.request("GET", f"{DRA}/{version}")
    return {item["name"] for item in found["resources"]}


async def test_taint_rules_may_be_served_and_do_nothing(
    kube: Kube, namespace: str
) -> None:
    """1.37 serves v1, with effect; 1.36 v1beta2 where it is switched on, without.

    In 1.36 they take effect with their gate only, and nothing that is served says so.
    """
    of = {"1.38": "v1", "1.37": "v1", "1.36": "v1beta2"}.get(release())
    group = await kube.request("GET", DRA)
    for version in (entry["version"] for entry in group["versions"]):
        assert ("devicetaintrules" in await kinds(kube, version)) == (version == of)
    if of is None:
        return
    async with fleet.running(kube, namespace, ["a"]) as site:
        rule = objects.taint_rule(namespace, site.driver, "NoSchedule")
        rule = await kube.create({**rule, "apiVersion": f"resource.k8s.io/{of}"})
        pod = await site.create_pod("p", await site.claim("c"))
        works = release() >= "1.37"
        await kube.until(pod, waits("cannot allocate all claims") if works else runs)
        await kube.delete(rule)


async def test_missing_timestamp_matters_where_conditions_bind(
    kube: Kube, namespace: str, *, recent: bool
) -> None:
    """Trap 1 begins with DRADeviceBindingConditions; timestamps are kept before too."""
    async with fleet.running(kube, namespace) as site:
        stamped = await site.allocate(await site.claim("stamped"), site.a)
        assert "allocationTimestamp" in stamped["status"]["allocation"]
        await kube.until(await site.create_pod("stamped", stamped), runs)
        bare = await site.claim("bare")
        bare = await site.allocate(bare, site.a, "dev-1", stamped=False)
        pod = await site.create_pod("bare", bare)
        if recent:
            await kube.until(pod, waits("field cannot be modified once set"))
        else:
            await kube.until(pod, runs)
            assert users(await kube.get(bare)) == ["bare"]


async def test_taints_of_a_slice_are_dropped_before_they_are_on(
    kube: Kube, namespace: str, *, recent: bool
) -> None:
    """Without a word: the devices then are kube-scheduler's as much as ours."""
    devices = objects.devices(1)
    devices[0]["taints"] = [{"key": "example.com/owned", "effect": "NoSchedule"}]
    async with fleet.running(kube, namespace, ["a"], devices) as site:
        name = f"{site.a}-{site.driver}"
        kept = await kube.get(named(objects.RESOURCE, "ResourceSlice", name))
        assert ("taints" in kept["spec"]["devices"][0]) == recent
        pod = await site.create_pod("p", await site.claim("c"))
        await kube.until(pod, waits("cannot allocate all claims") if recent else runs)


async def test_binding_conditions_of_a_result_are_dropped_before_they_are_on(
    kube: Kube, namespace: str, *, recent: bool
) -> None:
    """Without a word: a pod then does not wait for its device to be ready."""
    site = fleet.Fleet(kube, namespace, ["a"])
    conditions = {
        "bindingConditions": ["example.com/ready"],
        "bindingFailureConditions": ["example.com/failed"],
    }
    claim = await site.allocate(await site.claim("c"), site.a, result=conditions)
    result = claim["status"]["allocation"]["devices"]["results"][0]
    assert (result.items() >= conditions.items()) == recent
