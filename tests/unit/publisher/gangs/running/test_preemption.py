"""A gang goes for another as its decision says, in time, and never in parts."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contracts.ids import GangKey, GangUID, Namespace
from contracts.lifecycle import PREEMPTED, PUBLISHER, is_preemption
from contracts.messages import CancelGang, GangAllocated, GatesOpened, Preemption
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.running.preemption import goes_for, plan_preemption, runs_for
from publisher.gangs.running.recreation import plan_removal
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import context_of, gang_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod

FOR = Preemption(
    preemptor=GangKey(Namespace("team-b"), GangUID("high")),
    name="high",
    until="2099-01-01T00:00:00Z",
    victims=(GangKey(Namespace(builders.NAMESPACE), GangUID(builders.UID)),),
)
DECISION = gang_allocated()
ADDRESS: dict[str, Any] = {
    "cluster": DECISION.cluster,
    "namespace": DECISION.namespace,
    "uid": DECISION.uid,
}
OPENED = GatesOpened(**ADDRESS, attempt=1, state=1)
PODS = tuple(
    waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        opened_by=builders.UID,
        owner="job",
        size=2,
    )
    for name in "ab"
)


def told(until: str = FOR.until) -> GangAllocated:
    return replace(DECISION, preempted=replace(FOR, until=until))


def test_its_end_is_announced_before_any_pod_is_evicted() -> None:
    record = record_of(submission_of(PODS), told(), OPENED)
    plan = plan_gang(context_of(view_of(PODS), record))
    assert not plan.messages
    (end,) = plan.preemptions
    command = end.message
    assert command.recreate
    assert is_preemption(command)
    assert command.reason.startswith(f"{PUBLISHER}{PREEMPTED}: for team-b/high, of hi")
    assert end.said == FOR
    assert not plan.evictions
    # Once that is said all of its pods are evicted, by whoever leads.
    after = plan_removal(gang_of(record.apply(command, 1), *PODS))
    assert after is not None
    assert after.evictions == PODS
    assert not after.removals
    assert after.reports[0].reason == PREEMPTED


def test_it_stays_without_a_word_or_once_its_time_is_over() -> None:
    for decision in (DECISION, told(until="2000-01-01T00:00:00Z"), told(until="soon")):
        record = record_of(submission_of(PODS), decision, OPENED)
        context = context_of(view_of(PODS), record)
        assert plan_preemption(context, gang_of(record, *PODS)) is None
        assert plan_gang(context).preemptions == ()
        assert plan_gang(context).messages == ()


def test_a_gang_whose_pods_have_all_ended_is_not_made_anew() -> None:
    over = tuple(
        replace(pod, status=replace(pod.status, phase="Succeeded")) for pod in PODS
    )
    record = record_of(submission_of(PODS), told(), OPENED)
    plan = plan_gang(context_of(view_of(over), record))
    assert plan.preemptions == ()
    assert not any(isinstance(message, CancelGang) for message in plan.messages)


def test_what_is_made_anew_replaces_nothing_of_a_gang_that_goes() -> None:
    """A gang of two, of which one takes its time."""
    record = record_of(submission_of(PODS), told(), OPENED)
    (end,) = plan_gang(context_of(view_of(PODS), record)).preemptions
    goes = record_of(submission_of(PODS), told(), OPENED, end.message)
    again = waiting_pod("c", gang="train", templates=["gpus"], owner="job", size=2)
    claims = (real_claim("c-gpus"),)
    plan = plan_gang(context_of(view_of((PODS[1], again), claims), goes))
    assert plan.evictions == PODS[1:]
    assert not plan.messages


def test_all_must_know_before_one_goes() -> None:
    record = record_of(submission_of(PODS), told(), OPENED)
    assert goes_for(record, FOR)
    assert not goes_for(record_of(submission_of(PODS), DECISION, OPENED), FOR)
    assert not goes_for(record, replace(FOR, until="2099-01-02T00:00:00Z"))
    assert goes_for(record.apply(CancelGang(**ADDRESS), 1), FOR)


def test_pods_that_go_count_until_they_are_ended() -> None:
    (first, _) = PODS
    assert runs_for(first, {GangUID(builders.UID)})
    assert not runs_for(first, {GangUID("other")})
    going = replace(first.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert not runs_for(replace(first, metadata=going), {GangUID(builders.UID)})
