"""The gRPC services for kubelet: registration, DRAPlugin and device health.

Both versions of each interface at once; their messages have the same fields. An error
about one claim is an answer about that claim, and never the end of anything else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import grpc
from msgspec import Struct

from contracts.ids import ClaimRef, ClaimUID, DeviceID, DriverName, Namespace
from nodeagent.cdi import qualify
from nodeagent.errors import PrepareError
from nodeagent.health import HealthStatus
from nodeagent.kubelet import metrics
from nodeagent.kubelet.preparer import Preparer
from nodeagent.kubelet.stubs import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    pluginregistration_v1_pb2,
)
from nodeagent.metrics import OPERATIONS, PREPARED
from nodeagent.prepare.prepared import PreparedClaim
from runtime.kube.errors import KubernetesError
from runtime.log import get_logger

log = get_logger(__name__)

REGISTRATION = "pluginregistration.Registration"
DRA_SERVICES = {"v1.DRAPlugin": dra_v1_pb2, "v1beta1.DRAPlugin": dra_v1beta1_pb2}
HEALTH_SERVICES = {
    "v1.DRAResourceHealth": dra_health_v1_pb2,
    "v1alpha1.DRAResourceHealth": dra_health_v1alpha1_pb2,
}
_PREPARE, _UNPREPARE = "PrepareResources", "UnprepareResources"
_DRA_PACKAGE = "k8s.io.kubelet.pkg.apis.dra."
LIMIT_S = 40.0
"""Kubelet waits 45 s for an answer, and tells nobody why there was none."""
_LOOK_S = 0.25
_REPEAT_S = 5.0
_TIMEOUT_S = 30
"""kubelet calls a device Unknown that it has not heard of for so long."""
_STATUS = {
    HealthStatus.UNKNOWN: 0,
    HealthStatus.HEALTHY: 1,
    HealthStatus.UNHEALTHY: 2,
}


class DeviceVerdict(Struct, frozen=True):
    """The health of one device, for kubelet."""

    device: DeviceID
    status: HealthStatus
    message: str = ""


ListVerdicts = Callable[[DriverName], tuple[DeviceVerdict, ...]]


class Plugin:
    """The services of one driver."""

    def __init__(
        self,
        preparer: Preparer,
        endpoint: str,
        list_verdicts: ListVerdicts,
        *,
        limit_s: float = LIMIT_S,
    ) -> None:
        """Serve a driver; each claim is answered within `limit_s`."""
        self.driver = preparer.driver
        self.registered = asyncio.Event()
        """Set once kubelet has taken the driver up."""
        self._preparer = preparer
        self._endpoint = endpoint
        self._list_verdicts = list_verdicts
        self._limit_s = limit_s
        # A rate of what never happened is 0, and not unknown.
        for operation, is_error in product((_PREPARE, _UNPREPARE), ("false", "true")):
            OPERATIONS.labels(self.driver, operation, is_error)

    def make_handlers(self) -> Iterable[grpc.GenericRpcHandler]:
        """Return the handlers of all services, for a server."""
        registration = pluginregistration_v1_pb2
        yield _make_handler(
            REGISTRATION,
            GetInfo=(self._get_info, registration.InfoRequest),
            NotifyRegistrationStatus=(self._notify, registration.RegistrationStatus),
        )
        for service, messages in DRA_SERVICES.items():
            yield _make_handler(
                _DRA_PACKAGE + service,
                NodePrepareResources=(
                    partial(self._prepare, messages),
                    messages.NodePrepareResourcesRequest,
                ),
                NodeUnprepareResources=(
                    partial(self._unprepare, messages),
                    messages.NodeUnprepareResourcesRequest,
                ),
            )
        for service, messages in HEALTH_SERVICES.items():
            yield self._handle_health(service, messages)

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        return pluginregistration_v1_pb2.PluginInfo(
            type="DRAPlugin",
            name=self.driver,
            endpoint=self._endpoint,
            supported_versions=(*DRA_SERVICES, *HEALTH_SERVICES),
        )

    async def _notify(self, request: Any, _context: Any) -> Any:
        if request.plugin_registered:
            log.info("plugin.registered", driver=self.driver)
            self.registered.set()
        else:
            log.error("plugin.refused", driver=self.driver, reason=request.error[:1000])
            self.registered.clear()
        return pluginregistration_v1_pb2.RegistrationStatusResponse()

    async def _prepare(self, messages: Any, request: Any, _context: Any) -> Any:
        async def prepare(claim: ClaimRef) -> Any:
            prepared = await self._preparer.prepare(claim)
            return messages.NodePrepareResourceResponse(
                devices=list(_make_devices(prepared, messages))
            )

        answers = await self._answer_each_claim(
            request, _PREPARE, prepare, messages.NodePrepareResourceResponse
        )
        return messages.NodePrepareResourcesResponse(claims=answers)

    async def _unprepare(self, messages: Any, request: Any, _context: Any) -> Any:
        async def unprepare(claim: ClaimRef) -> Any:
            await self._preparer.unprepare(claim)
            return messages.NodeUnprepareResourceResponse()

        answers = await self._answer_each_claim(
            request,
            _UNPREPARE,
            unprepare,
            messages.NodeUnprepareResourceResponse,
        )
        return messages.NodeUnprepareResourcesResponse(claims=answers)

    async def _answer_each_claim(
        self,
        request: Any,
        operation: str,
        do: Callable[[ClaimRef], Awaitable[Any]],
        make_error: Callable[..., Any],
    ) -> dict[str, Any]:
        """Do something for each claim of a batch, all at once; answers by uid."""

        async def answer(claim: ClaimRef) -> Any:
            started_s, reason = time.perf_counter(), ""
            try:
                async with asyncio.timeout(self._limit_s):
                    return await do(claim)
            except TimeoutError:
                reason = (
                    f"not done within {self._limit_s:g} s: the disk, the device or a"
                    " program that sets it up does not answer"
                )
            except (PrepareError, KubernetesError, OSError) as error:
                # Without words it would be an answer that all is well.
                reason = str(error) or type(error).__name__
            except Exception as error:  # one claim ends no other
                reason = f"{type(error).__name__}: {error}"
                log.error("claim.failed", exc_info=error)  # noqa: TRY400
            finally:
                took_s = time.perf_counter() - started_s
                labels = (self.driver, operation, str(bool(reason)).lower())
                OPERATIONS.labels(*labels).observe(took_s)
            log.warning(
                "claim.refused", operation=operation, uid=claim.uid[:64], reason=reason
            )
            return make_error(error=reason)

        claims = {
            claim.uid: ClaimRef(
                Namespace(claim.namespace), claim.name, ClaimUID(claim.uid)
            )
            for claim in request.claims
        }
        answers = await asyncio.gather(*map(answer, claims.values()))
        prepared = len(self._preparer.checkpoint.claims)
        PREPARED.labels(self.driver).set(prepared)
        return dict(zip(claims, answers, strict=True))

    def _handle_health(
        self, service: str, messages: ModuleType
    ) -> grpc.GenericRpcHandler:
        async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
            async for verdicts in self._follow_verdicts():
                now = int(time.time())
                yield messages.NodeWatchResourcesResponse(
                    devices=[
                        _make_health(verdict, now, messages) for verdict in verdicts
                    ]
                )

        method = "NodeWatchResources"
        handler = grpc.unary_stream_rpc_method_handler(
            metrics.count_stream(service, method, watch),
            request_deserializer=messages.NodeWatchResourcesRequest.FromString,
            response_serializer=_serialize_message,
        )
        return grpc.method_handlers_generic_handler(service, {method: handler})

    async def _follow_verdicts(self) -> AsyncIterator[tuple[DeviceVerdict, ...]]:
        """Yield the verdicts on all devices when they change, and now and then."""
        last: tuple[DeviceVerdict, ...] | None = None
        said_s = 0.0
        while True:
            verdicts = self._list_verdicts(self.driver)
            now_s = time.monotonic()
            if verdicts != last or now_s - said_s >= _REPEAT_S:
                last, said_s = verdicts, now_s
                yield verdicts
            await asyncio.sleep(_LOOK_S)


def _make_handler(service: str, **methods: tuple[metrics.Handler, Any]) -> Any:
    return grpc.method_handlers_generic_handler(
        service,
        {
            name: grpc.unary_unary_rpc_method_handler(
                metrics.count_call(service, name, handler),
                request_deserializer=kind.FromString,
                response_serializer=_serialize_message,
            )
            for name, (handler, kind) in methods.items()
        },
    )


def _serialize_message(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _make_devices(prepared: PreparedClaim, messages: Any) -> Iterable[Any]:
    for device in prepared.devices:
        names = device.cdi_name and [qualify(prepared.driver, device.cdi_name)]
        message = messages.Device(
            request_names=[device.base_request],
            pool_name=device.pool,
            device_name=device.device,
            cdi_device_ids=names or [],
        )
        # v1beta1 has no field for it.
        if device.share_id and messages is dra_v1_pb2:
            message.share_id = device.share_id
        yield message


def _make_health(verdict: DeviceVerdict, now: int, messages: Any) -> Any:
    return messages.DeviceHealth(
        device=messages.DeviceIdentifier(
            pool_name=verdict.device.pool, device_name=verdict.device.device
        ),
        health=_STATUS[verdict.status],
        last_updated_time=now,
        health_check_timeout_seconds=_TIMEOUT_S,
        message=verdict.message,
    )
