"""What a Problem says of quotas, of claims that pods share, of pods to come."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.features import Features
from contracts.gang import Gang, Member
from contracts.ids import DeviceID, DeviceName, DriverName, Namespace, PoolName
from contracts.lifecycle import GangRecord
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import ClaimPart, GangPart
from solver.problem.problem import QuotaPart, keep_countable
from solver.problem.quotas import (
    QuotaAdmission,
    count_asked,
    find_quotas,
    is_held_up_by_others,
    refuse_over_quota,
)
from solver.problem.sharing import find_shared_claims, waits_for_another
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.quotas import ALL_DRIVERS, Quotas
from solver.record import PartCache
from solver.snapshot.events import claim_event
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DRIVER,
    constraint,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.decisions import gang_allocated, gang_released
from tests.builders.models import DRAWN_UID
from tests.builders.problems import expected_of, problem_of, snapshot_of
from tests.builders.values import NAMESPACE


def counted_claim(pod: Member) -> ClaimPart:
    """Leave of a pod's one claim what is counted."""
    (part,) = expected_of(snapshot_of({}), pod)
    (claim,) = keep_countable(part.member).claims
    return claim


@pytest.mark.parametrize(
    "unbounded", [{"mode": "All"}, {"admin_access": True}], ids=["all", "admin"]
)
def test_a_request_that_bounds_nothing_is_left_out(unbounded: dict[str, Any]) -> None:
    """All devices, or devices that others keep, say nothing of how many fit."""
    pod = member(member_claim(request("one"), request("other", **unbounded)))
    assert [r.name for r in counted_claim(pod).requests] == ["one"]


def test_only_the_first_choice_is_counted() -> None:
    """Room is counted by what would be taken first."""
    either = request(first_available=[sub_request("a", count=2), sub_request("b")])
    (found,) = counted_claim(member(member_claim(either))).requests
    assert [alternative.count for alternative in found.alternatives] == [2]


def test_constraints_that_devices_differ_are_left_out() -> None:
    """It is an estimate: only equal values keep devices apart."""
    same, distinct = constraint(), constraint(None, distinct=f"{DRIVER}/i")
    pod = member(member_claim(request(count=2), constraints=[same, distinct]))
    assert len(counted_claim(pod).constraints) == 1


NIC = "nic.example.com"
CLASSES = {
    "gpu.example.com": (f'device.driver == "{DRIVER}"',),
    "nic": (f'device.driver == "{NIC}"',),
    "any": ("true",),
}
A = Namespace("a")


def asking(
    number: int, count: int = 1, *, namespace: str = "a", priority: int = 0
) -> Gang:
    return gang(
        member(member_claim(request(count=count))),
        name=f"g{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
        priority=priority,
    )


def cluster(*gangs: Gang, held: int = 0) -> Snapshot:
    """Eight devices, of which namespace `default` holds some."""
    taken = [
        DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName(f"gpu-{index}"))
        for index in range(held)
    ]
    nodes = {"n": [pool(*devices(8), name="n")]}
    return snapshot_of(nodes, gangs, taken=taken, classes=CLASSES)


def parts_of(snapshot: Snapshot) -> tuple[GangPart, ...]:
    records = sorted(
        snapshot.waiting.values(), key=lambda record: record.submission_sequence
    )
    return resolve_gangs(snapshot, records, Features())


def quota(limit: int, used: int = 0, *, driver: str = "") -> QuotaPart:
    return QuotaPart(namespace=A, driver=DriverName(driver), limit=limit, used=used)


def tried(snapshot: Snapshot, *quotas: QuotaPart) -> list[str]:
    return [
        part.name
        for part in refuse_over_quota(parts_of(snapshot), quotas)
        if not part.refused
    ]


def test_the_most_urgent_take_what_is_left() -> None:
    """Who asks for more waits; who asks for less after it may be tried."""
    wanted = cluster(asking(0, 3), asking(1, 4), asking(2, 1), asking(3, 1))
    assert tried(wanted, quota(4)) == ["g0", "g2"]
    assert tried(wanted, quota(9, used=5)) == ["g0", "g2"]
    assert tried(wanted, quota(9)) == ["g0", "g1", "g2", "g3"]
    assert tried(wanted, quota(2, used=7)) == []


