"""Of gangs that were over before the start only their names are kept, for a while."""

from __future__ import annotations

from contracts.ids import ClusterName, GangKey, GangUID, Namespace, SolveID
from contracts.messages import (
    ClaimsReleased,
    GangPending,
    GangReleased,
    ReleaseOutcome,
    SubmitGang,
)
from runtime.past_gangs import PastGangs
from solver.service.past import passes_over
from tests.builders import gang

CLUSTER, TEAM, UID = ClusterName("c"), Namespace("team"), GangUID("u")
RELEASED = GangReleased(
    cluster=CLUSTER,
    namespace=TEAM,
    uid=UID,
    name="g",
    epoch=1,
    outcome=ReleaseOutcome.COMPLETED,
)
PENDING = GangPending(
    cluster=CLUSTER,
    namespace=TEAM,
    uid=UID,
    name="g",
    epoch=1,
    solve=SolveID("s"),
    attempt=0,
)
CONFIRMED = ClaimsReleased(cluster=CLUSTER, namespace=TEAM, uid=UID)


def submission(namespace: str) -> SubmitGang:
    return SubmitGang(cluster=CLUSTER, uid=UID, gang=gang(namespace=namespace))


def test_what_else_is_said_of_a_past_gang_is_passed_over() -> None:
    """A gang of another namespace with its uid is another gang."""
    past = PastGangs()
    assert passes_over(past, RELEASED, is_known=False)

    assert past.has(GangKey(TEAM, UID))
    assert passes_over(past, submission("team"), is_known=False)
    assert passes_over(past, CONFIRMED, is_known=False)
    assert not passes_over(past, submission("others"), is_known=False)


def test_who_ends_while_we_read_is_no_past_gang() -> None:
    """Its record is kept already, and its end is to be applied to it."""
    past = PastGangs()
    assert not passes_over(past, RELEASED, is_known=True)
    assert not passes_over(past, CONFIRMED, is_known=True)


def test_who_is_decided_again_lives() -> None:
    """A decision that came later says so."""
    past = PastGangs()
    passes_over(past, RELEASED, is_known=False)
    assert not passes_over(past, PENDING, is_known=False)
    assert not passes_over(past, submission("team"), is_known=False)


def test_once_all_is_read_whatever_is_said_counts() -> None:
    """Then nothing is passed over, and nothing is kept."""
    past = PastGangs()
    passes_over(past, RELEASED, is_known=False)
    past.close()
    assert not past.has(GangKey(TEAM, UID))
    assert not passes_over(past, RELEASED, is_known=False)
