"""`grpc.health.v1`: alive is who answers kubelet on the very sockets that it calls.

Asked by kubelet's gRPC probe. Each question goes through both sockets of each driver:
`GetInfo` on the one, and preparing no claims at all on the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from contracts.ids import DriverName
from nodeagent.kubelet.plugin import REGISTRATION
from nodeagent.kubelet.sockets import SocketPaths
from nodeagent.kubelet.stubs import dra_v1_pb2, pluginregistration_v1_pb2
from runtime.errors import ConfigError
from runtime.log import get_logger

log = get_logger(__name__)

_CALL_S = 2.0
_SERVICES = frozenset({"", "liveness"})
_PREPARE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc] # has no types
    def __init__(self, paths_by_driver: Mapping[DriverName, SocketPaths]) -> None:
        self._paths_by_driver = paths_by_driver

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 # gRPC's name
        """Answer whether all drivers answer."""
        if request.service not in _SERVICES:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        status = health_pb2.HealthCheckResponse.SERVING
        for driver, paths in self._paths_by_driver.items():
            try:
                await _call_sockets(driver, paths)
            except grpc.RpcError as error:
                log.warning("plugin.silent", driver=driver, reason=str(error)[:1000])
                status = health_pb2.HealthCheckResponse.NOT_SERVING
        return health_pb2.HealthCheckResponse(status=status)


async def _call_sockets(driver: DriverName, paths: SocketPaths) -> None:
    info = await _call_socket(
        paths,
        is_registration=True,
        method=f"/{REGISTRATION}/GetInfo",
        request=pluginregistration_v1_pb2.InfoRequest(),
        answer=pluginregistration_v1_pb2.PluginInfo,
    )
    if info.name != driver:
        raise grpc.RpcError(f"{paths.registration} is of {info.name!r}")
    await _call_socket(
        paths,
        is_registration=False,
        method=_PREPARE,
        request=dra_v1_pb2.NodePrepareResourcesRequest(),
        answer=dra_v1_pb2.NodePrepareResourcesResponse,
    )


async def _call_socket(
    paths: SocketPaths, *, is_registration: bool, method: str, request: Any, answer: Any
) -> Any:
    path = paths.registration if is_registration else paths.plugin
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call = channel.unary_unary(
            method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return await call(request, timeout=_CALL_S)


@contextlib.asynccontextmanager
async def serve_liveness(
    address: str, paths_by_driver: Mapping[DriverName, SocketPaths], variable: str
) -> AsyncIterator[None]:
    """Answer gRPC probes while the block runs; an empty address: nothing is opened.

    Raises:
        ConfigError: the address, of that variable, cannot be had.
    """
    if not address:
        yield
        return
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(_Health(paths_by_driver), server)
    try:
        server.add_insecure_port(address)
        await server.start()
    except RuntimeError as error:
        raise ConfigError(variable, f"{address}: {error}") from error
    try:
        yield
    finally:
        await server.stop(None)
