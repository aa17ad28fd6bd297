"""The doctor sees what is really broken, in a real control plane and in a real NATS."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import StreamConfig

from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from moorings.local.process import find_free_port
from runtime.bus.bus import Bus
from tests.builders import devices, pool
from tests.integration.conftest import Installed
from tests.lab.command_line import moorings
from tests.lab.controlplane import fleet, objects
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.nats_server import LabServer
from tests.lab.secured_nats import SecuredNats
from tests.lab.services import CLUSTER, announce, submit
from tests.lab.two_nodes import wanted

Lines = Mapping[str, tuple[str, str]]
"""By check, its level and why."""
DRIVER = "doctor.example.com"


async def examine(
    home: Path, *options: str, server: str = "", code: int | None = None
) -> Lines:
    """Run the doctor; gives its lines, the worst one where a check has several."""
    said = await asyncio.to_thread(
        moorings, "doctor", *options, "-o", "json", home=home, server=server
    )
    assert said.returncode in ({0, 1} if code is None else {code}), said.stderr
    lines: dict[str, tuple[str, str]] = {}
    for line in json.loads(said.stdout)["checks"]:
        assert bool(line["remedy"]) == (line["level"] != "ok"), line
        found = (line["level"], line["why"])
        lines.setdefault(line["check"], found)
        if line["level"] == "fail":
            lines[line["check"]] = found
    return lines


@pytest.fixture
def kubeconfig(installed: Installed) -> str:
    """The option that names the cluster where Moorings is installed."""
    return f"--kubeconfig={installed.control_plane.kubeconfig()}"


@pytest.fixture
async def site(admin: Kube) -> AsyncIterator[Fleet]:
    """Two nodes with devices, where nothing is scheduled."""
    async with admin.namespace() as namespace, fleet.running(admin, namespace) as site:
        yield site


async def test_an_installation_has_what_it_needs(
    kubeconfig: str, tmp_path: Path
) -> None:
    """Versions, gates and rights; no pod of it runs here, and it says so."""
    lines = await examine(tmp_path, kubeconfig, code=1)
    levels = {check: level for check, (level, _) in lines.items()}
    assert levels == {
        "kubernetes.release": "ok",
        "kubernetes.served": "ok",
        "kubernetes.gang-kind": "ok",
        "kubernetes.gates": "ok",
        "kubernetes.admission": "ok",
        "controller-manager.limits": "warn",
        "scheduler.plugins": "warn",
        "rights.publisher": "ok",
        "rights.nodeagent": "ok",
        "rights.authcallout": "ok",
        "rights.solver": "ok",
        "rights.nats": "ok",
        "rights.you": "ok",
        "parts.ready": "fail",
        "parts.versions": "ok",
        "parts.images": "warn",
        "parts.kubelets": "ok",
        "parts.publisher": "fail",
        "clock.api-server": "ok",
        "nodes.driver": "ok",
        "pools.cluster": "ok",
    }
    assert "moorings-device-admin" in lines["rights.you"][1]


async def test_a_binding_that_was_deleted_is_named_with_its_rights(
    installed: Installed, kubeconfig: str, tmp_path: Path
) -> None:
    binding = "clusterrolebinding/moorings-publisher"
    kept = json.loads(installed.kubectl("get", binding, "-o", "json"))
    installed.kubectl("delete", binding)
    try:
        level, why = (await examine(tmp_path, kubeconfig))["rights.publisher"]
    finally:
        kept["metadata"] = {"name": kept["metadata"]["name"]}
        installed.kubectl("apply", "-f", "-", given=[kept])
    assert level == "fail"
    assert "create events.events.k8s.io" in why


async def test_slow_limits_and_a_plugin_that_is_off_are_seen(
    admin: Kube, kubeconfig: str, tmp_path: Path
) -> None:
    """In a Pod as kubeadm makes it, and in a file as an admin has it."""
    command = ["kube-controller-manager", "--kube-api-qps=20", "--controllers=*"]
    manager = objects.pod(
        "kube-system", "manager", labels={"component": "kube-controller-manager"}
    )
    manager["spec"]["containers"][0]["command"] = command
    del manager["spec"]["resourceClaims"]
    file = tmp_path / "scheduler.json"
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}}
    config = {"kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    file.write_text(json.dumps(config))
    manager = await admin.create(manager)
    try:
        lines = await examine(tmp_path, kubeconfig, f"--scheduler-config={file}")
    finally:
        await admin.delete(manager)
    assert lines["controller-manager.limits"][0] == "warn"
    assert "20 requests a second, 30 at once" in lines["controller-manager.limits"][1]
    assert lines["scheduler.plugins"][0] == "fail"
    assert "DynamicResources" in lines["scheduler.plugins"][1]


async def test_pools_that_collide_and_claims_without_a_driver_are_seen(
    site: Fleet, kubeconfig: str, tmp_path: Path
) -> None:
    """Two nodes publish one pool; a claim's devices were withdrawn from its node."""
    for node in site.nodes:
        (made,) = objects.pool(DRIVER, "one", {"nodeName": node, "devices": [dev()]})
        made["metadata"]["name"] = f"{node}-collides"
        await site.publish(made)
    claim = await site.claim("held")
    pod = await site.create_pod("holder", claim)
    await site.allocate(claim, site.a, pods=(pod,))
    slices = await site.kube.list("resource.k8s.io/v1", "ResourceSlice")
    await site.kube.delete(
        next(s for s in slices if s["spec"]["pool"]["name"] == site.a)
    )
    lines = await examine(tmp_path, kubeconfig)
    assert lines["pools.cluster"][0] == "fail"
    assert f"{DRIVER}/one (of nodes {site.a}, {site.b})" in lines["pools.cluster"][1]
    assert lines["nodes.driver"][0] == "fail"
    assert f"{site.driver} on {site.a}" in lines["nodes.driver"][1]


