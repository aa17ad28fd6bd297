"""Kubernetes' own reader of device metadata reads what containers get of us."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from contracts.device import DeviceAttribute
from contracts.ids import DeviceName
from nodeagent.prepare.metadata import POD_CLAIM_NAME, DescribedDevice, plan_metadata
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice
from nodeagent.sources.source import DeviceDescription, NetworkDescription
from tests.builders.prepared import DRIVER, POOL, allocated, asked
from tests.lab.go_program import NO_GO, REQUIRED, built

READER = Path(__file__).parents[1] / "oracles" / "devicemetadata"


@pytest.fixture(scope="module")
def reader() -> Path:
    """The program; CI requires it, elsewhere Go may lack."""
    program = built(READER, ".")
    if program is None and os.environ.get(REQUIRED) == "1":
        pytest.fail(NO_GO)
    if program is None:
        pytest.skip(NO_GO)
    return program


def test_what_we_write_is_what_kubernetes_reads(reader: Path) -> None:
    """All that is in it, in the newest version."""
    of = asked("c")
    device = PreparedDevice(request="nic/fast", pool=POOL, device=DeviceName("nic-0"))
    record = PreparedClaim(claim=of, driver=DRIVER, devices=(device,), since="")
    (device_id,) = record.device_ids
    network = NetworkDescription(
        interface="eth1",
        hardware_address="52:54:00:12:34:56",
        addresses=("10.0.0.5/24",),
    )
    facts = {
        device_id: DescribedDevice(
            attributes={
                "model": DeviceAttribute(string_value="fast"),
                "speed": DeviceAttribute(int_value=400),
                "up": DeviceAttribute(bool_value=True),
                "firmware": DeviceAttribute(version_value="1.2.3"),
            },
            description=DeviceDescription(network=network),
        )
    }
    claim = allocated(of)
    claim.metadata.annotations[POD_CLAIM_NAME] = "nics"
    (file,) = plan_metadata(claim, record, facts)
    read = subprocess.run([reader], input=file.content, check=True, capture_output=True)
    written = json.loads(file.content.splitlines()[0])
    found = json.loads(read.stdout)
    for field in ("podClaimName", "requests"):
        assert found[field] == written[field]
    for field in ("name", "namespace", "uid", "generation"):
        assert found["metadata"][field] == written["metadata"][field]
