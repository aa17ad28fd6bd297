"""What containers may read of their devices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.device import DeviceAttribute
from contracts.ids import DeviceID, DeviceName
from nodeagent.errors import PrepareError
from nodeagent.prepare.metadata import POD_CLAIM_NAME, DescribedDevice, plan_metadata
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice
from nodeagent.sources.source import DeviceDescription, NetworkDescription
from tests.builders.prepared import DRIVER, POOL, allocated, asked

CLAIM = asked("c")
NETWORK = NetworkDescription(interface="eth1", addresses=("10.0.0.5/24", "nonsense"))


def prepared(*devices: tuple[str, str]) -> PreparedClaim:
    """Make a record of devices, each with its request."""
    held = tuple(
        PreparedDevice(request=request, pool=POOL, device=DeviceName(device))
        for request, device in devices
    )
    return PreparedClaim(claim=CLAIM, driver=DRIVER, devices=held, since="")


def claim(pod_claim: str = "") -> ResourceClaim:
    """Make the claim, of a template where a pod has a name for it."""
    made = allocated(CLAIM)
    annotations = {POD_CLAIM_NAME: pod_claim} if pod_claim else {}
    metadata = replace(made.metadata, annotations=annotations)
    return replace(made, metadata=metadata)


def read(content: bytes) -> list[dict[str, Any]]:
    """Read a file: an object a line."""
    return [json.loads(line) for line in content.splitlines()]


def test_a_request_has_one_file_that_says_all_of_its_devices() -> None:
    """Once a version, the newest first."""
    first = DeviceID(DRIVER, POOL, prepared(("gpu", "gpu-0")).device_ids[0].device)
    facts = {
        first: DescribedDevice(
            attributes={"model": DeviceAttribute(string_value="H100")},
            description=DeviceDescription(network=NETWORK),
        )
    }
    record = prepared(("gpu", "gpu-0"), ("nic/fast", "nic-0"), ("gpu", "gpu-1"))
    gpu, nic = plan_metadata(claim(), record, facts)
    newest, older = read(gpu.content)
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    assert older == {**newest, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}
    assert newest["metadata"] == {
        "name": "c",
        "namespace": "default",
        "uid": "uid-c",
        "generation": 1,
    }
    named = {"driver": DRIVER, "pool": POOL}
    assert newest["requests"] == [
        {
            "name": "gpu",
            "devices": [
                {
                    **named,
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "H100"}},
                    "networkData": {"interfaceName": "eth1", "ips": ["10.0.0.5/24"]},
                },
                {**named, "name": "gpu-1"},
            ],
        }
    ]
    assert nic.request == "nic"
    assert read(nic.content)[0]["requests"][0]["name"] == "nic/fast"


def test_where_it_is_follows_from_what_the_pod_says() -> None:
    """By the claim's name, or by the pod's own where a template made the claim."""
    folder = "/var/run/kubernetes.io/dra-device-attributes"
    record = prepared(("gpu", "gpu-0"))
    (own,) = plan_metadata(claim(), record, {})
    assert own.container_path == f"{folder}/resourceclaims/c/gpu/{DRIVER}-metadata.json"
    (made,) = plan_metadata(claim("gpus"), record, {})
    assert made.container_path == (
        f"{folder}/resourceclaimtemplates/gpus/gpu/{DRIVER}-metadata.json"
    )
    assert read(made.content)[0]["podClaimName"] == "gpus"
    assert "podClaimName" not in read(own.content)[0]


@pytest.mark.parametrize("name", ["../../etc", "a/b", "A", "x" * 64, "a\n"])
def test_no_name_leads_elsewhere(name: str) -> None:
    with pytest.raises(PrepareError, match="is not a claim of a pod"):
        plan_metadata(claim(name), prepared(("gpu", "gpu-0")), {})
    with pytest.raises(PrepareError, match="is not a request name"):
        plan_metadata(claim(), prepared((f"!{name}", "gpu-0")), {})