def dev() -> Json:
    return {"name": "dev-0"}


async def test_who_may_read_little_is_told_what_is_not_known(
    installed: Installed, tmp_path: Path
) -> None:
    """Nothing that could not be looked at is ok."""
    control_plane = installed.control_plane
    installed.kubectl("create", "serviceaccount", "nobody", "-n", "default")
    token = installed.kubectl("create", "token", "nobody", "-n", "default").strip()
    path = tmp_path / "nobody.kubeconfig"
    control_plane.write_kubeconfig(path, token)
    lines = await examine(tmp_path, f"--kubeconfig={path}")
    for check in ("rights", "nodes.driver", "pools.cluster", "parts.workloads"):
        level, why = lines[check]
        assert (level, "missing permission" in why) == ("warn", True), check
    assert lines["kubernetes.served"][0] == "ok"
    assert "no role of Moorings" in lines["rights.you"][1]


async def test_a_cluster_and_a_bus_that_do_not_answer_are_findings(
    installed: Installed, nats_server: LabServer, tmp_path: Path
) -> None:
    text = installed.control_plane.kubeconfig().read_text()
    gone = tmp_path / "gone.kubeconfig"
    address = f"https://127.0.0.1:{find_free_port()}"
    gone.write_text(text.replace(installed.control_plane.url, address))
    nats_server.kill()
    lines = await examine(
        tmp_path, f"--kubeconfig={gone}", server=nats_server.url, code=1
    )
    assert {check: level for check, (level, _) in lines.items()} == {
        "kubernetes.reachable": "fail",
        "nats.reachable": "fail",
    }
    assert address in lines["kubernetes.reachable"][1]
    assert nats_server.url in lines["nats.reachable"][1]


async def announce_without_rest(bus: Bus) -> None:
    """Say something new of a node again and again."""
    for number in itertools.count():
        pools = (pool(name="hasty", generation=number),)
        node = NodeName("hasty")
        await announce(bus, DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools))


