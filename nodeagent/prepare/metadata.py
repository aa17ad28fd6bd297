"""Metadata of devices for containers: a JSON file for each request (KEP-5304).

The format and the paths in the container are those of Kubernetes' own helper for
drivers, so that whoever reads them needs to know no driver. Pure.

Source: k8s.io/dynamic-resource-allocation v0.37 api/metadata (v1beta1, v1alpha1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.codec import encode, to_builtins
from contracts.device import DeviceAttribute
from contracts.ids import DeviceID
from nodeagent.cdi import Mount
from nodeagent.errors import PrepareError
from nodeagent.prepare.device_status import plan_status
from nodeagent.prepare.prepared import PreparedClaim
from nodeagent.sources.source import DeviceDescription

GROUP = "metadata.resource.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
"""Newest first: readers take the first that they know. They have the same fields."""
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Of a claim that was made of a template: what the pod calls it."""
_FOLDER = "/var/run/kubernetes.io/dra-device-attributes"
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


class DescribedDevice(Struct, frozen=True, kw_only=True):
    """The metadata of one device for its holder."""

    attributes: Mapping[str, DeviceAttribute] = {}
    """As in its ResourceSlice."""
    description: DeviceDescription = DeviceDescription()


class MetadataFile(Struct, frozen=True, kw_only=True):
    """The file of one request."""

    request: str
    """Without the alternative that was chosen; a DNS label."""
    content: bytes
    container_path: str

    def mount(self, host_path: str) -> Mount:
        """Return how the container gets the file that is there on the node."""
        return Mount(
            host_path=host_path,
            container_path=self.container_path,
            options=("ro", "bind"),
        )


def plan_metadata(
    claim: ResourceClaim,
    prepared: PreparedClaim,
    facts: Mapping[DeviceID, DescribedDevice],
) -> tuple[MetadataFile, ...]:
    """Make the file of each request of a claim, in the order of its devices.

    Raises:
        PrepareError: a name that would be part of a path is none.
    """
    pod_claim = claim.metadata.annotations.get(POD_CLAIM_NAME, "")
    folder = (
        f"resourceclaimtemplates/{pod_claim}"
        if pod_claim
        else f"resourceclaims/{prepared.claim.name}"
    )
    if pod_claim and not _LABEL.fullmatch(pod_claim):
        raise PrepareError(
            f"ResourceClaim {prepared.claim}: annotation {POD_CLAIM_NAME}"
            f" {pod_claim[:64]!r} is not a claim of a pod"
        )
    devices = _describe_devices(prepared, facts)
    names = dict.fromkeys(device.base_request for device in prepared.devices)
    files = []
    for name in names:
        if not _LABEL.fullmatch(name):
            raise PrepareError(f"{name[:64]!r} is not a request name")
        chosen = [
            (device.request, described)
            for device, described in zip(prepared.devices, devices, strict=True)
            if device.base_request == name
        ]
        requests = [{"name": chosen[0][0], "devices": [d for _, d in chosen]}]
        files.append(
            MetadataFile(
                request=name,
                content=_write_metadata(prepared, pod_claim, requests),
                container_path=(
                    f"{_FOLDER}/{folder}/{name}/{prepared.driver}-metadata.json"
                ),
            )
        )
    return tuple(files)


def _describe_devices(
    prepared: PreparedClaim, facts: Mapping[DeviceID, DescribedDevice]
) -> list[dict[str, Any]]:
    descriptions = {device: known.description for device, known in facts.items()}
    networks = {
        (entry["pool"], entry["device"]): entry["networkData"]
        for entry in plan_status((prepared,), descriptions).entries
        if entry.get("networkData")
    }
    described: list[dict[str, Any]] = []
    for device_id in prepared.device_ids:
        known = facts.get(device_id, DescribedDevice())
        entry: dict[str, Any] = {
            "driver": device_id.driver,
            "pool": device_id.pool,
            "name": device_id.device,
        }
        if known.attributes:
            entry["attributes"] = to_builtins(dict(known.attributes))
        network = networks.get((device_id.pool, device_id.device))
        if network is not None:
            entry["networkData"] = network
        described.append(entry)
    return described


def _write_metadata(
    prepared: PreparedClaim, pod_claim: str, requests: list[dict[str, Any]]
) -> bytes:
    claim = prepared.claim
    content: dict[str, Any] = {
        "kind": "DeviceMetadata",
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": claim.uid,
            "generation": 1,
        },
        "requests": requests,
    }
    if pod_claim:
        content["podClaimName"] = pod_claim
    return b"".join(
        encode({**content, "apiVersion": f"{GROUP}/{version}"}) + b"\n"
        for version in VERSIONS
    )
