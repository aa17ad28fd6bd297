"""Which gangs a ResourceQuota of the input refuses, and in what words."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.features import Features
from moorings.plan.quota_usage import CLAIMS
from moorings.plan.quotas import PlannedQuotas
from moorings.plan.work import prepare_work
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import GangPart
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from tests.builders import (
    DEVICE_CLASS,
    claim,
    claim_template,
    device_class,
    gang,
    member,
    member_claim,
    request,
)
from tests.builders.inputs import Json, entries, written_job, written_pod

GPUS = f"{DEVICE_CLASS}.deviceclass.resource.k8s.io/devices"
ALL = BatchLimits(gangs=1000, pods=1000)
TEMPLATE = claim_template(name="one")


def quota(hard: Json, used: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "team-a"},
        "spec": {"hard": hard, **spec},
        "status": {"used": used or {}},
    }


def train(name: str, pods: int, **spec: Any) -> Json:
    return written_job(name, pods, gang=name, size=pods, template="one", **spec)


def decided(*objects: Any) -> list[GangPart]:
    """Resolve the gangs of an input, and hold its quotas against them."""
    read = entries(device_class(), TEMPLATE, *objects)
    work = prepare_work(read)
    batch = choose_batch(work.snapshot, ALL)
    gangs = resolve_gangs(work.snapshot, batch, Features())
    return list(PlannedQuotas(read, Features()).refuse(gangs, work))


def refused(*objects: Any) -> dict[str, str]:
    found = {}
    for each in decided(*objects):
        for reason in each.refused:
            assert reason.rule is Rule.RESOURCE_QUOTA
            assert reason.subject == "ResourceQuota team-a/gpus"
            assert not each.rejected
            found[each.name] = reason.message
    return found


def test_a_gang_that_needs_more_than_is_left_is_refused() -> None:
    limit = quota({GPUS: "8"}, {GPUS: "6"})
    assert refused(limit, train("a", 2)) == {}
    assert refused(limit, train("a", 4)) == {
        "a": f"8 of {DEVICE_CLASS} are allowed, 6 are used, 4 more are needed"
    }
    assert refused({**limit, "metadata": {"name": "g"}}, train("a", 4)) == {}


def test_gangs_use_it_in_the_order_in_which_they_are_decided() -> None:
    """Claims are created one by one: a gang that gets some of them has used those."""
    limit = quota({GPUS: "4"})
    jobs = [train("a", 3), train("b", 1), train("c", 1)]
    assert refused(limit, *jobs) == {
        "c": f"4 of {DEVICE_CLASS} are allowed, 0 are used, "
        "gangs before it need 4, 1 more is needed"
    }
    urgent = train("c", 1, priority=5)
    assert list(refused(limit, *jobs[:2], urgent)) == ["b"]
    assert list(refused(limit, train("a", 5), train("b", 1))) == ["a", "b"]


def test_stored_claims_are_used_where_no_status_says_more() -> None:
    stored = claim(request(count=3), name="held", uid="u")
    assert refused(quota({GPUS: "3"}), stored) == {}
    assert list(refused(quota({GPUS: "3"}), stored, train("a", 1))) == ["a"]
    told = quota({GPUS: "3"}, {GPUS: "1"})
    assert refused(told, stored, train("a", 2)) == {}


def test_only_what_is_to_be_created_counts() -> None:
    """A claim that several pods use is one, and a pod that is there is used."""
    shared = claim(request(), name="shared")
    pods = [written_pod(n, gang="g", size=2, claim="shared") for n in ("a", "b")]
    assert refused(quota({CLAIMS: "1"}), shared, *pods) == {}
    assert list(refused(quota({CLAIMS: "0"}), shared, *pods)) == ["g"]
    assert list(refused(quota({"pods": "1"}), shared, *pods)) == ["g"]
    there = [written_pod("a", live=True, template="one"), quota({"pods": "1"})]
    assert refused(*there) == {}
    (said,) = refused(*there, train("b", 1)).values()
    assert said == "1 pod is allowed, 1 is used, 1 more is needed"


def test_claims_that_no_pod_uses_need_no_pods() -> None:
    limits = quota({"pods": "0", CLAIMS: "1"})
    made = decided(limits, claim(name="a"), claim(name="b"))
    assert [len(each.refused) for each in made] == [0, 1]


def test_a_gang_that_may_do_with_fewer_pods_gets_those_there_is_quota_for() -> None:
    written = gang(member(member_claim(request()), count=4, min_count=2), uid="")
    limits = {size: quota({GPUS: str(size)}) for size in (1, 3, 9)}
    counts = {
        size: [(each.pods, len(each.refused)) for each in decided(limit, written)]
        for size, limit in limits.items()
    }
    assert counts == {1: [(4, 1)], 3: [(3, 0)], 9: [(4, 0)]}


@pytest.mark.parametrize(
    "scoped",
    [
        {"scopes": ["Terminating"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]}},
    ],
)
def test_what_is_not_decided_is_noted(scoped: Json) -> None:
    limit = quota({GPUS: "0"}, **scoped)
    assert refused(limit, train("a", 1)) == {}
    (note,) = PlannedQuotas(entries(limit), Features()).notes
    assert note == (
        "ResourceQuota team-a/gpus has scopes, which are not decided; it is not checked"
    )
    others = quota({GPUS: "1", "requests.cpu": "1", "limits.memory": "1Gi"})
    (note,) = PlannedQuotas(entries(others), Features()).notes
    assert note == (
        "ResourceQuota team-a/gpus: limits.memory and requests.cpu are not checked"
    )


def test_a_changed_quota_keeps_what_the_cluster_says_is_used() -> None:
    stored = quota({GPUS: "8"}, {GPUS: "6"})
    stored["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    raised = quota({GPUS: "12"})
    del raised["status"]
    assert list(refused(stored, train("a", 4))) == ["a"]
    assert refused(stored, raised, train("a", 4)) == {}
    assert list(refused(stored, raised, train("a", 7))) == ["a"]
