"""Asks kubelet which devices the containers of this node hold (PodResources, v1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from contracts.ids import (
    ClaimRef,
    DeviceID,
    DeviceName,
    DriverName,
    Namespace,
    PoolName,
)
from nodeagent.drift import ClaimWanted, DeviceInUse
from nodeagent.errors import PodResourcesError
from nodeagent.kubelet.stubs import podresources_v1_pb2 as api

SOCKET = "pod-resources/kubelet.sock"
"""In kubelet's folder."""
_METHOD = "/v1.PodResourcesLister/List"
_ANSWER_S = 10.0
_MAX_BYTES = 16 << 20
"""As kubelet's own limit for what it sends."""


class PodResources:
    """A connection to kubelet's socket; made anew by itself when kubelet restarts."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._list = channel.unary_unary(
            _METHOD,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, kubelet_folder: Path) -> AsyncIterator[PodResources]:
        """Prepare the connection; nothing is sent before the first call."""
        options = [
            ("grpc.max_receive_message_length", _MAX_BYTES),
            ("grpc.default_authority", "localhost"),
        ]
        address = f"unix:{(kubelet_folder / SOCKET).absolute()}"
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            yield cls(channel)

    async def list_held(
        self, drivers: Collection[DriverName]
    ) -> tuple[frozenset[DeviceInUse], frozenset[ClaimWanted]]:
        """List the devices of some drivers that containers hold, and all claims.

        Raises:
            PodResourcesError: kubelet does not answer.
        """
        try:
            answer = await self._list(api.ListPodResourcesRequest(), timeout=_ANSWER_S)
        except grpc.aio.AioRpcError as error:
            raise PodResourcesError(error.details() or error.code().name) from error
        resources = list(_read_resources(answer))
        in_use = (use for _, uses in resources for use in uses)
        wanted = frozenset(named for named, _ in resources)
        return frozenset(use for use in in_use if use.device.driver in drivers), wanted


def _read_resources(
    answer: api.ListPodResourcesResponse,
) -> Iterator[tuple[ClaimWanted, list[DeviceInUse]]]:
    for pod in answer.pod_resources:
        name = f"{pod.namespace}/{pod.name}"
        for container in pod.containers:
            for resource in container.dynamic_resources:
                namespace = Namespace(resource.claim_namespace)
                claim = ClaimRef(namespace, resource.claim_name)
                uses = [
                    DeviceInUse(
                        pod=name,
                        claim=claim,
                        device=DeviceID(
                            DriverName(held.driver_name),
                            PoolName(held.pool_name),
                            DeviceName(held.device_name),
                        ),
                    )
                    for held in resource.claim_resources
                ]
                yield ClaimWanted(name, claim), uses
