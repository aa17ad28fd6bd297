"""What kubelet gets on the sockets of a driver, whatever it says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2
from hypothesis import given
from hypothesis import strategies as st

from contracts.claim import ResourceClaim
from contracts.ids import DeviceID, DeviceName
from moorings.local.process import find_free_port
from nodeagent.health import HealthStatus
from nodeagent.kubelet.liveness import serve_liveness
from nodeagent.kubelet.plugin import DeviceVerdict, Plugin
from nodeagent.kubelet.server import SocketError, serve_plugin
from nodeagent.kubelet.sockets import SocketPaths, find_paths
from nodeagent.kubelet.stubs import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    pluginregistration_v1_pb2,
)
from nodeagent.sources.source import PartitionHooks
from tests.builders.prepared import (
    DRIVER,
    POOL,
    Bench,
    allocated,
    asked,
    make_preparer,
    result,
)

A, B = asked("a"), asked("b")
CLAIMS: dict[str, ResourceClaim] = {
    "a": allocated(A, result("gpu-0", request="gpu/big", share_id="s-1")),
    "b": allocated(B, result("gpu-9")),
}
DRA = "/k8s.io.kubelet.pkg.apis.dra."
SICK = DeviceVerdict(
    DeviceID(DRIVER, POOL, DeviceName("gpu-0")), HealthStatus.UNHEALTHY, "XID 79"
)


class Kubelet:
    """The other end of the sockets."""

    def __init__(self, paths: SocketPaths) -> None:
        self.paths = paths
        self.verdicts: list[DeviceVerdict] = [SICK]

    async def call(self, method: str, request: Any, answer: Any) -> Any:
        """Call a method on the socket of its service."""
        is_registration = method.startswith("/pluginregistration")
        path = self.paths.registration if is_registration else self.paths.plugin
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            call = channel.unary_unary(
                method,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )
            return await call(request, timeout=20)

    async def prepare(self, messages: Any, *claims: Any, undo: bool = False) -> Any:
        """Prepare or unprepare claims by one version of the interface."""
        version = messages.__name__.rpartition("dra_")[2].removesuffix("_pb2")
        name = "NodeUnprepareResources" if undo else "NodePrepareResources"
        request = getattr(messages, f"{name}Request")(
            claims=[
                messages.Claim(namespace=c.namespace, uid=c.uid, name=c.name)
                for c in claims
            ]
        )
        method = f"{DRA}{version}.DRAPlugin/{name}"
        return await self.call(method, request, getattr(messages, f"{name}Response"))


@pytest.fixture
async def kubelet() -> AsyncIterator[Kubelet]:
    """A driver that is served, seen from kubelet."""
    with TemporaryDirectory(dir="/tmp") as scratch:
        preparer = make_preparer(Path(scratch), Bench("gpu-0"), CLAIMS)
        paths = find_paths(Path(scratch), DRIVER, "uid-1")
        seen = Kubelet(paths)
        plugin = Plugin(preparer, str(paths.plugin), lambda _: tuple(seen.verdicts))
        async with serve_plugin(plugin, paths):
            yield seen
        assert not paths.registration.exists()
        assert not paths.plugin.exists()


async def test_kubelet_learns_who_we_are(kubelet: Kubelet) -> None:
    """With all versions, and where the plugin's own socket is; readable by root."""
    registration = pluginregistration_v1_pb2
    info = await kubelet.call(
        "/pluginregistration.Registration/GetInfo",
        registration.InfoRequest(),
        registration.PluginInfo,
    )
    assert (info.type, info.name) == ("DRAPlugin", DRIVER)
    assert info.endpoint == str(kubelet.paths.plugin)
    assert list(info.supported_versions) == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]
    assert kubelet.paths.registration.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("messages", [dra_v1_pb2, dra_v1beta1_pb2])
async def test_a_batch_is_answered_claim_by_claim(
    kubelet: Kubelet, messages: Any
) -> None:
    """What is wrong with one of them is said of that one."""
    answer = await kubelet.prepare(messages, A, B, asked("c", "../../x"))
    (device,) = answer.claims[A.uid].devices
    assert list(device.request_names) == ["gpu"]
    assert (device.pool_name, device.device_name) == (POOL, "gpu-0")
    (name,) = device.cdi_device_ids
    assert name == f"k8s.{DRIVER}/claim=uid-a-0-gpu-0"
    if messages is dra_v1_pb2:
        assert device.share_id == "s-1"
    assert "does not have device" in answer.claims[B.uid].error
    assert "is no uid of a claim" in answer.claims["../../x"].error
    undone = await kubelet.prepare(messages, A, B, undo=True)
    assert {uid: claim.error for uid, claim in undone.claims.items()} == {
        A.uid: "",
        B.uid: "",
    }


@pytest.mark.parametrize("messages", [dra_health_v1_pb2, dra_health_v1alpha1_pb2])
async def test_health_is_told_at_once_and_when_it_changes(
    kubelet: Kubelet, messages: Any
) -> None:
    """The whole list each time, with the words of the verdict."""
    version = messages.__name__.rpartition("dra_health_")[2].removesuffix("_pb2")
    async with grpc.aio.insecure_channel(f"unix:{kubelet.paths.plugin}") as channel:
        stream = channel.unary_stream(
            f"/{version}.DRAResourceHealth/NodeWatchResources",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.NodeWatchResourcesResponse.FromString,
        )(messages.NodeWatchResourcesRequest(), timeout=20)
        (first,) = (await stream.read()).devices
        assert (first.device.device_name, first.message) == ("gpu-0", "XID 79")
        assert first.health == messages.UNHEALTHY
        kubelet.verdicts.clear()
        assert list((await stream.read()).devices) == []


