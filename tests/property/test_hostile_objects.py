"""Whatever objects the API server holds, each reader of the publisher takes the others.

Objects drawn from their types, as extreme as these allow, in pages together with those
of another tenant: handed over as the publisher hands them over, to what plans gangs, to
what the bus is told, and to what writes slices, taint rules and device status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.codec import to_builtins
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
from publisher.gangs.running.plan_repairs import plan_sweep
from publisher.gangs.view import GroupKey
from publisher.kube.changes import Change, ChangePage
from publisher.kube.informer import Informer
from publisher.ownership.ownership import Ownership
from publisher.slices.announcement_limits import AnnouncementLimits
from runtime.kube.kinds import RESOURCE_CLAIM, choose_kinds
from tests.builders.decisions import CLUSTER
from tests.builders.plans import NOW
from tests.builders.pods import real_claim, waiting_pod
from tests.draw import hostile

EVIL, STEADY = "evil", "another-tenant"
THEIRS = GroupKey(STEADY, "steady", lone=True)
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
SOME = settings(
    suppress_health_check=list(HealthCheck),
)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Draw an object of a kind that the publisher follows."""
    kind = draw(st.sampled_from(list(KINDS)))
    name = draw(st.sampled_from(["x", "00000-x", "moorings-owned-x"]))
    raw = draw(hostile.objects(kind, name, KINDS[kind]))
    raw["metadata"] |= {"uid": "u", "resourceVersion": "7", "namespace": EVIL}
    if draw(st.booleans()):
        raw["metadata"]["generation"] = 2**63  # cannot be read, whatever else it says
    key = f"{EVIL}/{name}"
    if kind not in NAMESPACED:
        del raw["metadata"]["namespace"]
        key = name
    return Change(kind.__name__, key, raw)


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


def _steady() -> list[Change]:
    """What another tenant has: a pod that waits and its claim."""
    found = []
    pod = waiting_pod("steady", templates=["gpus"])
    pod = replace(pod, metadata=replace(pod.metadata, namespace=STEADY))
    for value in (real_claim("steady-gpus", namespace=STEADY), pod):
        kind = type(value).__name__
        raw = cast("dict[str, Any]", to_builtins(value))
        raw |= {"apiVersion": KINDS[type(value)], "kind": kind}
        found.append(Change(kind, f"{STEADY}/{value.metadata.name}", raw))
    return found


async def _plan_beside(hostile_ones: list[Change]) -> NextSteps:
    """Plan for the other tenant when these objects came in the same pages."""
    readers = Readers()
    steady = _steady()
    for kind in KINDS:
        among = [c for c in (*hostile_ones, *steady) if c.kind == kind.__name__]
        if among:
            page = ChangePage(tuple(among), synced=True)
            await readers.hand_over(kind.__name__, page)
    for group in sorted({*readers.observer.view.groups()} - {THEIRS}):
        if not readers.observer.find_unreadable(group):
            readers.plan(group)
    list(plan_sweep(readers.observer.view))
    return readers.plan(THEIRS)


UNDISTURBED = asyncio.run(_plan_beside([]))


@SOME
@given(st.lists(changes(), min_size=1, max_size=4))
def test_no_object_ends_a_reader_or_changes_what_another_gets(
    hostile_ones: list[Change],
) -> None:
    assert asyncio.run(_plan_beside(hostile_ones)) == UNDISTURBED


def test_the_other_tenant_is_planned_for() -> None:
    """Or nothing would be shown by a plan that stays the same."""
    assert UNDISTURBED.messages
