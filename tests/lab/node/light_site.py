"""A light node beside a whole Moorings, for all tests of a module."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.cluster import Stack, started
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube
from tests.lab.controlplane.server import ControlPlane
from tests.lab.node import light
from tests.lab.node.light import LightNode
from tests.lab.node.site import Site, write_fleet


class LightSite(NamedTuple):
    """What runs: a node, NATS, solver and publisher."""

    node: LightNode
    stack: Stack
    folder: Path
    driver: str

    @contextlib.asynccontextmanager
    async def of(self, kube: Kube, namespace: str) -> AsyncIterator[Site]:
        """Give it a class and a template of one test's own, without faults."""
        device_class = await kube.create(objects.device_class(namespace, self.driver))
        spec = objects.requests(namespace)
        await kube.create(objects.template(namespace, "one", spec))
        (self.folder / "faults.yaml").unlink(missing_ok=True)
        yield Site(kube=kube, namespace=namespace, **self._asdict())
        await kube.delete(device_class)


@contextlib.contextmanager
def running(
    control_plane: ControlPlane, kubelet_programs: Path, folder: Path, **more: Any
) -> Iterator[LightSite]:
    """Run it while the block runs, the publisher with `more`; agents are the tests'."""
    name = f"light-{secrets.token_hex(4)}"
    driver = f"{name}.example.com"
    write_fleet(folder, name, driver)
    (folder / "admin.kubeconfig").write_text(control_plane.kubeconfig().read_text())
    with (
        started(control_plane, folder, **more) as stack,
        light.running(control_plane, kubelet_programs, name) as node,
    ):
        yield LightSite(node, stack, folder, driver)
