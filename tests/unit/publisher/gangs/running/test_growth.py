"""A gang that runs with fewer pods than it asks for, and those that wait for growth."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.gang import Gang, GangPhase
from contracts.ids import GangUID, Namespace
from contracts.messages import AllocationWritten, CancelGang, GatesOpened, SubmitGang
from contracts.reports import WAITING
from contracts.workload import Pod
from publisher.gangs.context import NextSteps
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.running.growth import GROWING, keep_placed
from publisher.gangs.running.growth_rules import POD_INDEX
from tests import builders
from tests.builders import member, member_claim
from tests.builders.decisions import CLUSTER, gang_allocated, gang_pending
from tests.builders.plans import context_of, record_of, submission_of, view_of
from tests.builders.pods import real_claim, uid_of, waiting_pod
from tests.builders.values import NAMESPACE, NODE, UID


def train(count: int = 4, least: int | None = 2, **more: int) -> Gang:
    """A Gang object; `more`: further members that need so many of 2 pods."""
    others = (
        member(member_claim(), name=name, count=2, min_count=enough)
        for name, enough in more.items()
    )
    worker = member(member_claim(), count=count, min_count=least)
    return builders.gang(worker, *others)


def waits(name: str, of: str = "") -> Pod:
    return waiting_pod(name, gang="train", member=of, templates=["gpus"])


def runs(name: str, uid: str = UID) -> Pod:
    return waiting_pod(
        name,
        gang="train",
        templates=["gpus"],
        opened_by=uid,
        node=NODE,
        phase="Running",
    )


def planned(gang: Gang, pods: list[Pod], *records: PodGangRecord) -> NextSteps:
    claims = [real_claim(f"{pod.metadata.name}-gpus") for pod in pods]
    return plan_gang(context_of(view_of(pods, claims, [gang]), *records))


def asked(plan: NextSteps) -> list[list[tuple[str, int, int | None]]]:
    """Say of each gang that is asked for now its members: name, pods and enough."""
    return [
        [(m.name, m.count, m.min_count) for m in message.gang.spec.members]
        for message in plan.messages
        if isinstance(message, SubmitGang)
    ]


def elastic_submission(pods: list[Pod], least: int = 2) -> SubmitGang:
    """Submit pods of which so many are enough."""
    made = submission_of(pods)
    spec = made.gang.spec
    workers = (replace(spec.members[0], min_count=least),)
    gang = replace(made.gang, spec=replace(spec, members=workers))
    return replace(made, gang=gang)


def told(plan: NextSteps) -> dict[str, tuple[str, str]]:
    """Say of each pod the phase and reason that its authors are told."""
    return {
        pod.metadata.name: (report.phase, report.reason)
        for report in plan.reports
        for pod in report.pods
    }


def written() -> AllocationWritten:
    return AllocationWritten(
        cluster=CLUSTER, namespace=Namespace(NAMESPACE), uid=GangUID(UID), attempt=1
    )


def opened(pods: int) -> GatesOpened:
    return GatesOpened(
        cluster=CLUSTER,
        namespace=Namespace(NAMESPACE),
        uid=GangUID(UID),
        attempt=1,
        state=1,
        pods=pods,
    )


FOUR = [waits(name) for name in "abcd"]


def test_a_gang_is_asked_for_with_the_pods_that_are_there() -> None:
    """From those that it needs up to those that it wants; no fewer, and no more."""
    assert asked(planned(train(), FOUR[:1])) == []
    assert asked(planned(train(), FOUR[:2])) == [[("worker", 2, None)]]
    assert asked(planned(train(), FOUR[:3])) == [[("worker", 3, 2)]]
    assert asked(planned(train(), FOUR)) == [[("worker", 4, 2)]]
    five = planned(train(), [*FOUR, waits("e")])
    assert asked(five) == []
    assert told(five)["e"] == (WAITING, "ClaimsDiffer")


def test_more_pods_are_waited_for_while_they_come() -> None:
    """Two seconds after the last one, unless all are there."""

    def aged(pod: Pod, created: str) -> Pod:
        meta = replace(pod.metadata, creation_timestamp=created)
        return replace(pod, metadata=meta)

    fresh = [aged(pod, "2026-11-20T11:59:59Z") for pod in FOUR]
    plan = planned(train(), fresh[:3])
    assert (asked(plan), plan.look_again_s) == ([], 1.0)
    assert len(asked(planned(train(), fresh))) == 1
    for long_ago_or_ahead in ("2026-11-20T11:59:58Z", "2026-11-20T13:00:00Z"):
        old = [aged(pod, long_ago_or_ahead) for pod in FOUR]
        assert len(asked(planned(train(), old[:3]))) == 1


def test_the_gang_is_what_was_placed() -> None:
    """Its other pods wait with it until its gates are open."""
    record = record_of(elastic_submission(FOUR), gang_allocated(pods=2))
    placed = keep_placed(record, runs=False)
    assert placed.pods == {uid_of("a"), uid_of("b")}
    plan = planned(train(), FOUR, record)
    assert asked(plan) == []
    assert {patch.key for patch in plan.patches} <= {
        f"{NAMESPACE}/{name}" for name in ("a-gpus", "b-gpus")
    }
    assert plan.patches
    assert told(plan)["c"] == told(plan)["d"] == (GangPhase.DECIDED, GROWING)
    assert told(plan)["a"] == (GangPhase.DECIDED, "")


def test_a_decision_with_too_few_pods_is_not_carried_out() -> None:
    """Whatever a solver says: below what the gang needs all are missing."""
    record = record_of(elastic_submission(FOUR, least=3), gang_allocated(pods=2))
    assert keep_placed(record, runs=False) is record
    plan = planned(train(least=3), FOUR, record)
    (message,) = plan.messages
    assert "nothing was decided" in getattr(message, "reason", "")


def test_the_rest_is_asked_for_beside_those_that_run() -> None:
    """Once the gates are open, as many as fit; its reason says that it grows."""
    pods = [runs("a"), runs("b"), *FOUR[2:]]
    decided = (elastic_submission(FOUR), gang_allocated(pods=2))
    assert asked(planned(train(), pods, record_of(*decided, written()))) == []
    record = record_of(*decided, opened(2))
    plan = planned(train(), pods, record)
    assert asked(plan) == [[("worker", 2, 1)]]
    assert told(plan)["c"] == (GangPhase.RUNNING, GROWING)
    # They wait for the solver then, and are not asked for again.
    (submitted,) = (m for m in plan.messages if isinstance(m, SubmitGang))
    later = record_of(submitted, gang_pending(submitted.uid))
    plan = planned(train(), pods, record, later)
    assert asked(plan) == []
    assert told(plan)["d"] == (GangPhase.RUNNING, GROWING)


def test_members_grow_apart() -> None:
    """None waits for room for another."""
    gang = train(count=3, least=1, spare=0)
    pods = [runs("a"), waits("b"), waits("c"), waits("s", "spare"), waits("t", "spare")]
    named = [
        replace(
            pod,
            metadata=replace(
                pod.metadata,
                labels={"moorings.dev/member": "worker", **pod.metadata.labels},
            ),
        )
        for pod in pods
    ]
    both = asked(planned(gang, named))
    assert sorted(both) == [[("spare", 2, 1)], [("worker", 2, 1)]]


def test_a_rigid_gang_never_grows() -> None:
    """What waits beside it is told why as ever."""
    pods = [runs("a"), runs("b"), runs("c"), FOUR[3]]
    plan = planned(train(least=None), pods)
    assert asked(plan) == [[("worker", 1, None)]]
    assert told(plan)["d"][1] != GROWING


def test_pods_that_were_to_join_do_not_begin_without_those_that_ran() -> None:
    """As an addition one would be enough; a gang begins with what it needs."""
    pods = [runs("a"), runs("b"), *FOUR[2:]]
    record = record_of(elastic_submission(FOUR), gang_allocated(pods=2), opened(2))
    (submitted,) = (
        message
        for message in planned(train(), pods, record).messages
        if isinstance(message, SubmitGang)
    )
    later = record_of(submitted)
    plan = planned(train(), FOUR[2:], later)
    (given_up,) = (m for m in plan.messages if isinstance(m, CancelGang))
    assert "no pod that these were to join runs" in given_up.reason


EIGHT = [waits(name) for name in "abcdefgh"]
TAKEN_BACK = "7 more wait already, and none of the gang runs"


def cancelled(reason: str) -> CancelGang:
    return CancelGang(
        cluster=CLUSTER, namespace=Namespace(NAMESPACE), uid=GangUID(UID), reason=reason
    )


def test_pods_that_come_while_the_gang_waits_are_no_second_gang() -> None:
    """Though they are enough for one: they might run apart from the first."""
    first = elastic_submission(EIGHT[:4], least=3)
    for record in (record_of(first), record_of(first, gang_allocated(pods=4))):
        plan = planned(train(8, 3), EIGHT, record)
        assert asked(plan) == []
        assert told(plan)["e"] == (WAITING, "PodsMissing")
    rigid = planned(train(4, None), EIGHT, record_of(submission_of(EIGHT[:4])))
    assert asked(rigid) == []


def test_a_gang_that_is_taken_back_begins_again_with_all_its_pods() -> None:
    """Also those that had no place, and one that came for one that is gone."""
    decided = (elastic_submission(EIGHT, least=3), gang_allocated(pods=4))
    pods = [*EIGHT[1:], waits("z")]
    assert asked(planned(train(8, 3), pods, record_of(*decided))) == []
    given_up = cancelled("publisher: 1 of 4 pods are gone")
    taken_back = planned(train(8, 3), pods, record_of(*decided, given_up))
    assert asked(taken_back) == []
    (told_z,) = (r.message for r in taken_back.reports if r.pods == (pods[-1],))
    assert TAKEN_BACK in told_z


def test_a_cancel_is_of_all_pods_of_a_gang() -> None:
    """Not only of those that were placed."""
    decided = (elastic_submission(EIGHT, least=3), gang_allocated(pods=4))
    record = record_of(*decided, cancelled("not needed any more"))
    assert asked(planned(train(8, 3), EIGHT, record)) == []
    assert keep_placed(record, runs=False) is record
    assert len(keep_placed(record, runs=True).pods) == 4


def test_pods_beside_those_that_took_held_devices_wait_for_these() -> None:
    """A gang that holds its devices was decided with fewer pods than it wants."""
    gang = train(8, 3)
    held = replace(gang, spec=replace(gang.spec, hold=True))
    message = submission_of(count=8)
    asked_for = replace(message.gang, spec=gang.spec)
    message = replace(message, gang=asked_for)
    record = record_of(message, gang_allocated(pods=4))
    plan = planned(held, EIGHT, record)
    assert asked(plan) == []
    assert told(plan)["h"] == (WAITING, "PodsMissing")


def test_pods_that_join_restore_what_the_gang_needs() -> None:
    """Beside fewer than that one more is not enough; beside as many it is."""
    gang = train(count=6, least=4)
    assert asked(planned(gang, [runs("r"), *FOUR])) == [[("worker", 4, 3)]]
    three = [runs(name) for name in "rst"]
    assert asked(planned(gang, [*three, *FOUR[:3]])) == [[("worker", 3, 1)]]
    assert asked(planned(gang, [runs("r"), *FOUR[:2]])) == []


def test_the_rest_of_a_job_whose_first_pods_succeeded_runs_together() -> None:
    """Nobody runs beside whom one would do."""
    done = [
        waiting_pod(
            name,
            gang="train",
            templates=["gpus"],
            opened_by=UID,
            node=NODE,
            phase="Succeeded",
            owner="job",
        )
        for name in "rs"
    ]
    rest = [
        waiting_pod(name, gang="train", templates=["gpus"], owner="job")
        for name in "abc"
    ]
    assert asked(planned(train(count=5), [*done, *rest])) == [[("worker", 3, 2)]]


def test_pods_that_were_to_join_are_not_enough_by_number_alone() -> None:
    """Each member has its least; what was placed beyond what is enough says nothing."""
    gang = builders.gang(
        member(member_claim(), name="launcher", count=1),
        member(member_claim(), count=8, min_count=2),
    )
    workers = [waits(name, "worker") for name in "abcd"]
    for least in (1, 4):
        joined = elastic_submission([*workers, waits("e", "worker")], least=least)
        record = record_of(joined, gang_allocated(pods=4))
        plan = planned(gang, [*workers, waits("e", "worker")], record)
        (given_up,) = (m for m in plan.messages if isinstance(m, CancelGang))
        assert "no pod that these were to join runs" in given_up.reason
        assert plan.patches == ()


def shares(name: str, of: str) -> Pod:
    """A pod whose claim `gpus` is one that it shares."""
    return waiting_pod(name, gang="train", member=of, shared={"gpus": "pair"})


def test_pods_that_share_a_claim_join_together() -> None:
    """Of two members, too: each alone would wait for the other for ever."""
    gang = train(count=3, least=1, spare=0)
    first = waiting_pod(
        "a",
        gang="train",
        member="worker",
        templates=["gpus"],
        opened_by=UID,
        node=NODE,
        phase="Running",
    )
    pods = [first, shares("b", "worker"), shares("s", "spare"), waits("t", "spare")]
    claims = [real_claim("a-gpus"), real_claim("t-gpus"), real_claim("pair")]
    plan = plan_gang(context_of(view_of(pods, claims, [gang])))
    assert asked(plan) == [
        [("worker", 1, None), ("spare", 1, None)],
        [("spare", 1, None)],
    ]
    # What a claim holds already ties nobody.
    claims[2] = real_claim("pair", allocated=builders.allocation(), reserved=["a"])
    plan = plan_gang(context_of(view_of(pods[:3], claims, [gang])))
    assert asked(plan) == [[("worker", 1, None)], [("spare", 1, None)]]


def test_what_is_wrong_is_not_told_as_growth() -> None:
    """It does not end by itself: a rule that nobody can keep beside what runs."""
    gang = train()
    rule = builders.gang_constraint("gpu.example.com/x")
    bound = replace(gang, spec=replace(gang.spec, constraints=(rule,)))
    pods = [runs("a"), runs("b"), *FOUR[2:]]
    assert told(planned(bound, pods))["c"] == (WAITING, "NotModelled")
    nameless = [*pods[:3], waits("d", "driver")]
    assert told(planned(gang, nameless))["d"] == (WAITING, "ClaimsDiffer")


def test_a_gang_whose_launcher_still_comes_lacks_pods() -> None:
    """As many workers as both need are no reason to warn that the claims differ."""
    gang = builders.gang(
        member(member_claim(), name="launcher", count=1),
        member(member_claim(), count=8, min_count=2),
    )
    workers = [waits(name, "worker") for name in "abc"]
    (report,) = planned(gang, workers).reports
    assert (report.phase, report.reason) == (WAITING, "PodsMissing")
    assert report.message == "0 of 1 pod launcher is there"
    whole = planned(gang, [*workers, waits("l", "launcher")])
    assert len(asked(whole)) == 1
    (report,) = planned(gang, [*workers, waits("l", "luncher")]).reports
    assert "the Gang has no member luncher" in report.message


def numbered(pod: Pod, index: int) -> Pod:
    pod.metadata.labels[POD_INDEX] = str(index)
    return pod


def test_pods_that_a_rule_binds_are_not_asked_for_apart_at_once() -> None:
    """Groups that join would fill a domain together; the second counts the first."""
    gang = train(6)
    rule = builders.topology_rule("rack", group_size=2, max_per_domain=2)
    gang = replace(gang, spec=replace(gang.spec, topology=(rule,)))
    pods = [numbered(runs("a"), 0), numbered(runs("b"), 1)]
    pods += [numbered(waits(name), n) for n, name in enumerate("cdef", 2)]

    plan = planned(gang, pods)

    assert asked(plan) == [[("worker", 2, 1)]]
    told = [report.message for report in plan.reports if report.reason == GROWING]
    assert "Queued: spec.topology[0] also applies to pod c" in told[-1]
    free = replace(rule, max_per_domain=None)
    gang = replace(gang, spec=replace(gang.spec, topology=(free,)))
    assert len(asked(planned(gang, pods))) == 2