def test_others_have_quotas_of_their_own() -> None:
    """Of namespaces, and of drivers whose devices a gang cannot get."""
    wanted = cluster(asking(0, 3), asking(1, 3, namespace="b"))
    assert tried(wanted, quota(2)) == ["g1"]
    assert tried(wanted, quota(0, driver=NIC)) == ["g0", "g1"]
    assert tried(wanted, quota(9), quota(2, driver=DRIVER)) == ["g1"]


def test_the_reason_has_the_namespace_the_limit_and_what_is_used() -> None:
    """In words, and as numbers."""
    wanted = cluster(asking(0, 3), asking(1, 3))
    first, second = refuse_over_quota(
        parts_of(wanted), (quota(9, used=4, driver=DRIVER),)
    )
    assert not first.refused
    (reason,) = second.refused
    assert (reason.rule, reason.subject) == (Rule.DEVICE_QUOTA, "namespace a")
    assert reason.message == (
        f"it may get 3 devices of {DRIVER}; its namespace holds 4 of 9, "
        "and gangs before it ask for 3"
    )
    assert reason.facts == {"asked": 3, "used": 4, "ahead": 3, "limit": 9}
    assert is_held_up_by_others(second.refused)
    (alone,) = refuse_over_quota(parts_of(cluster(asking(0, 3))), (quota(9, used=7),))
    assert not is_held_up_by_others(alone.refused)
    assert not alone.rejected, "quotas change, and so does what is held"


@pytest.mark.parametrize(
    ("asked", "gpus", "nics", "all_drivers"),
    [
        (request(count=3), 3, 0, 3),
        (request(count=3, device_class="nic"), 0, 3, 3),
        (request(count=3, device_class="any"), 3, 3, 3),
        (request(mode="All"), 32, 0, 32),
        (request(count=3, admin_access=True), 0, 0, 0),
        (
            request(
                first_available=(
                    sub_request("a", count=2),
                    sub_request("b", count=5, device_class="nic"),
                )
            ),
            2,
            5,
            5,
        ),
    ],
)
def test_what_a_gang_may_get_counts(
    asked: object, gpus: int, nics: int, all_drivers: int
) -> None:
    """Of alternatives the most, of all devices what a claim can hold."""
    pods = member(member_claim(asked), count=2)  # type: ignore[arg-type]  # a request
    (part,) = parts_of(cluster(gang(pods, namespace="a")))
    counted = [count_asked(part, DriverName(d)) for d in (DRIVER, NIC, ALL_DRIVERS)]
    assert counted == [2 * gpus, 2 * nics, 2 * all_drivers]


def test_a_claim_counts_for_what_it_can_hold() -> None:
    """Two requests for all devices get 32 together."""
    both = member_claim(request("x", mode="All"), request("y", mode="All"))
    (part,) = parts_of(cluster(gang(member(both), namespace="a")))
    assert count_asked(part, ALL_DRIVERS) == 32


def test_what_is_held_is_what_the_snapshot_says() -> None:
    """By driver, and of all together; of namespaces with quotas alone."""
    snapshot = cluster(held=3)
    quotas = Quotas.read(["*=8", f"default/{DRIVER}=4"], of_drivers=True)
    found = find_quotas(snapshot, quotas, [A, Namespace("default"), A])
    assert [(q.namespace, q.driver, q.limit, q.used) for q in found] == [
        ("a", "", 8, 0),
        ("default", "", 8, 3),
        ("default", DRIVER, 4, 3),
    ]
    assert find_quotas(snapshot, Quotas(), [A]) == ()


def choose(
    queue: GangQueue, snapshot: Snapshot, quotas: Quotas, *, gangs: int = 256
) -> list[str]:
    admission = QuotaAdmission(snapshot, quotas, Features())
    limits = BatchLimits(gangs=gangs)
    batch = queue.choose(snapshot, limits, admits=admission.takes)
    return [record.name for record in batch]


