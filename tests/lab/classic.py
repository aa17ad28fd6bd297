"""Moorings as the controller of classic DRA beside a real 1.30 or 1.31.

No kubelet is needed: pods are bound, and tests play their status.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from contracts.names import GANG, GANG_SIZE
from tests.lab.cluster import READY_S
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, named
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.server import ControlPlane
from tests.lab.manifests import BASE, K8S
from tests.lab.nats_server import LabServer
from tests.lab.publisher_rights import SYSTEM, VALID
from tests.lab.services import Process, solver

COMPONENT = K8S / "components" / "classic"
CONTROLLER = "resource-driver.example.com"
"""As whom we allocate: in v1alpha2 the driver, too."""
VERSIONS = {"1.30": "v1alpha2", "1.31": "v1alpha3"}


def api_version(release: str) -> str:
    """Give the version of resource.k8s.io that a release serves."""
    return f"resource.k8s.io/{VERSIONS[release]}"


def controller_kubeconfig(control_plane: ControlPlane) -> Path:
    """Write the kubeconfig of the publisher's account, with the component's rights."""
    path = control_plane.folder / "publisher.kubeconfig"
    program = control_plane.binaries / "kubectl"
    admin = Kubectl(program, control_plane.kubeconfig())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
    rights = [
        yaml.safe_load(file.read_text())
        for file in (*BASE.glob("publisher-*.yaml"), *COMPONENT.glob("moorings-*.yaml"))
    ]
    kinds = {
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
    }
    rights = [each for each in rights if each["kind"] in kinds]
    admin("apply", "-f", "-", given=[namespace, *rights])
    account = ("publisher", "-n", SYSTEM)
    token = admin("create", "token", *account, f"--duration={VALID}")
    control_plane.write_kubeconfig(path, token.strip())
    return path


@contextmanager
def controller(
    control_plane: ControlPlane, folder: Path, **more: str
) -> Iterator[tuple[str, Mapping[str, Process]]]:
    """Run NATS, a solver and the controller; it leads when the block begins.

    Gives the URL of NATS, and the processes by name.
    """
    nats = LabServer(folder / "nats")
    nats.start()
    variables = {
        "PUBLISHER_SERVERS": nats.url,
        "PUBLISHER_KUBECONFIG": str(controller_kubeconfig(control_plane)),
        "PUBLISHER_NAME": "classic",
        "PUBLISHER_LEASE_S": "2",
        "PUBLISHER_CLASSIC_CONTROLLERS": CONTROLLER,
        **more,
    }
    publisher = Process("publisher", folder / "publisher.log", **variables)
    processes = {"solver": solver(nats.url, folder), "publisher": publisher}
    try:
        for process in processes.values():
            process.start()
        deadline = time.monotonic() + READY_S
        while '"lease.acquired"' not in publisher.log():
            assert time.monotonic() < deadline, publisher.log()
            time.sleep(0.05)
        yield nats.url, processes
    finally:
        for process in processes.values():
            process.close()
        nats.stop()


class Site:
    """Nodes, devices and a class of one driver, in the version of a release."""

    def __init__(self, kube: Kube, release: str, namespace: str) -> None:
        self.kube = kube
        self.release = release
        self.namespace = namespace
        self.device_class = f"{namespace}.example.com"

    @property
    def is_v1alpha2(self) -> bool:
        """Whether claims name their class, and classes their driver."""
        return self.release == "1.30"

    async def create(self, kind: str, name: str, **fields: Any) -> Json:
        """Create an object of resource.k8s.io in the test's namespace, or in none."""
        cluster_wide = kind in {"DeviceClass", "ResourceClass", "ResourceSlice"}
        namespace = "" if cluster_wide else self.namespace
        head = named(api_version(self.release), kind, name, namespace)
        labels = fields.pop("labels", {})
        head["metadata"]["labels"] = labels
        return await self.kube.create({**head, **fields})

    async def add_class(self) -> None:
        """Create the class of the driver's devices on this test's nodes."""
        if self.is_v1alpha2:
            await self.create("ResourceClass", self.device_class, driverName=CONTROLLER)
            return
        expression = (
            f'device.driver == "{CONTROLLER}" && '
            f'device.attributes["{CONTROLLER}"].site == "{self.namespace}"'
        )
        selectors = [{"cel": {"expression": expression}}]
        await self.create(
            "DeviceClass", self.device_class, spec={"selectors": selectors}
        )

    async def add_node(
        self, name: str, devices: int, labels: Mapping[str, str] = {}
    ) -> str:
        """Create a node with so many equal devices; gives its name."""
        node = f"{self.namespace}-{name}"
        site = {"site": self.namespace, **labels}
        await self.kube.create(objects.node(node, site))
        if not devices:
            return node
        names = [f"dev-{number}" for number in range(devices)]
        if self.is_v1alpha2:
            attributes = [{"name": "site", "string": self.namespace}]
            instances = [{"name": each, "attributes": attributes} for each in names]
            fields: Json = {
                "nodeName": node,
                "driverName": CONTROLLER,
                "namedResources": {"instances": instances},
            }
        else:
            basic = {"attributes": {"site": {"string": self.namespace}}}
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {
                "driver": CONTROLLER,
                "nodeName": node,
                "pool": pool,
                "devices": [{"name": each, "basic": basic} for each in names],
            }
            fields = {"spec": spec}
        await self.create("ResourceSlice", f"{node}-slice", **fields)
        return node

    async def add_parameters(self, count: int) -> Json:
        """Give the spec of a claim for so many devices of this test's nodes."""
        if not self.is_v1alpha2:
            request = {
                "name": "r",
                "deviceClassName": self.device_class,
                "count": count,
            }
            return {"devices": {"requests": [request]}, "controller": CONTROLLER}
        selector = f'attributes.string["site"] == "{self.namespace}"'
        requests = [{"namedResources": {"selector": selector}}] * count
        driver = {"driverName": CONTROLLER, "requests": requests}
        name = f"devices-{count}-{secrets.token_hex(2)}"
        await self.create(
            "ResourceClaimParameters", name, driverRequests=[driver], shareable=True
        )
        reference = {
            "apiGroup": "resource.k8s.io",
            "kind": "ResourceClaimParameters",
            "name": name,
        }
        return {"resourceClassName": self.device_class, "parametersRef": reference}

    async def add_template(self, name: str, count: int) -> None:
        """Create a template of claims for so many devices."""
        spec = await self.add_parameters(count)
        await self.create("ResourceClaimTemplate", name, spec={"spec": spec})

    async def add_pod(
        self,
        name: str,
        *,
        templates: Mapping[str, str] = {},
        claims: Mapping[str, str] = {},
        gang: str = "",
        size: int = 0,
        only: str = "",
        annotations: Mapping[str, str] = {},
        **fields: Any,
    ) -> Json:
        """Create a pod that may be on this test's nodes, or on one of them only."""
        selected = (
            {"kubernetes.io/hostname": only} if only else {"site": self.namespace}
        )
        pod = objects.pod(
            self.namespace,
            name,
            claims=claims,
            templates=templates,
            node_selector={} if "nodeName" in fields else selected,
            labels={GANG: gang} if gang else {},
            annotations={**annotations, **({GANG_SIZE: str(size)} if size else {})},
            **fields,
        )
        return await self.kube.create(self.dated(pod))

    def dated(self, pod: Json) -> Json:
        """Name the claims of a pod as the release does."""
        if self.is_v1alpha2:
            pod["spec"]["resourceClaims"] = [
                {"name": claim.pop("name"), "source": claim}
                for claim in pod["spec"]["resourceClaims"]
            ]
        return pod

    def pod(self, name: str) -> Json:
        """Name a pod."""
        return named("v1", "Pod", name, self.namespace)

    def claim(self, name: str) -> Json:
        """Name a claim."""
        return named(api_version(self.release), "ResourceClaim", name, self.namespace)

    async def claims(self) -> list[Json]:
        """Read all claims of the namespace."""
        version = api_version(self.release)
        return await self.kube.list(version, "ResourceClaim", self.namespace)


def is_bound(pod: Json) -> bool:
    """Whether the pod is on a node."""
    return bool(pod["spec"].get("nodeName"))


def is_allocated(claim: Json) -> bool:
    """Whether a claim holds devices."""
    return bool(claim.get("status", {}).get("allocation"))


def devices_of(claims: Iterable[Json]) -> list[str]:
    """Name the devices that claims hold, by whatever version says them."""
    found: list[str] = []
    for claim in claims:
        allocation = claim.get("status", {}).get("allocation") or {}
        results = allocation.get("devices", {}).get("results", [])
        for handle in allocation.get("resourceHandles", []):
            results += json.loads(handle["data"])["devices"]["results"]
        found += [f"{each['pool']}/{each['device']}" for each in results]
    return sorted(found)
