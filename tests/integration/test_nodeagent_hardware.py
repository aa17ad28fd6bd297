"""The node agent with hardware of a captured node, on a real bus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts.ids import NodeName
from runtime.bus.bus import Bus
from tests.builders.nvml import RECORDED
from tests.builders.sysfs import lay_out
from tests.lab.nats_server import LabServer
from tests.lab.node_agents import agent_of, health_of, inventory_of
from tests.lab.services import Process, eventually, running

NODE = NodeName("n1")


def agent(url: str, folder: Path) -> Process:
    """Make an agent with the NICs and the recorded GPUs of an HGX node."""
    lay_out("hgx-h100", folder / "sys")
    (folder / "mountinfo").write_text("")
    root = str(folder / "sys")
    sources: list[dict[str, Any]] = [
        {
            "kind": "sysfs",
            "name": "nics",
            "driver": "nic.example.com",
            "root": root,
            "mountinfo": str(folder / "mountinfo"),
            "select": [{"kind": "nic"}],
            "readSeconds": 0.1,
        },
        {
            "kind": "nvml",
            "name": "gpus",
            "driver": "gpu.example.com",
            "root": root,
            "recording": str(RECORDED / "hgx-h100.json"),
        },
    ]
    return agent_of(url, folder, NODE, sources)


async def test_a_gpu_and_its_nic_are_announced_on_one_root(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    """Then a link goes down: the NIC is tainted with its reason, still announced."""
    async with running(agent(nats_server.url, tmp_path)):

        async def is_whole() -> bool:
            found = await inventory_of(bus, NODE)
            pools = found.pools if found else ()
            return [len(pool.devices) for pool in pools] == [8, 8]

        await eventually(is_whole, "8 GPUs and 8 NICs announced")
        found = await inventory_of(bus, NODE)
        assert found is not None
        roots = [
            {
                device.attributes["resource.kubernetes.io/pcieRoot"].string_value
                for device in pool.devices
            }
            for pool in found.pools
        ]
        assert roots[0] == roots[1]
        assert len(roots[0]) == 8

        link = tmp_path / "sys/bus/pci/devices/0000:a3:00.0/net/eth8/operstate"
        link.write_text("down\n")

        async def is_tainted() -> bool:
            health = await health_of(bus, NODE)
            return [
                (item.device.device, item.reason, item.taints[0].effect)
                for item in (health.devices if health else ())
            ] == [("pci-0000-a3-00-0", "LinkDown", "NoSchedule")]

        await eventually(is_tainted, "the NIC is tainted")
        again = await inventory_of(bus, NODE)
        assert again is not None
        assert [pool.generation for pool in again.pools] == [1, 1]
