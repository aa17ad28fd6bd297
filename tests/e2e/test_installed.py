"""k8s/overlays/simulated as installed: its rights, its policies, and k8s/examples.

The services run with the variables that the manifests give them, but for places, and
the publisher with the rights of its service account.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from contracts.names import GANG_SIZE
from contracts.names import OWNED as TAINT
from tests.lab.cluster import is_running, name_of
from tests.lab.controlplane import kubelet, objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named, path_of
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.options import CONTROLLERS, Options
from tests.lab.controlplane.server import ControlPlane, running
from tests.lab.manifests import CRD, K8S, SIMULATED, WITHOUT_KUBELET, environment
from tests.lab.nats_server import LabServer
from tests.lab.services import Process, eventually
from tests.lab.services import running as processes_running

EXAMPLES = K8S / "examples"
NODES = 8
PODS = {"job": 4, "gang-object": 4, "shared-claim": 3, "lone-pod": 1, "admin-access": 1}
"""How many pods each example has."""
OF_THE_BUS = ("BUS_CA_FILE", "BUS_USER", "BUS_PASSWORD_FILE")
SYSTEM = "moorings-system"
OWNED = "gpu.moorings.dev"
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
TOLERATION = {"key": TAINT, "operator": "Exists"}


class Site(NamedTuple):
    """Where Moorings is installed."""

    kube: Kube
    kubectl: Kubectl
    publisher: Process


@pytest.fixture(scope="module")
def control_plane(
    control_plane_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane apart: the policies of k8s/base hold for everybody."""
    controllers = tuple(sorted({*CONTROLLERS} - {"statefulset-controller"}))
    folder = tmp_path_factory.mktemp("installed")
    options = Options(controllers=controllers)
    with running(control_plane_programs, folder, options) as control_plane:
        kubectl = Kubectl(
            control_plane_programs / "kubectl", control_plane.kubeconfig()
        )
        kubectl("apply", "-f", str(CRD))
        kubectl("apply", "--validate=strict", "-k", str(SIMULATED))
        kubectl("wait", "--for=condition=Established", "crd/gangs.moorings.dev")
        yield control_plane


@pytest.fixture
async def site(
    control_plane: ControlPlane, control_plane_programs: Path, tmp_path: Path
) -> AsyncIterator[Site]:
    """Nodes with simulated devices, and the services."""
    kubectl = Kubectl(control_plane_programs / "kubectl", control_plane.kubeconfig())
    nats = LabServer(tmp_path / "nats")
    nats.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(nats.stop)
        kube = await stack.enter_async_context(control_plane.client())
        nodes = [objects.node(f"node-{number}") for number in range(NODES)]
        await stack.enter_async_context(kubelet.running(kube, nodes))
        kubeconfig = tmp_path / "publisher.kubeconfig"
        control_plane.write_kubeconfig(kubeconfig, await _token(kube, "publisher"))
        processes = {
            name: Process(name, tmp_path / f"{name}.log", **variables)
            for name, variables in _variables(nats, kubeconfig).items()
        }
        await stack.enter_async_context(processes_running(*processes.values()))
        yield Site(kube, kubectl, processes["publisher"])


async def _token(kube: Kube, account: str) -> str:
    """Ask for a token as kubelet does for a pod of this account."""
    owner = named("v1", "ServiceAccount", account, SYSTEM)
    await kube.until(owner, lambda _: True)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    answer = await kube.request("POST", path_of(owner, "token"), request)
    token: str = answer["status"]["token"]
    return token


