"""A control plane with k8s/base installed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import OwnControlPlane
from tests.controlplane import objects
from tests.controlplane.client import Kube
from tests.controlplane.kubectl import Kubectl, KubectlError
from tests.controlplane.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    CONTROLLERS,
    ETCD,
    Options,
)
from tests.controlplane.server import ControlPlane, running
from tests.manifests import BASE, K8S

OLDER = K8S / "overlays" / "kubernetes-1.35"
PROBES = 100
"""Each takes a tenth of a second or so."""
QUIET = tuple(sorted({*CONTROLLERS} - {"statefulset-controller"}))
"""The services of k8s/base get no pods; of workloads only Jobs do."""


class Installed(NamedTuple):
    """Where Moorings is installed, and kubectl as its admin."""

    control_plane: ControlPlane
    kubectl: Kubectl


@pytest.fixture(scope="session")
def installed(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """k8s/base on a control plane apart, because its policies hold for everybody.

    Nothing is scheduled there.
    """
    programs = (ETCD, API_SERVER, CONTROLLER_MANAGER)
    options = Options(programs=programs, controllers=QUIET)
    folder = tmp_path_factory.mktemp("installed")
    with running(control_plane_programs, folder, options) as control_plane:
        yield _install(control_plane, control_plane_programs, BASE)


@pytest.fixture
def installed_on_1_35(
    control_plane_programs: Path, own_control_plane: OwnControlPlane
) -> Installed:
    """The overlay for releases before 1.36 on an API server that emulates one."""
    options = Options(programs=(ETCD, API_SERVER), emulated_version="1.35")
    return _install(own_control_plane(options), control_plane_programs, OLDER)


def _install(control_plane: ControlPlane, programs: Path, folder: Path) -> Installed:
    kubectl = Kubectl(programs / "kubectl", control_plane.kubeconfig())
    kubectl("apply", "--validate=strict", "-k", str(folder))
    kubectl("wait", "--for=condition=Established", "crd/gangs.moorings.dev")
    _await_policies(kubectl)
    return Installed(control_plane, kubectl)


def _await_policies(kubectl: Kubectl) -> None:
    """Return once policies hold: the API server looks for new ones every second."""
    agent = "--as=system:serviceaccount:moorings-system:nodeagent"
    probe = ("create", "--dry-run=server", agent, "--as-group=system:masters")
    claim = objects.claim("default", "probe", objects.requests("none"))
    for _ in range(PROBES):
        try:
            kubectl(*probe, "-f", "-", given=[claim])
        except KubectlError as error:
            if "denied request" in str(error):
                return
            raise
    raise AssertionError("the policies of k8s/base do not hold")


@pytest.fixture
async def admin(installed: Installed) -> AsyncIterator[Kube]:
    """The admin of the cluster where Moorings is installed."""
    async with installed.control_plane.client() as kube:
        yield kube
