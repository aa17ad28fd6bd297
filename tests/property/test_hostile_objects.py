"""Whatever objects the API server holds, each reader of the publisher takes the others.

Objects drawn from their types, as extreme as these allow, in pages together with those
of another tenant: handed over as the publisher hands them over, to what plans gangs, to
what the bus is told, and to what writes slices, taint rules and device status.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contracts.codec import to_builtins
from publisher.gangs.context import NextSteps
from publisher.gangs.running.plan_repairs import plan_sweep
from publisher.gangs.view import GroupKey
from publisher.kube.changes import Change, ChangePage
from tests.builders.pods import real_claim, waiting_pod
from tests.draw import hostile
from tests.lab.publisher_readers import KINDS, NAMESPACED, Readers

EVIL, STEADY = "evil", "another-tenant"
THEIRS = GroupKey(STEADY, "steady", lone=True)
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