async def test_streams_that_are_gone_or_changed_and_pools_announced_twice_are_seen(
    bus: Bus, nats_server: LabServer, tmp_path: Path
) -> None:
    monitor = f"--monitor=http://127.0.0.1:{nats_server.monitor_port}"
    before = await examine(tmp_path, monitor, server=nats_server.url, code=1)
    assert {check: level for check, (level, _) in before.items()} == {
        "nats.version": "ok",
        "nats.replicas": "warn",
        "nats.copies": "ok",
        "nats.settings": "ok",
        "nats.room": "ok",
        "nats.health": "ok",
        "nats.sync": "warn",
        "parts.solver-on-bus": "fail",
        "parts.decisions": "ok",
        "clock.nats": "ok",
        "nodes.agent-on-bus": "warn",
        "pools.bus": "ok",
    }
    assert before["nodes.agent-on-bus"][1].startswith("nothing is announced")
    await submit(bus, wanted(1, 1))
    waits = (await examine(tmp_path, server=nats_server.url))["parts.decisions"]
    assert waits[0] == "ok"
    assert "waits for its first decision for" in waits[1]
    for node in map(NodeName, "ab"):
        pools = (pool(*devices(2), name="shared"),)
        await announce(bus, DevicesAnnounced(cluster=CLUSTER, node=node, pools=pools))
    admin = await nats.connect(nats_server.url)
    try:
        stream = admin.jetstream()
        await stream.delete_stream("SUBMIT")
        config: StreamConfig = (await stream.stream_info("CMD")).config
        config.max_msgs_per_subject = 1
        await stream.update_stream(config)
    finally:
        await admin.close()
    hasty = asyncio.create_task(announce_without_rest(bus))
    after = await examine(tmp_path, monitor, server=nats_server.url, code=1)
    hasty.cancel()
    assert "hasty (" in after["nodes.pace"][1]
    assert after["nats.streams"] == ("fail", "SUBMIT: there is no such stream")
    assert after["nats.settings"][0] == "warn"
    assert "CMD (max_msgs_per_subject)" in after["nats.settings"][1]
    assert after["pools.bus"][0] == "fail"
    assert "(by a, b)" in after["pools.bus"][1]
    assert "agents are silent" in after["nodes.agent-on-bus"][1]


async def test_a_server_that_is_lost_is_named_while_two_go_on(tmp_path: Path) -> None:
    """By a viewer, over TLS; what a platform may not look at is said."""
    secured = SecuredNats(tmp_path / "nats")
    with secured.running():
        async with Bus.open(secured.settings("solver")) as bus:
            await bus.wait_connected(30)
            await bus.ensure_streams()
        whole = await examine_as("viewer", secured, tmp_path)
        assert whole["nats.replicas"] == ("ok", "3 copies of each stream")
        assert whole["nats.copies"][0] == "ok"
        assert whole["nats.sync"] == ("ok", "acknowledged messages are on disk")
        assert "nats.streams" not in whole
        limited = await examine_as("platform", secured, tmp_path)
        assert limited["nats.streams"][0] == "warn"
        assert "BLOB" in limited["nats.streams"][1]
        secured.kill(2)
        async with asyncio.timeout(60):
            while True:
                lines = await examine_as("viewer", secured, tmp_path)
                if lines["nats.copies"][0] == "warn":
                    break
        assert "nats-2" in lines["nats.copies"][1]


async def examine_as(user: str, secured: SecuredNats, home: Path) -> Lines:
    settings = secured.settings(user)
    variables: dict[str, Any] = {
        "MOORINGS_BUS_CA_FILE": settings.ca_file,
        "MOORINGS_BUS_USER": settings.user,
        "MOORINGS_BUS_PASSWORD_FILE": settings.password_file,
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setitem(os.environ, name, value)
        return await examine(
            home,
            f"--monitor=https://127.0.0.1:{secured.monitor_port}",
            server=settings.servers[0],
        )