def queue_of(snapshot: Snapshot, quotas: Quotas) -> GangQueue:
    queue = GangQueue(quotas)
    records: list[GangRecord] = list(snapshot.waiting.values())
    for record in records:
        queue.follow(record)
    return queue


def test_a_batch_has_of_a_namespace_what_its_quota_has_left() -> None:
    """Each gang is tried once a round, and what a round holds back is others' room."""
    quotas = Quotas.read(["a=4"], of_drivers=True)
    wanted = [asking(n, 2, priority=1) for n in range(5)]
    wanted += [asking(n, 2, namespace="b") for n in range(5, 7)]
    snapshot = cluster(*wanted)
    queue = queue_of(snapshot, quotas)
    assert choose(queue, snapshot, quotas, gangs=4) == ["g0", "g1", "g5", "g6"]
    assert choose(queue, snapshot, quotas, gangs=4) == ["g2", "g3"]
    assert choose(queue, snapshot, quotas, gangs=4) == ["g4"]
    assert choose(queue, snapshot, quotas, gangs=4) == []


def test_who_asks_for_more_than_is_left_comes_to_be_told() -> None:
    """It holds up nobody; and it is tried again once its namespace holds less."""
    quotas = Quotas.read(["*=4"], of_drivers=True)
    snapshot = cluster(asking(0, 5), asking(1, 4), asking(2, 1)).without_grown()
    queue = queue_of(snapshot, quotas)
    assert choose(queue, snapshot, quotas) == ["g0", "g1"]
    assert choose(queue, snapshot, quotas) == ["g2"]
    assert choose(queue, snapshot, quotas) == []
    queue.wake(snapshot, ["quota/b"])  # type: ignore[list-item]  # an event
    assert choose(queue, snapshot, quotas) == []
    queue.wake(snapshot, ["quota/a"])  # type: ignore[list-item]  # an event
    assert choose(queue, snapshot, quotas) == ["g0", "g1"]


def test_quotas_are_recorded_and_replayed() -> None:
    """The answer is a function of the Problem, of which quotas are a part."""
    snapshot = cluster(asking(0, 3), asking(1, 3))
    problem = problem_of(snapshot, quotas=(quota(4),))
    again = PartCache().problem(
        problem.data, {page.sha: page.data for page in problem.pages}
    )
    assert again.quotas == problem.quotas == (quota(4),)
    assert allocate(again) == allocate(problem)
    first, second = allocate(problem).gangs
    assert first.members
    assert [reason.rule for reason in second.reasons] == [Rule.DEVICE_QUOTA]
    assert problem_of(snapshot, quotas=(quota(5),)).hash != problem.hash


def test_a_gang_has_as_many_pods_as_there_is_quota_for() -> None:
    """What it could do without is given up, pod by pod, before it is refused."""
    pods = member(member_claim(request()), count=4, min_count=2)
    wanted = gang(pods, namespace="a", uid="00000000-0000-4000-8000-000000000001")
    snapshot = cluster(wanted)
    parts = resolve_gangs(snapshot, snapshot.gangs.values(), Features())
    for limit, count in ((4, 4), (3, 3), (2, 2), (1, None)):
        quota = QuotaPart(namespace=A, limit=limit)
        (found,) = refuse_over_quota(parts, (quota,))
        if count is None:
            assert found.refused[0].rule is Rule.DEVICE_QUOTA
            assert found.refused[0].facts["asked"] == 2
        else:
            assert [each.count for each in found.members] == [count]
            assert not found.refused


def test_no_gang_waits_for_pods_that_others_could_do_without() -> None:
    """What is left after all gangs goes to more pods, the most urgent gang's first."""

    def elastic(number: int, count: int, least: int) -> Gang:
        uid = f"00000000-0000-4000-8000-{number:012}"
        pods = member(member_claim(request()), count=count, min_count=least)
        return gang(pods, name=f"g{number}", namespace="a", uid=uid)

    snapshot = cluster(elastic(0, 10, 4), asking(1, 4), elastic(2, 3, 1))
    for limit, counts in ((15, [10, 1, 1]), (12, [7, 1, 1]), (8, [4, 1, None])):
        found = refuse_over_quota(parts_of(snapshot), (quota(limit),))
        given = [None if g.refused else g.members[0].count for g in found]
        assert given == counts, limit


