"""Admission policies from before resource.k8s.io/v1, on real API servers.

They name v1alpha3 and v1beta1, as Kubernetes' pages on admin access did. The doctor
warns exactly of those that do not see a claim of v1.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import OwnControlPlane
from tests.lab.command_line import moorings
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.options import API_SERVER, ETCD, Options
from tests.lab.controlplane.server import ControlPlane
from tests.lab.services import eventually

OLD = ("v1alpha3", "v1beta1")
NAMESPACE = "default"
ADMISSION = "admissionregistration.k8s.io/v1"
WITHIN_S = 60.0


def policy(name: str, versions: tuple[str, ...], matching: str) -> list[Json]:
    """Forbid claims of the policy's own name, in these versions."""
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": list(versions),
        "operations": ["CREATE"],
        "resources": ["resourceclaims"],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"matchPolicy": matching, "resourceRules": [rule]},
        "validations": [{"expression": f"object.metadata.name != '{name}'"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    kinds = {"": spec, "Binding": binding}
    return [
        {
            "apiVersion": ADMISSION,
            "kind": f"ValidatingAdmissionPolicy{kind}",
            "metadata": {"name": name},
            "spec": body,
        }
        for kind, body in kinds.items()
    ]


async def forbids(kube: Kube, name: str) -> bool:
    """True if a claim of v1 with this name is refused."""
    claim = objects.claim(NAMESPACE, name, objects.requests("any"))
    try:
        made = await kube.create(claim)
    except RefusedError:
        return True
    await kube.delete(made)
    return False


async def examine(plane: ControlPlane, home: Path) -> dict[str, tuple[str, str]]:
    """Run the doctor; gives level and reason of its lines about policies, by name."""
    option = f"--kubeconfig={plane.kubeconfig()}"
    said = await asyncio.to_thread(moorings, "doctor", option, "-o", "json", home=home)
    lines = (
        line
        for line in json.loads(said.stdout)["checks"]
        if line["check"] == "kubernetes.admission"
    )
    return {line["why"].split()[1]: (line["level"], line["why"]) for line in lines}


@pytest.mark.parametrize(
    ("served", "seeing"),
    [((), set()), (("resource.k8s.io/v1beta1=true",), {"converted"})],
    ids=["v1-alone", "v1beta1-too"],
)
async def test_an_old_policy_sees_v1_only_if_its_version_is_served(
    own_control_plane: OwnControlPlane,
    tmp_path: Path,
    served: tuple[str, ...],
    seeing: set[str],
) -> None:
    """And is not Exact; the doctor names the others, until v1 is among their versions.

    A policy that sees v1 tells when all that were made before it are in force.
    """
    options = Options(programs=(ETCD, API_SERVER), runtime_config=served)
    plane = own_control_plane(options)
    old = {"converted": "Equivalent", "exact": "Exact"}
    async with plane.client() as kube:
        for name, matching in old.items():
            for made in policy(name, OLD, matching):
                await kube.create(made)
        for made in policy("last", ("*",), "Exact"):
            await kube.create(made)
        await eventually(partial(forbids, kube, "last"), "in force", WITHIN_S)
        assert {name for name in old if await forbids(kube, name)} == seeing
        lines = await examine(plane, tmp_path)
        blind = {name for name, (level, _) in lines.items() if level == "warn"}
        assert blind == old.keys() - seeing
        assert "does not see resourceclaims of v1: spec.match" in lines["exact"][1]
        for name in old:
            found = await kube.get(named(ADMISSION, "ValidatingAdmissionPolicy", name))
            (rule,) = found["spec"]["matchConstraints"]["resourceRules"]
            rule["apiVersions"].append("v1")
            await kube.update(found)
        for name in old:
            await eventually(partial(forbids, kube, name), name, WITHIN_S)
        levels = {level for level, _ in (await examine(plane, tmp_path)).values()}
        assert levels == {"ok"}
