"""Who is tried by what quotas have left, and what the others are told."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import Rule
from contracts.features import Features
from contracts.gang import Gang
from solver.allocate import allocate
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import GangPart
from solver.problem.quota.quotas import is_held_up_by_others, keep_quotas
from solver.record import PartCache
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    DEVICE_CLASS,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import problem_of, snapshot_of
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues


def asking(number: int, count: int = 1, *, namespace: str = "a") -> Gang:
    return gang(
        member(member_claim(request(count=count))),
        name=f"g{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


def cluster(*gangs: Gang, quota: Any = 4, **spec: Any) -> Snapshot:
    """Eight devices, and a queue for namespace `a`."""
    nodes = {"n": [pool(*devices(8), name="n")]}
    return with_queues(
        snapshot_of(nodes, gangs),
        flavor("any"),
        cluster_queue("q", {"any": {DEVICE_CLASS: quota}}, **spec),
        local_queue("a", "q"),
    )


def parts_of(snapshot: Snapshot) -> tuple[GangPart, ...]:
    records = sorted(snapshot.waiting.values(), key=lambda r: r.submission_sequence)
    return resolve_gangs(snapshot, records, Features())


def kept(snapshot: Snapshot) -> tuple[GangPart, ...]:
    return keep_quotas(snapshot, parts_of(snapshot)).gangs


def tried(snapshot: Snapshot) -> list[str]:
    return [part.name for part in kept(snapshot) if not part.refused]


def test_the_first_take_what_is_left() -> None:
    """Who asks for more waits; who asks for less after it may be tried."""
    wanted = [asking(0, 3), asking(1, 4), asking(2, 1), asking(3, 1)]
    assert tried(cluster(*wanted)) == ["g0", "g2"]
    assert tried(cluster(*wanted, quota=9)) == ["g0", "g1", "g2", "g3"]
    others = cluster(asking(0, 5), asking(1, 5, namespace="b"))
    assert tried(others) == ["g1"]


def test_the_reason_has_the_queue_its_quota_and_why_nothing_is_borrowed() -> None:
    """In words, and as numbers."""
    wanted = (asking(0, 3), asking(1, 3))
    first, second = kept(cluster(*wanted, cohort="research"))
    assert not first.refused
    (reason,) = second.refused
    assert (reason.rule, reason.subject) == (Rule.QUOTA, "ClusterQueue q")
    assert reason.message == (
        f"it may get 3 {DEVICE_CLASS}; q holds 0 of its 4 of flavor any; borrowing is "
        "0 because cohort research has none left; gangs before it ask for 3"
    )
    assert is_held_up_by_others(second.refused)
    (alone,) = kept(cluster(asking(0, 5)))
    assert "it borrows nothing: it is in no cohort" in alone.refused[0].message
    assert not is_held_up_by_others(alone.refused)
    assert not alone.rejected, "quotas change, and so does what is held"


@pytest.mark.parametrize(
    ("spec", "gang_of", "why"),
    [
        ({"stopPolicy": "Hold"}, asking(0), "stopped"),
        ({"resourceGroups": []}, asking(0), f"no quota of DeviceClass {DEVICE_CLASS}"),
        (
            {},
            gang(member(resources={"cpu": "1"}), namespace="a"),
            "it has no quota of cpu",
        ),
    ],
)
def test_what_a_queue_has_no_quota_of_it_lets_nobody_have(
    spec: dict[str, Any], gang_of: Gang, why: str
) -> None:
    """As Kueue; and it is told by name."""
    (part,) = kept(cluster(gang_of, **spec))
    (reason,) = part.refused
    assert (reason.rule, part.rejected) == (Rule.QUEUE_CLOSED, False)
    assert why in reason.message


def test_pods_that_replace_lost_ones_take_what_those_held() -> None:
    """Their gang still holds it: it is not counted twice."""
    snapshot = cluster(asking(0, 3), quota=0)
    (record,) = snapshot.waiting.values()
    assert record.submission is not None
    again = structs.replace(
        record, submission=structs.replace(record.submission, restores=4)
    )
    (part,) = resolve_gangs(snapshot, [again], Features())
    assert (part.queue, part.refused) == (None, ())


def test_a_flavor_s_pods_stay_on_its_nodes() -> None:
    """The first flavor with enough quota that suits them, and what it tolerates."""
    taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
    toleration = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
    queues = (
        flavor("small", nodeLabels={"pool": "s"}),
        flavor("tainted", nodeLabels={"pool": "t"}, nodeTaints=[taint]),
        flavor("spot", nodeLabels={"pool": "p"}, tolerations=[toleration]),
        cluster_queue(
            "q",
            {
                "small": {DEVICE_CLASS: 1},
                "tainted": {DEVICE_CLASS: 8},
                "spot": {DEVICE_CLASS: 8},
            },
        ),
        local_queue("a", "q"),
    )
    nodes = {"n": [pool(*devices(8), name="n")]}
    chosen = member(member_claim(request()), node_selector={"pool": "p"})
    bound = gang(chosen, name="g9", namespace="a")
    asked = snapshot_of(nodes, [asking(0), asking(1, 2), bound])
    one, two, three = kept(with_queues(asked, *queues))
    flavors = [part.queue.flavors if part.queue else {} for part in (one, two, three)]
    assert flavors == [{DEVICE_CLASS: name} for name in ("small", "spot", "spot")]
    assert one.members[0].node_selector == {"pool": "s"}
    assert two.members[0].node_selector == {"pool": "p"}
    assert [each.key for each in two.members[0].tolerations] == ["spot"]


def test_quotas_are_recorded_and_replayed() -> None:
    """The answer is a function of the Problem, of which quotas are a part."""
    snapshot = cluster(asking(0, 3), asking(1, 3), cohort="research")
    problem = problem_of(snapshot)
    pages = {page.sha: page.data for page in problem.pages}
    again = PartCache().problem(problem.data, pages)
    assert again.quotas == problem.quotas
    assert [(q.name, q.is_cohort, q.quota) for q in again.quotas] == [
        ("q", False, 4),
        ("research", True, 4),
    ]
    assert allocate(again) == allocate(problem)
    assert problem_of(cluster(asking(0, 3), quota=5)).hash != problem.hash


def test_a_gang_has_as_many_pods_as_there_is_quota_for() -> None:
    """What it could do without is given up, pod by pod, before it is refused."""
    pods = member(member_claim(request()), count=4, min_count=2)
    for limit, count in ((4, 4), (3, 3), (2, 2), (1, None)):
        (found,) = kept(cluster(gang(pods, namespace="a"), quota=limit))
        if count is None:
            assert found.refused[0].facts["asked"] == 2
        else:
            assert [each.count for each in found.members] == [count]
            assert found.queue is not None
            assert found.queue.flavors == {DEVICE_CLASS: "any"}


def test_no_gang_waits_for_pods_that_others_could_do_without() -> None:
    """What is left after all gangs goes to more pods, the first gang's first."""

    def elastic(number: int, count: int, least: int) -> Gang:
        uid = f"00000000-0000-4000-8000-{number:012}"
        pods = member(member_claim(request()), count=count, min_count=least)
        return gang(pods, name=f"g{number}", namespace="a", uid=uid)

    wanted = (elastic(0, 10, 4), asking(1, 4), elastic(2, 3, 1))
    for limit, counts in ((15, [10, 1, 1]), (12, [7, 1, 1]), (8, [4, 1, None])):
        found = kept(cluster(*wanted, quota=limit))
        given = [None if g.refused else g.members[0].count for g in found]
        assert given == counts, limit