ONE = member_claim(request(), name="a", claim="shared")


def test_a_shared_claim_is_counted_once() -> None:
    """In the weight of its gang, and against quotas."""
    own = member_claim(request(count=2), name="own")
    item = gang(member(ONE, own, count=3), member(ONE, name="other"))
    (part,) = problem_of(snapshot_of({}, [item])).gangs
    assert find_shared_claims(part.members) == {"shared"}
    assert (part.weight, count_asked(part, DriverName(""))) == (7, 7)


@pytest.mark.parametrize(
    "item",
    [
        gang(member(ONE, member_claim(request(), name="b", claim="shared"))),
        gang(
            member(ONE),
            member(member_claim(request(count=2), claim="shared"), name="other"),
        ),
    ],
    ids=["twice in a pod", "asks for something else"],
)
def test_what_cannot_be_one_claim_is_rejected(item: Gang) -> None:
    """By the field."""
    (part,) = problem_of(snapshot_of({}, [item])).gangs
    (reason,) = part.refused
    assert (part.rejected, reason.rule) == (True, Rule.INVALID)
    assert reason.field == "spec.members[].claims[].claimName"


def test_pods_that_may_be_left_out_share_nothing_yet() -> None:
    """It is refused by name, not decided wrongly."""
    (part,) = problem_of(
        snapshot_of({}, [gang(member(ONE, count=3, min_count=1))])
    ).gangs
    (reason,) = part.refused
    assert reason.rule is Rule.NOT_MODELLED
    assert reason.field == "spec.members[].minCount beside a claim that pods share"


def naming(number: int, claim: str = "shared", namespace: str = NAMESPACE) -> Gang:
    """Make a gang that names a claim."""
    asked = member(member_claim(request(), claim=claim))
    uid = DRAWN_UID.format(number)
    return gang(asked, name=f"g{number}", namespace=namespace, uid=uid)


def of_four(*gangs: Gang) -> Snapshot:
    return snapshot_of({"n": [pool(*devices(4), name="n")]}, gangs)


def test_of_two_gangs_that_name_a_claim_the_first_is_tried() -> None:
    """The other is tried next; a name of another namespace is another claim."""
    problem = problem_of(of_four(*map(naming, (1, 2)), naming(3, namespace="web")))
    first, second, elsewhere = problem.gangs
    assert (first.refused, elsewhere.refused) == ((), ())
    (reason,) = second.refused
    assert (reason.rule, second.rejected) == (Rule.CLAIM_SHARED, False)
    assert reason.subject == f"claim {NAMESPACE}/shared"
    assert waits_for_another(second.refused)
    decided = allocate(problem).gangs
    assert [bool(answer.members) for answer in decided] == [True, False, True]


def test_who_is_refused_keeps_no_claim_from_others() -> None:
    """Only who is tried may get it."""
    other = member_claim(request(), name="b", claim="shared")
    broken = gang(member(ONE, other), uid=DRAWN_UID.format(1))
    _, second = problem_of(of_four(broken, naming(2))).gangs
    assert not second.refused


def test_a_claim_that_a_gang_was_given_is_not_given_again() -> None:
    """Until it is over."""
    one, two = naming(1), naming(2)
    snapshot = of_four(one, two)
    held = apply(snapshot, gang_allocated(uid=one.metadata.uid), sequence=1)
    (waits,) = problem_of(held).gangs
    (reason,) = waits.refused
    assert (reason.rule, waits.rejected) == (Rule.CLAIM_SHARED, False)
    assert not waits_for_another(waits.refused)
    held = held.without_grown()
    freed = apply(held, gang_released(one.metadata.uid), sequence=2)
    assert claim_event(f"{NAMESPACE}/shared") in freed.grown
    (tried,) = problem_of(freed).gangs
    assert not tried.refused
