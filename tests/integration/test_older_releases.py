"""Releases from before v1, of their own programs: what they take and keep.

docs/migration.md relies on it. Each is built once (scripts/controlplane-older.sh).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.options import API_SERVER, ETCD, NEWEST, of_release
from tests.lab.controlplane.programs import built
from tests.lab.controlplane.server import ControlPlane, running
from tests.lab.manifests import CRD, K8S

pytestmark = pytest.mark.soak
OLDER = Path(__file__).parents[1] / "data" / "older"
KINDS = ("deviceclasses", "resourceclaimtemplates", "resourceslices")


def _options(release: str, *served: str) -> Any:
    names = tuple(f"resource.k8s.io/{version}=true" for version in served)
    options = of_release(release)
    return structs.replace(
        options,
        programs=(ETCD, API_SERVER),
        runtime_config=names or options.runtime_config,
    )


def _programs(release: str) -> Path:
    found = built(release)
    if found is None:
        pytest.skip("Go is not installed")
    return found


@pytest.mark.parametrize("release", ["1.32", "1.33"])
def test_the_overlay_is_taken_whole(release: str, tmp_path: Path) -> None:
    """Every object, with every policy compiled; nothing is dropped in silence."""
    with running(_programs(release), tmp_path, _options(release)) as plane:
        kubectl = Kubectl(_programs(NEWEST) / "kubectl", plane.kubeconfig())
        kubectl("apply", "-f", str(CRD))
        overlay = K8S / "overlays" / "kubernetes-1.33"
        kubectl("apply", "--validate=strict", "-k", str(overlay))
        policies = kubectl("get", "validatingadmissionpolicies", "-o", "name")
        assert "moorings-publisher-claims" in policies


async def _create_all(kube: Kube, name: str) -> None:
    for raw in yaml.safe_load_all((OLDER / name).read_text()):
        if raw["apiVersion"].startswith("resource.k8s.io") and raw["kind"] != "Pod":
            raw["metadata"].pop("namespace", None)
            if raw["kind"] == "ResourceClaimTemplate":
                raw["metadata"]["namespace"] = "default"
            await kube.create(raw)


async def _list(kube: Kube, version: str, plural: str) -> list[Json]:
    found = await kube.request("GET", f"/apis/resource.k8s.io/{version}/{plural}")
    kind = found["kind"].removesuffix("List")
    head = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind}
    return [{**head, **item} for item in found["items"]]


@asynccontextmanager
async def _upgraded(release: str, folder: Path, *served: str) -> AsyncIterator[Kube]:
    """Run a release on what the one before it stored; what it stores stays there."""
    plane = ControlPlane(_programs(release), folder, _options(release, *served))
    try:
        plane.start()
        async with Kube(plane.url, plane.authority, plane.token()) as kube:
            yield kube
    finally:
        plane.stop()


async def test_objects_of_1_31_reach_1_37_if_1_33_wrote_them_again(
    tmp_path: Path,
) -> None:
    """Written again as they are, each is stored in a version that 1.37 reads.

    Without it the API server of 1.37 does not become ready.
    """
    async with _upgraded("1.31", tmp_path) as kube:
        await _create_all(kube, "v1alpha3.yaml")
    served = ("v1beta2", "v1beta1", "v1alpha3")
    async with _upgraded("1.33", tmp_path, *served) as kube:
        for plural in KINDS:
            for item in await _list(kube, "v1beta2", plural):
                await kube.update(item)
    async with _upgraded(NEWEST, tmp_path) as kube:
        for plural in KINDS:
            assert len(await _list(kube, "v1", plural)) == 1, plural
