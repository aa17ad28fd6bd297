"""The node agent with a GPU that is really there; skipped where none is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.ids import DeviceID, DriverName, NodeName
from nodeagent.cdi import find_violations
from nodeagent.sources.nvml.library import open_library
from nodeagent.sources.nvml.record import record
from nodeagent.sources.nvml.recording import Player, read_recording
from nodeagent.sources.nvml.source import NvmlSource, open_nvml
from nodeagent.sources.nvml.spec import NvmlSpec
from runtime.bus.bus import Bus
from tests.lab.cuda_program import NUMBER
from tests.lab.nats_server import LabServer
from tests.lab.node_agents import agent_of, health_of, inventory_of
from tests.lab.services import eventually, running

pytestmark = pytest.mark.skipif(
    not Path("/dev/nvidiactl").exists(), reason="no GPU of NVIDIA's is here"
)

NODE = NodeName("n1")
DRIVER = DriverName("gpu.example.com")
PROGRAM = Path(__file__).parents[1] / "lab" / "cuda_program.py"
RUNTIMES_OWN = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""What runtimes put in every container (OCI runtime specification, default devices)."""
IN_CONTAINER = """
set -e
folder="$1"; shift
mount -t tmpfs -o nodev tmpfs "$folder"
while [ "$1" != -- ]; do
    mkdir -p "$folder/$(dirname "${1#/dev/}")"
    touch "$folder/${1#/dev/}"
    mount --bind "$1" "$folder/${1#/dev/}"
    shift
done
shift
mount --rbind "$folder" /dev
exec "$@"
"""
"""Runs a program with no other device nodes than the named ones."""


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[NvmlSource]:
    spec = NvmlSpec(name="gpus", driver=DRIVER)
    async with open_nvml(spec, NODE, tmp_path) as source:
        yield source


def run_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ask_smi(*fields: str) -> list[list[str]]:
    """Ask nvidia-smi, NVIDIA's own reader of NVML, for a row of each GPU."""
    told = subprocess.run(
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [line.split(", ") for line in told.stdout.splitlines()]


async def test_gpus_are_what_nvidia_smi_says(source: NvmlSource) -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("nvidia-smi is not here")
    (pool,) = (await source.discover(NODE)).pools
    told = ask_smi("uuid", "name", "driver_version", "compute_cap", "memory.total")
    rows = {uuid: row for uuid, *row in told}
    offered = [d for d in pool.devices if d.attributes["uuid"].string_value in rows]
    assert offered, "no GPU is offered whole"
    for device in offered:
        attributes = device.attributes
        mebibytes = device.capacity["memory"].value.nano // 10**9 // 2**20
        assert rows[attributes["uuid"].string_value or ""] == [
            attributes["productName"].string_value,
            attributes["driverVersion"].version_value,
            (attributes["cudaComputeCapability"].version_value or "")[: -len(".0")],
            f"{mebibytes} MiB",
        ]


async def test_a_record_plays_what_it_was_made_of(source: NvmlSource) -> None:
    text = record(open_library(), "this machine").decode()
    player = Player(read_recording(text), sleep=lambda _: None)
    spec = NvmlSpec(name="gpus", driver=DRIVER)
    played = NvmlSource(spec, NODE, lambda: player)
    try:
        assert await played.discover(NODE) == await source.discover(NODE)
        assert (await played.read(1.0)).symptoms == (await source.read(1.0)).symptoms
    finally:
        played.close()


async def test_a_gpu_that_is_well_has_no_symptoms(source: NvmlSource) -> None:
    await source.discover(NODE)
    assert not (await source.read(1.0)).symptoms


async def test_a_program_runs_with_the_nodes_of_its_device_alone(
    source: NvmlSource, tmp_path: Path
) -> None:
    """The control has the same container without them: CUDA finds no device."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    (pool,) = (await source.discover(NODE)).pools
    edits = await source.edits(DeviceID(DRIVER, pool.name, pool.devices[0].name))
    assert not list(find_violations(edits))
    folder = tmp_path / "dev"
    folder.mkdir()

    def run_in_container(*nodes: str) -> subprocess.CompletedProcess[str]:
        nodes = (*RUNTIMES_OWN, *nodes)
        script = ["sh", "-c", IN_CONTAINER, "sh", str(folder), *nodes, "--"]
        return subprocess.run(
            ["unshare", "--mount", *script, sys.executable, str(PROGRAM)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    without = run_in_container()
    assert without.returncode == 1, without
    assert "cuInit: error" in without.stderr
    ran = run_in_container(*(node.path for node in edits.device_nodes))
    assert (ran.returncode, ran.stdout.strip()) == (0, str(NUMBER)), ran


async def test_a_faulty_program_is_heard_and_is_no_fault_of_the_gpu(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """The driver tells its XID within moments; the GPU stays as it was."""
    written = [{"kind": "nvml", "name": "gpus", "driver": DRIVER}]
    agent = agent_of(nats_server.url, tmp_path, NODE, written)
    async with running(agent):

        async def is_announced() -> bool:
            found = await inventory_of(bus, NODE)
            return found is not None and any(pool.devices for pool in found.pools)

        await eventually(is_announced, "a GPU is announced")
        before = await inventory_of(bus, NODE)
        assert run_program().stdout.strip() == str(NUMBER)
        faulty = run_program("--faulty")
        assert "cuCtxSynchronize: error" in faulty.stderr

        def events() -> list[dict[str, object]]:
            lines = map(json.loads, agent.log().splitlines())
            return [line for line in lines if line["event"] == "gpu.event"]

        async def is_heard() -> bool:
            return bool(events())

        await eventually(is_heard, "an XID is heard")
        assert not any(event["counts"] for event in events())
        health = await health_of(bus, NODE)
        assert health is None or not health.devices
        assert await inventory_of(bus, NODE) == before
        # And the GPU still does what it is asked to.
        assert run_program().stdout.strip() == str(NUMBER)
