"""Keeps the extended resources of one Node as its agent is configured.

Looks every minute, because a kubelet that lost its state sets extended resources to
zero when it starts. What the agent offered before and is not told to any more it
withdraws; whose it was stands in the Node itself. What others offer stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from contracts.ids import NodeName
from contracts.names import AGENT_MANAGER
from nodeagent.advertise.plan import (
    AdvertisementPlan,
    list_written,
    plan_advertisement,
)
from nodeagent.errors import AdvertisementError
from runtime.kube.api import Json, KubernetesApi
from runtime.kube.errors import ApiError
from runtime.kube.kinds import NODE
from runtime.log import get_logger
from runtime.retry import Outage
from runtime.waits import first_of

LOOK_S = 60.0

log = get_logger(__name__)


class Advertiser:
    """The extended resources that one Node is to have."""

    def __init__(
        self,
        api: KubernetesApi,
        node: NodeName,
        resources: Mapping[str, int],
        look_s: float = LOOK_S,
    ) -> None:
        self._api = api
        self._node = node
        self._resources = resources
        self._look_s = look_s
        self._refused = ""
        """The last refusal, which is said once."""
        self._outage = Outage(f"advertise resources of Node {node}")

    async def advertise(self, stop: asyncio.Event) -> None:
        """Look and write until `stop`; what was written stays."""
        while not stop.is_set():
            try:
                await self._write_resources()
            except AdvertisementError as error:
                self._note_refusal(error)
            except ApiError as error:
                await self._outage.wait(error, stop)
                continue
            else:
                self._refused = ""
            self._outage.note_success()
            await first_of(stop, within_s=self._look_s)

    async def _write_resources(self) -> None:
        node = await self._api.get(NODE, self._node)
        plan = plan_advertisement(
            node,
            self._resources,
            list_written(node, AGENT_MANAGER) - self._resources.keys(),
            manager=AGENT_MANAGER,
        )
        if not plan.operations:
            return
        await write_advertisement(self._api, node, plan)
        log.info("resources.advertised", before=plan.before, after=plan.after)

    def _note_refusal(self, error: AdvertisementError) -> None:
        if str(error) != self._refused:
            self._refused = str(error)
            log.warning("resources.refused", node=error.node, reason=str(error))


async def write_advertisement(
    api: KubernetesApi, node: Json, plan: AdvertisementPlan
) -> None:
    """Write a plan on the very Node that it was made for.

    Raises:
        ConflictError: the Node has changed; read it again and plan again.
        ApiError: as its tree says.
    """
    meta = node["metadata"]
    await api.patch(
        NODE,
        meta["name"],
        plan.operations,
        subresource="status",
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
    )
