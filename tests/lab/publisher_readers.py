"""What a publisher reads objects of Kubernetes with, and no way to write any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.gang import Gang
from contracts.names import API_VERSION
from contracts.pods.membership import WorkloadAPI
from contracts.workload import Node, Pod
from publisher.cluster.device_publisher import DevicePublisher
from publisher.cluster.observer import Observer
from publisher.cluster.state_publisher import StatePublisher
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.view import GroupKey
from publisher.kube.changes import ChangePage
from publisher.kube.informer import Informer
from publisher.ownership.ownership import Ownership
from publisher.slices.announcement_limits import AnnouncementLimits
from runtime.kube.kinds import RESOURCE_CLAIM, choose_kinds
from tests.builders.decisions import CLUSTER
from tests.builders.plans import NOW

RESOURCE = "resource.k8s.io/v1"
NAMESPACED: dict[type, str] = {
    Pod: "v1",
    Gang: API_VERSION,
    ResourceClaim: RESOURCE,
    ResourceClaimTemplate: RESOURCE,
}
KINDS = NAMESPACED | {
    Node: "v1",
    ResourceSlice: RESOURCE,
    DeviceClass: RESOURCE,
    DeviceTaintRule: RESOURCE,
}
PLURALS = (
    "resourceslices",
    "deviceclasses",
    "resourceclaims",
    "resourceclaimtemplates",
    "devicetaintrules",
)
SERVED = choose_kinds({"v1": PLURALS})


class Readers:
    """What a publisher reads objects with, and no way to write any."""

    def __init__(self) -> None:
        self.observer = Observer(
            RESOURCE_CLAIM, self._ignore, tuple(WorkloadAPI), now=lambda: NOW
        )
        nothing = cast("Any", None)
        assert SERVED is not None
        devices = DevicePublisher(
            CLUSTER,
            nothing,
            api=nothing,
            served=SERVED,
            claims=self.observer.view,
            ownership=Ownership.of(("gpu.example.com",), (), ()),
            now=lambda: NOW,
            limits=AnnouncementLimits(worst_effect="NoExecute"),
            evictions_percent=100.0,
        )
        state = StatePublisher(CLUSTER, nothing)
        self._listeners = [
            (self.observer.kinds, self.observer.take),
            (devices.kinds, devices.take),
            (tuple(kind.__name__ for kind in KINDS), state.take),
        ]

    async def _ignore(self, _: object) -> None: ...

    async def hand_over(self, kind: str, page: ChangePage) -> None:
        """Hand a page over as the publisher does."""

        async def pages(_: asyncio.Event) -> AsyncIterator[ChangePage]:
            yield page

        (watch,) = Informer({kind: pages}, *self._listeners).tasks().values()
        await watch(asyncio.Event())

    def plan(self, group: GroupKey) -> NextSteps:
        """Plan for a group of which the bus knows nothing."""
        view = self.observer.view
        return plan_gang(
            PlanContext(
                cluster=CLUSTER,
                group=group,
                view=view,
                records=(),
                owns=lambda _: True,
                now=NOW,
            )
        )
