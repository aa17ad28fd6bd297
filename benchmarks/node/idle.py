"""What does a node agent cost that has nothing to do?

    python -m benchmarks.node.idle [--size full] [--json FILE]

A real agent, its defaults, beside a nats-server on loopback, with 8 devices: simulated
ones, NICs of a captured /sys, and GPUs of a record of NVML, and with the sockets of a
kubelet plugin (gRPC; no kubelet and no API server are there). Nothing happens to them;
memory and CPU are read after it has settled. Beside it Python alone, and Python with
the libraries of the bus and the log. `MiB` is what /proc calls VmRSS, `own MiB` what no
other process shares (anonymous memory), `% of a core` over the time that is measured:
10 s, `--size full` 60 s. To reach: under 60 MiB and under 1 %.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import Row, arguments, cpu_seconds, report
from moorings.local.nats_server import open_local_nats
from moorings.local.process import ChildProcess
from tests.builders.nvml import RECORDED
from tests.builders.sysfs import lay_out

DEVICES = 8
SETTLE_S = 5.0
MEASURE_S = {"small": 10.0, "full": 60.0}
START_LIMIT_S = 60.0
_ANNOUNCED = re.compile(r'"?event"?[ :=]+"?nodes\.announced|nodes\.announced')
_BARE = {
    "Python alone": "",
    "Python with its event loop": "import asyncio",
    "Python with the libraries of bus and log": (
        "import asyncio, nats, msgspec, runtime.log, stamina, yaml, zstandard"
    ),
}

_AGENT = """
import runpy
from pathlib import Path
from runtime.kube.service_account import ServiceAccount
ServiceAccount.read.__func__.__defaults__ = (Path({folder!r}),)
runpy.run_module("nodeagent", run_name="__main__")
"""
"""The agent as it is, with its service account's files in a folder of ours."""


def memory_mib(pid: int) -> tuple[float, float]:
    """Read the memory of a process: all that is resident, and what is its own."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(VmRSS|RssAnon):\s+(\d+) kB$", text, re.MULTILINE))
    return int(found["VmRSS"]) / 1024, int(found["RssAnon"]) / 1024


def write_sources(folder: Path) -> dict[str, Path]:
    """Write a sources file of each kind."""
    tree = lay_out("hgx-h100", folder / "sys")
    (folder / "mountinfo").write_text("")
    fleet = {
        "apiVersion": "moorings.dev/v1alpha1",
        "kind": "Fleet",
        "name": "idle",
        "nodes": [
            {
                "shape": "node",
                "count": 1,
                "name": "node",
                "devices": [
                    {
                        "driver": "gpu.example.com",
                        "count": DEVICES,
                        "name": "gpu-{index}",
                    }
                ],
            }
        ],
    }
    (folder / "fleet.yaml").write_text(json.dumps(fleet))
    common = {"name": "devices", "driver": "devices.example.com"}
    sources: dict[str, dict[str, Any]] = {
        "simulated": {"kind": "simulated", "name": "devices", "fleet": "fleet.yaml"},
        "sysfs": {
            **common,
            "kind": "sysfs",
            "root": str(tree),
            "mountinfo": str(folder / "mountinfo"),
            "select": [{"kind": "nic"}],
        },
        "nvml": {
            **common,
            "kind": "nvml",
            "root": str(tree),
            "recording": str(RECORDED / "hgx-h100.json"),
        },
    }
    files = {}
    for name, source in sources.items():
        written = {
            "apiVersion": "moorings.dev/v1alpha1",
            "kind": "Sources",
            "sources": [source],
        }
        files[name] = folder / f"{name}.yaml"
        files[name].write_text(json.dumps(written))
    return files


def write_authority(folder: Path) -> dict[str, str]:
    """Make the one authority that is trusted, as the manifests have it."""
    file = folder / "ca.crt"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=cluster"
    command = f"{command} -keyout {folder / 'ca.key'} -out {file}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": str(folder / "none")}


def write_kubelet(folder: Path) -> dict[str, str]:
    """Make kubelet's folders, and a token for an API server that is not there."""
    for name in ("plugins", "plugins_registry"):
        (folder / "kubelet" / name).mkdir(parents=True)
    (folder / "token").write_text("token")
    return {
        "NODEAGENT_KUBELET_FOLDER": str(folder / "kubelet"),
        "NODEAGENT_CDI_FOLDER": str(folder / "cdi"),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "1",
    }


async def measure(process: ChildProcess, name: str, for_s: float) -> Row:
    """Measure a process that has settled."""
    assert process.pid is not None
    await asyncio.sleep(SETTLE_S)
    before_s, began_s = cpu_seconds(process.pid), time.perf_counter()
    await asyncio.sleep(for_s)
    used_s = cpu_seconds(process.pid) - before_s
    took_s = time.perf_counter() - began_s
    assert not process.has_ended, process.log.read_text()
    all_mib, own_mib = memory_mib(process.pid)
    return {
        "process": name,
        "MiB": all_mib,
        "own MiB": own_mib,
        "% of a core": 100 * used_s / took_s,
    }


async def wait_announced(process: ChildProcess) -> None:
    """Wait until an agent has said what it has."""
    ends_s = time.monotonic() + START_LIMIT_S
    while not _ANNOUNCED.search(process.log.read_text()):
        assert not process.has_ended, process.log.read_text()
        assert time.monotonic() < ends_s, process.log.read_text()
        await asyncio.sleep(0.1)


async def measure_bare(folder: Path, for_s: float) -> list[Row]:
    """Measure Python without us."""
    rows = []
    for name, imports in _BARE.items():
        process = ChildProcess(folder / f"{name}.log")
        process.start(
            [sys.executable, "-c", f"{imports}\nimport time; time.sleep(1e4)"]
        )
        try:
            rows.append(await measure(process, name, for_s / 10))
        finally:
            process.stop()
    return rows


async def measure_agents(
    folder: Path, files: Mapping[str, Path], for_s: float
) -> list[Row]:
    """Measure an agent of each source, one at a time."""
    rows = []
    authority = write_authority(folder)
    async with open_local_nats(folder / "nats") as url:
        cases: list[tuple[str, Path, Mapping[str, str]]] = [
            (name, file, {}) for name, file in files.items()
        ]
        kubelet = write_kubelet(folder)
        cases.append(("sysfs, kubelet plugin", files["sysfs"], kubelet))
        for number, (name, file, more) in enumerate(cases):
            process = ChildProcess(folder / f"agent-{number}.log")
            process.start(
                [sys.executable, "-c", _AGENT.format(folder=str(folder))],
                {
                    "NODEAGENT_SERVERS": url,
                    "NODEAGENT_CLUSTER": f"idle-{number}",
                    "NODEAGENT_NODE": "node",
                    "NODEAGENT_SOURCES": str(file),
                    **authority,
                    **more,
                },
            )
            try:
                await wait_announced(process)
                title = f"agent, {DEVICES} devices, {name}"
                rows.append(await measure(process, title, for_s))
            finally:
                process.stop()
    return rows


async def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    for_s = MEASURE_S[options.size]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = await measure_bare(folder, for_s)
        rows += await measure_agents(folder, write_sources(folder), for_s)
    report("node idle", options, rows)


if __name__ == "__main__":
    asyncio.run(main())
