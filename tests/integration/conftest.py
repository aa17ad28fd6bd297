"""A control plane with k8s/base installed; node agents that speak to one; a bus."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from runtime.bus.bus import Bus
from tests.lab.agent_objects import Agents, agents_of
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubectl import Kubectl, KubectlError
from tests.lab.controlplane.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    CONTROLLERS,
    ETCD,
    Options,
)
from tests.lab.controlplane.programs import REQUIRED
from tests.lab.controlplane.server import ControlPlane, running
from tests.lab.manifests import CRD, OVERLAYS, SIMULATED, owned, write_site
from tests.lab.nats_server import LabServer
from tests.lab.personas import ANYWHERE, OTHERS, PERSONAS, SYSTEM, TEAM
from tests.lab.secured_nats import SecuredNats
from tests.lab.seeded_bus import seed

OLDER = OVERLAYS / "kubernetes-1.35"
QUIET = tuple(sorted({*CONTROLLERS} - {"statefulset-controller"}))
"""The services of k8s/base get no pods; of workloads only Jobs do."""
PROBES = 100
"""Each takes a tenth of a second or so."""
PROBED = "policies-hold"
RBAC = "rbac.authorization.k8s.io"


class Installed(NamedTuple):
    """Where Moorings is installed, and kubectl as its admin."""

    control_plane: ControlPlane
    kubectl: Kubectl


@pytest.fixture(scope="session")
def installed(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """k8s/overlays/simulated on a control plane apart: its policies hold for everybody.

    Nothing is scheduled there.
    """
    programs = (ETCD, API_SERVER, CONTROLLER_MANAGER)
    options = Options(programs=programs, controllers=QUIET)
    folder = tmp_path_factory.mktemp("installed")
    with running(control_plane_programs, folder, options) as control_plane:
        kubectl = Kubectl(
            control_plane_programs / "kubectl", control_plane.kubeconfig()
        )
        _install(kubectl, SIMULATED)
        _await_policies(kubectl, "Mutating")
        yield Installed(control_plane, kubectl)


@pytest.fixture(scope="session")
def installed_on_1_35(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """The overlay for releases before 1.36 on an API server that emulates one."""
    options = Options(programs=(ETCD, API_SERVER), emulated_version="1.35")
    folder = tmp_path_factory.mktemp("installed-on-1.35")
    with running(control_plane_programs, folder, options) as control_plane:
        kubectl = Kubectl(
            control_plane_programs / "kubectl", control_plane.kubeconfig()
        )
        site = write_site(folder / "site", OLDER, owned(SIMULATED))
        _install(kubectl, site)
        yield Installed(control_plane, kubectl)


@pytest.fixture
async def admin(installed: Installed) -> AsyncIterator[Kube]:
    """The admin of the cluster where Moorings is installed."""
    async with installed.control_plane.client() as kube:
        yield kube


def _install(kubectl: Kubectl, folder: Path) -> None:
    kubectl("apply", "-f", str(CRD))
    kubectl("apply", "--validate=strict", "-k", str(folder))
    kubectl("wait", "--for=condition=Established", "crd/gangs.moorings.dev")
    _await_policies(kubectl, "Validating")


def _await_policies(kubectl: Kubectl, kind: str) -> None:
    """Return once all policies of a kind hold.

    The API server takes them up in their order, about every second; so one that is
    applied after all others and holds tells of them.
    """
    last = _last_policy(kind)
    kubectl("apply", "-f", "-", given=last)
    probe = [named("v1", "ConfigMap", "probe", "default")]
    create = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    answer = ""
    for _ in range(PROBES):
        try:
            answer = kubectl(*create, given=probe)
        except KubectlError as refused:
            answer = str(refused)
        if PROBED in answer:
            break
    else:
        raise AssertionError(f"{kind}AdmissionPolicies do not hold: {answer}")
    kubectl("delete", "-f", "-", given=last)


def _last_policy(kind: str) -> list[Json]:
    """Make a policy by which a ConfigMap shows that it holds, and its binding."""
    probes = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    labelled = f"Object{{metadata: Object.metadata{{labels: {{'{PROBED}': 'true'}}}}}}"
    does: Json = {
        "Mutating": {
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": labelled},
                }
            ],
        },
        "Validating": {"validations": [{"expression": "false", "message": PROBED}]},
    }
    actions = {"Mutating": {}, "Validating": {"validationActions": ["Deny"]}}
    group = "admissionregistration.k8s.io/v1"
    policy = named(group, f"{kind}AdmissionPolicy", PROBED)
    policy["spec"] = {"matchConstraints": {"resourceRules": [probes]}, **does[kind]}
    binding = named(group, f"{kind}AdmissionPolicyBinding", PROBED)
    binding["spec"] = {"policyName": PROBED, **actions[kind]}
    return [policy, binding]


@pytest.fixture
async def agents(
    control_plane: ControlPlane, kube: Kube, bus: Bus, nats_server: LabServer
) -> Agents:
    """The agent of a Node on the shared control plane."""
    return await agents_of(control_plane, kube, bus, nats_server)


@pytest.fixture(scope="session")
def bound(installed: Installed) -> None:
    """Bind the roles that k8s/base leaves to the cluster's admin."""
    spaces = [named("v1", "Namespace", name) for name in (TEAM, OTHERS)]
    bindings = [_binding(p.user, p.role, p.where) for p in PERSONAS if p.role]
    bindings.append(_binding("operator", "cluster-operator", SYSTEM, "Role"))
    installed.kubectl("apply", "-f", "-", given=[*spaces, *bindings])


def _binding(user: str, role: str, where: str, kind: str = "ClusterRole") -> Json:
    cluster = where == ANYWHERE
    binding = named(
        f"{RBAC}/v1",
        "ClusterRoleBinding" if cluster else "RoleBinding",
        f"{user}-{role}",
        "" if cluster else where,
    )
    binding["roleRef"] = {"apiGroup": RBAC, "kind": kind, "name": role}
    binding["subjects"] = [{"apiGroup": RBAC, "kind": "User", "name": user}]
    return binding


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNats]:
    """Three servers with a message of each row; certificates need openssl."""
    if shutil.which("openssl") is None and os.environ.get(REQUIRED) != "1":
        pytest.skip("openssl is not installed: k8s/secrets.sh needs it")
    nats = SecuredNats(tmp_path_factory.mktemp("seeded"))
    with nats.running():
        asyncio.run(seed(nats))
        yield nats