def _variables(nats: LabServer, kubeconfig: Path) -> dict[str, dict[str, str]]:
    """Give each service what k8s/base gives it, but for places and TLS."""
    places = {
        "nodeagent": {
            "NODEAGENT_FLEET": str(SIMULATED / "fleet.yaml"),
            "NODEAGENT_NODE": "",
            "NODEAGENT_HEALTH_ADDRESS": "",
            **WITHOUT_KUBELET,
        },
        "solver": {"SOLVER_REPLICAS": "1", "SOLVER_HEALTH_ADDRESS": ""},
        "publisher": {
            "PUBLISHER_REPLICAS": "1",
            "PUBLISHER_HEALTH_ADDRESS": "",
            "PUBLISHER_KUBECONFIG": str(kubeconfig),
        },
    }
    pod = {
        "metadata_name": "p",
        "metadata_namespace": SYSTEM,
        "metadata_uid": "u",
        "spec_nodeName": "",
    }
    return {
        name: {
            variable: text
            for variable, text in environment(name, **pod).items()
            if not variable.endswith(OF_THE_BUS)
        }
        | {f"{name.upper()}_SERVERS": nats.url}
        | changed
        for name, changed in places.items()
    }


async def test_examples_run_with_the_rights_of_the_manifests(site: Site) -> None:
    """One beside the other; each gets its devices, and no service is refused any."""
    assert {path.name for path in EXAMPLES.iterdir()} == PODS.keys()
    async with asyncio.TaskGroup() as examples:
        for name in PODS:
            examples.create_task(_run(site, name))

    # Whoever lacks a right is named with it.
    assert "system:serviceaccount:" not in site.publisher.log()


async def _run(site: Site, name: str) -> None:
    documents = [
        document
        for path in (EXAMPLES / name).glob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
    ]
    spaces = [d["metadata"]["name"] for d in documents if d["kind"] == "Namespace"]
    async with site.kube.namespace() as made:
        options = [] if spaces else ["-n", made]
        arguments = ["apply", "--validate=strict", *options, "-f", EXAMPLES / name]
        await asyncio.to_thread(lambda: site.kubectl(*map(str, arguments)))
        await _settle(site.kube, spaces[0] if spaces else made, PODS[name])


async def _settle(kube: Kube, space: str, count: int) -> None:
    """Wait until all pods run, each with a claim that is reserved for it."""

    async def run() -> bool:
        pods = await kube.list("v1", "Pod", space)
        return len(pods) == count and all(map(is_running, pods))

    await eventually(run, f"{count} pods of {space} run", 60)
    pods = {name_of(pod) for pod in await kube.list("v1", "Pod", space)}
    claims = await kube.list(objects.RESOURCE, "ResourceClaim", space)
    users = [
        user["name"] for claim in claims for user in claim["status"]["reservedFor"]
    ]

    assert sorted(users) == sorted(pods)


async def test_nobody_is_given_owned_devices_past_moorings(site: Site) -> None:
    """By a claim that looks generated, by a toleration, or by opening the gate."""
    async with site.kube.namespace() as space:
        spec = objects.requests(OWNED)
        claim = objects.claim(space, "looks-generated", spec)
        claim["metadata"]["annotations"] = {POD_CLAIM: "x"}
        tolerant = objects.requests(OWNED, tolerations=[TOLERATION])
        with pytest.raises(RefusedError, match="tolerates the taint"):
            await site.kube.create({**claim, "spec": tolerant})
        await site.kube.create(claim)
        # Of a gang that is never whole: what happens then is kube-scheduler's doing.
        uses: Json = {"claims": {"x": "looks-generated"}}
        asked = objects.pod(space, "p", annotations={GANG_SIZE: "2"}, **uses)
        waiting = await _gated(site.kube, asked)
        opened = await site.kube.patch(waiting, {"spec": {"schedulingGates": None}})
        told = await site.kube.until(opened, _is_unschedulable, 60)
        held = await site.kube.get(claim)

    assert "cannot allocate all claims" in told["status"]["conditions"][0]["message"]
    assert "allocation" not in held.get("status", {})


async def _gated(kube: Kube, pod: Json) -> Json:
    """Create a pod as soon as the policies know its claim."""

    async def is_gated() -> bool:
        tried = await kube.create(pod, dryRun="All")
        return bool(tried["spec"].get("schedulingGates"))

    await eventually(is_gated, "a pod with an owned claim gets the gate")
    return await kube.create(pod)


def _is_unschedulable(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(one.get("reason") == "Unschedulable" for one in conditions)