async def test_liveness_asks_the_sockets_themselves(kubelet: Kubelet) -> None:
    """And is not given for a socket that nobody answers."""
    address = f"127.0.0.1:{find_free_port()}"
    paths = {DRIVER: kubelet.paths}

    async def status() -> int:
        async with grpc.aio.insecure_channel(address) as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            answer = await check(health_pb2.HealthCheckRequest(), timeout=20)
            return int(answer.status)

    async with serve_liveness(address, paths, "NODEAGENT_LIVENESS_ADDRESS"):
        assert await status() == health_pb2.HealthCheckResponse.SERVING
        kubelet.paths.registration.unlink()
        assert await status() == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_sockets_of_killed_instances_are_removed_and_those_of_others_not(
    kubelet: Kubelet,
) -> None:
    """A path that nobody answers delays what kubelet does next."""
    folder = kubelet.paths.registration.parents[1]
    dead = find_paths(folder, DRIVER, "uid-0")
    server = await asyncio.start_unix_server(lambda *_: None, dead.registration)
    server.close()
    await server.wait_closed()
    assert dead.registration.exists()
    paths = find_paths(folder, DRIVER, "uid-2")
    plugin = Plugin(make_preparer(folder, Bench(), {}), str(paths.plugin), lambda _: ())
    async with serve_plugin(plugin, paths):
        assert not dead.registration.exists()
        assert kubelet.paths.registration.exists()
        assert paths.registration.exists()


async def test_what_does_not_answer_in_time_is_told_of_each_claim() -> None:
    """An answer without devices and without words would let containers start."""
    with TemporaryDirectory(dir="/tmp") as scratch:
        slow = PartitionHooks(set_up=("/bin/sleep", "60"), limit_s=60)
        source = Bench("gpu-0", hooks=slow)
        preparer = make_preparer(Path(scratch), source, CLAIMS)
        plugin = Plugin(preparer, "", lambda _: (), limit_s=0.2)
        request = dra_v1_pb2.NodePrepareResourcesRequest(
            claims=[
                dra_v1_pb2.Claim(namespace=c.namespace, uid=c.uid, name=c.name)
                for c in (A, B)
            ]
        )
        answer = await plugin._prepare(dra_v1_pb2, request, None)
        assert answer.claims[A.uid].error.startswith("not done within 0.2 s")
        assert "does not have device" in answer.claims[B.uid].error


async def test_an_agent_that_ends_leaves_the_sockets_of_its_successor() -> None:
    """They have the same paths where agents have no instances."""
    with TemporaryDirectory(dir="/tmp") as scratch:
        folder = Path(scratch)
        paths = find_paths(folder, DRIVER, "")
        preparer = make_preparer(folder, Bench("gpu-0"), CLAIMS)
        plugin = Plugin(preparer, str(paths.plugin), lambda _: ())
        async with contextlib.AsyncExitStack() as newer:
            async with serve_plugin(plugin, paths):
                await newer.enter_async_context(serve_plugin(plugin, paths))
            kubelet = Kubelet(paths)
            answer = await kubelet.call(
                "/pluginregistration.Registration/GetInfo",
                pluginregistration_v1_pb2.InfoRequest(),
                pluginregistration_v1_pb2.PluginInfo,
            )
            assert answer.name == DRIVER
            prepared = await kubelet.prepare(dra_v1_pb2, A)
            assert prepared.claims[A.uid].error == ""
        assert not paths.registration.exists()
        assert not paths.plugin.exists()


async def test_a_path_that_no_socket_can_have_is_named(tmp_path: Path) -> None:
    """Before anything is opened."""
    paths = find_paths(tmp_path / ("x" * 100), DRIVER, "")
    plugin = Plugin(make_preparer(tmp_path, Bench(), {}), "", lambda _: ())
    with pytest.raises(SocketError, match="over 107 bytes"):
        async with serve_plugin(plugin, paths):
            raise AssertionError


texts = st.text(max_size=80) | st.sampled_from(("../x", "a", "uid-a", "default", ""))


@given(names=st.lists(st.tuples(texts, texts, texts), max_size=5), undo=st.booleans())
def test_whatever_kubelet_says_is_answered_and_nothing_is_written_elsewhere(
    names: list[tuple[str, str, str]], undo: bool
) -> None:
    """Every claim that was named has an answer of its own."""
    with TemporaryDirectory(dir="/tmp") as scratch:
        folder = Path(scratch)
        preparer = make_preparer(folder / "in", Bench("gpu-0"), CLAIMS)
        plugin = Plugin(preparer, "", lambda _: ())
        kind = "Unprepare" if undo else "Prepare"
        request = getattr(dra_v1_pb2, f"Node{kind}ResourcesRequest")(
            claims=[
                dra_v1_pb2.Claim(namespace=namespace, uid=uid, name=name)
                for namespace, uid, name in names
            ]
        )
        method = plugin._unprepare if undo else plugin._prepare
        answer = asyncio.run(method(dra_v1_pb2, request, None))
        assert set(answer.claims) == {uid for _, uid, _ in names}
        written = {path.name for path in folder.rglob("*") if path.is_file()}
        assert written <= {"lock", "uid-a.json", "gpu.example.com-claim_uid-a.json"}
