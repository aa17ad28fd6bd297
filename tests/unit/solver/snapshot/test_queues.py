"""Queues as they are known, and what is held of their quotas."""

from __future__ import annotations

from contracts.messages import ObjectGone, QuotaHeld
from solver.snapshot.events import ANYTHING, quota_event
from solver.snapshot.queues import with_held
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders.problems import CLUSTER
from tests.builders.queues import cluster_queue, cohort, local_queue, with_queues

NESTED = (
    cluster_queue("a", {}, cohort="small"),
    cohort("small", {}, parent="large"),
    cluster_queue("lone", {}),
)


def test_cohorts_are_followed_up_to_the_root() -> None:
    """A cohort need not exist; one that is its own ancestor has no root."""
    queues = with_queues(Snapshot(), *NESTED).queues
    assert queues.list_cohorts("a") == ("small", "large")
    assert queues.list_cohorts("lone") == ()
    assert queues.quota_event("a") == quota_event("cohort/large")
    assert queues.quota_event("lone") == quota_event("lone")
    circle = cohort("large", {}, parent="small")
    assert with_queues(Snapshot(), *NESTED, circle).queues.list_cohorts("a") is None


def test_a_changed_queue_concerns_everybody_and_the_same_one_nobody() -> None:
    """Status is not looked at."""
    snapshot = with_queues(Snapshot(), *NESTED)
    assert ANYTHING in snapshot.grown
    said = {**NESTED[0], "status": {"pendingWorkloads": 4}}
    again = with_queues(snapshot.without_grown(), said)
    assert again.queues is snapshot.queues
    assert not again.grown


def test_what_is_gone_is_forgotten() -> None:
    """By kind and key."""
    snapshot = with_queues(Snapshot(), *NESTED, local_queue("team", "a"))
    gone = ObjectGone(cluster=CLUSTER, kind="LocalQueue", key="team/default")
    assert snapshot.queues.local_queues.get("team/default") is not None
    assert apply(snapshot, gone).queues.local_queues.get("team/default") is None


def test_what_gangs_hold_adds_up_and_is_given_back() -> None:
    """By flavor and resource."""
    one = QuotaHeld(cluster_queue="a", flavors={"gpu": "f"}, amounts={"gpu": 3})
    held = with_held(with_held(Snapshot().held, one, 1), one, 1)
    assert held.get("a") == {("f", "gpu"): 6}
    held = with_held(with_held(held, one, -1), one, -1)
    assert held.get("a") is None
    assert with_held(held, None, 1) is held
