"""What is said of publishers that are not there."""

from __future__ import annotations

from datetime import UTC, datetime

from contracts.liveness import PublisherLeads
from moorings.views.silence import describe_no_solver, describe_silence
from moorings.views.times import show_time
from tests.builders.decisions import CLUSTER
from tests.builders.doctor import solver_seen

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_a_solver_is_missed_some_time_after_its_lease() -> None:
    now_s = NOW.timestamp()
    assert describe_no_solver(CLUSTER, solver_seen(now_s - 40), NOW) == ""
    said = describe_no_solver(CLUSTER, solver_seen(now_s - 60), NOW)
    assert said.startswith("no solver leads in cluster ")
    assert "s-1 was last heard from at" in said
    assert "ever led" in describe_no_solver(CLUSTER, None, NOW)


def leads(at: str) -> PublisherLeads:
    return PublisherLeads(cluster=CLUSTER, holder="one", at=at)


def test_a_publisher_that_speaks_is_there() -> None:
    assert describe_silence(leads("2026-11-20T11:59:00Z"), NOW) == ""


def test_nobody_is_missed_where_there_never_was_one() -> None:
    """As without a cluster."""
    assert describe_silence(None, NOW) == ""


def test_a_silent_publisher_is_missed_and_since_when() -> None:
    said = describe_silence(leads("2026-11-20T11:00:00Z"), NOW)
    assert said.startswith(
        "no publisher leads in cluster east: one was last heard from at "
        f"{show_time('2026-11-20T11:00:00Z')}. Until one runs again, pods wait"
    )


def test_a_time_that_cannot_be_read_is_no_sign_of_life() -> None:
    assert describe_silence(leads("soon"), NOW) != ""
