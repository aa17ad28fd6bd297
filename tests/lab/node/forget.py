"""What the API server still has of a node that is no more."""

from __future__ import annotations

import contextlib

from tests.lab.controlplane.client import RefusedError, named
from tests.lab.controlplane.server import ControlPlane


async def forget(control_plane: ControlPlane, name: str) -> None:
    """Delete it, as far as it is there."""
    async with control_plane.client() as kube:
        for resource in (
            named("v1", "Node", name),
            named("storage.k8s.io/v1", "CSINode", name),
            named("coordination.k8s.io/v1", "Lease", name, "kube-node-lease"),
        ):
            with contextlib.suppress(RefusedError):
                await kube.delete(resource)
