"""Pods are submitted once their claims are there and free."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.names import GATE
from contracts.pods.membership import KUEUE
from contracts.workload import Pod, PodSchedulingGate
from publisher.gangs.claims import (
    MOST_RESERVED,
)
from publisher.gangs.submit.readiness import find_contention, find_missing
from publisher.gangs.view import View
from tests import builders
from tests.builders.plans import context_about, view_of
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.storage import volume_of

HELD = builders.allocation()


def missing(pod: Pod, *claims: ResourceClaim) -> str:
    """Say what claim a pod still lacks; empty: none."""
    got = find_missing([pod], view_of([pod], claims))
    return "" if got is None else got.message


def contention(pod: Pod, claim: ResourceClaim, *others: Pod, owned: bool = True) -> str:
    """Name why a pod cannot ask for a claim now; empty: it can."""
    view = view_of([pod, *others], [claim])
    got = find_contention(
        [pod], replace(context_about(view, pod), owns=lambda _: owned)
    )
    return "" if got is None else got.reason


def user(name: str, gang: str = "", **fields: Any) -> Pod:
    """Make a pod that uses the claim `c`."""
    return waiting_pod(name, gang=gang, shared={"gpus": "c"}, **fields)


def test_a_claim_that_is_missing_is_named() -> None:
    """As its author calls it, whether it is to be generated or not."""
    pod = waiting_pod("a", templates=["gpus"])
    assert missing(pod) == "pod a: no ResourceClaim gpus (generated) yet"
    assert missing(user("a")) == "pod a: no ResourceClaim c yet"
    assert missing(pod, real_claim("a-gpus")) == ""


def test_a_claim_on_its_way_out_is_not_there() -> None:
    """Another of its name may come."""
    leaving = real_claim("c", deleting=True)
    assert missing(user("a"), leaving) == "pod a: ResourceClaim c is being deleted"


def test_a_claim_that_a_pod_does_not_need_is_not_waited_for() -> None:
    """Kubernetes says so by a status without a name."""
    pod = waiting_pod("a", templates=["gpus"])
    statuses = tuple(
        replace(status, resource_claim_name=None)
        for status in pod.status.resource_claim_statuses
    )
    status = replace(pod.status, resource_claim_statuses=statuses)
    assert missing(replace(pod, status=status)) == ""


def test_one_gang_at_a_time_asks_for_a_free_claim() -> None:
    """The first by name; a pod without a gate goes before all."""
    claim = real_claim("c")
    assert contention(user("b", "beta"), claim, user("a", "alpha")) == "ClaimShared"
    assert contention(user("a", "alpha"), claim, user("b", "beta")) == ""
    first = user("z", "zeta", opened_by="uid-zeta")
    assert contention(user("a", "alpha"), claim, first) == "ClaimShared"
    assert contention(user("a", "alpha"), claim, first, owned=False) == ""


def test_who_is_over_or_runs_asks_for_nothing() -> None:
    """Only pods that still wait are rivals."""
    claim, pod = real_claim("c"), user("b", "beta")
    assert contention(pod, claim, user("a", "alpha", phase="Failed")) == ""
    running = user("a", "alpha", opened_by="uid-alpha", node="node-1")
    assert contention(pod, claim, running) == ""


def test_what_was_given_up_is_waited_for() -> None:
    """The claim still holds devices, for nobody that runs."""
    left = real_claim("c", allocated=HELD, reserved=["a"])
    assert contention(user("a"), left) == "ClaimsHeld"
    other = real_claim("c", allocated=HELD, reserved=["b"])
    assert contention(user("a"), other, user("b", "beta")) == "ClaimShared"


def test_a_claim_has_so_many_users_at_most() -> None:
    """The API server takes no more reservations."""
    names = [f"p{number}" for number in range(MOST_RESERVED)]
    full = real_claim("c", allocated=HELD, reserved=names)
    assert contention(user("a"), full) == "TooManyUsers"
    room = real_claim("c", allocated=HELD, reserved=names[1:])
    assert contention(user("a"), room) == ""


def test_a_volume_that_is_missing_is_named() -> None:
    """kube-scheduler would not look at any node for the pod."""
    pod = waiting_pod("a", volumes=(volume_of("data"),))
    assert missing(pod) == "pod a: no PersistentVolumeClaim data yet"


def test_a_pod_that_kueue_holds_back_asks_for_nothing() -> None:
    """Quota first: what it would get nobody else could use."""
    pod = waiting_pod("a", templates=["gpus"])
    gates = (*pod.spec.scheduling_gates, PodSchedulingGate(name=f"{KUEUE}admission"))
    held = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    assert missing(held, real_claim("a-gpus")) == (
        "pod a: Kueue has not admitted it yet"
    )


@pytest.mark.parametrize("late", [(), ("other.org/late",), ("example.com/staged",)])
def test_a_pod_at_a_gate_of_others_asks_for_nothing(late: tuple[str, ...]) -> None:
    """Unless that gate opens only once devices are decided."""
    waiting = waiting_pod("a")
    gate = PodSchedulingGate(name="example.com/staged")
    gates = (*waiting.spec.scheduling_gates, gate)
    pod = replace(waiting, spec=replace(waiting.spec, scheduling_gates=gates))
    view = View(late_gates=late)
    view.apply_claim("team-a/a-gpus", real_claim("a-gpus"))
    found = find_missing([pod], view)
    if gate.name in late:
        assert found is None
        return
    assert found is not None
    assert found.reason == "OtherGates"
    assert found.message == "pod a waits at example.com/staged"


def test_a_gate_that_nobody_opens_is_told_with_the_one_that_was_meant() -> None:
    """A policy adds ours beside it."""
    waiting = waiting_pod("a")
    gates = (
        PodSchedulingGate(name="moorings.dev/gang"),
        *waiting.spec.scheduling_gates,
    )
    pod = replace(waiting, spec=replace(waiting.spec, scheduling_gates=gates))
    assert missing(pod) == (
        "pod a waits for ever: nobody opens the gate moorings.dev/gang; did you mean "
        f"{GATE}?"
    )
