"""ClusterQueues as rows, counted as decisions count them."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from contracts.ids import GangUID
from contracts.lifecycle import GangRecord
from contracts.messages import QuotaHeld
from moorings.views.queues import view_queues, with_gangs
from solver.snapshot.snapshot import Snapshot
from tests import builders
from tests.builders.decisions import gang_allocated, submission
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues

GPU, CPU = "gpu.example.com", "cpu"
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def record(uid: str, *held: tuple[str, int], minute: int = 0) -> GangRecord:
    """Make a gang that holds so much of `b`; one that holds nothing waits."""
    gang = builders.gang(builders.member(), namespace="team-a", uid=uid)
    message = submission(gang, uid=uid)
    made = GangRecord.of(message).apply(message, 1, AT.timestamp() + 60 * minute)
    if not held:
        return made
    amounts = dict(held)
    quota = QuotaHeld(
        cluster_queue="b", flavors=dict.fromkeys(amounts, "any"), amounts=amounts
    )
    decision = replace(
        gang_allocated(uid=GangUID(uid)), namespace=made.namespace, quota=quota
    )
    return made.apply(decision, 1)


def world() -> Snapshot:
    """Two queues of a cohort and one that is stopped."""
    return with_queues(
        Snapshot(),
        flavor("any"),
        cluster_queue("b", {"any": {GPU: 4, CPU: (2, 1, None)}}, cohort="c"),
        cluster_queue("a", {"any": {GPU: (8, None, 6)}}, cohort="c"),
        cluster_queue("stopped", {}, stopPolicy="Hold", queueingStrategy="StrictFIFO"),
        local_queue("team-a", "b"),
    )


def test_a_queue_has_its_quotas_and_its_gangs() -> None:
    """What is borrowed is what it holds beyond its own."""
    gangs = [
        record("u1", (GPU, 5), (CPU, 1500)),
        record("u2"),
        record("u3", minute=-5),
    ]
    lends, borrows, stopped = view_queues(with_gangs(world(), gangs))
    assert borrows == {
        "name": "b",
        "cohort": "c",
        "strategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "closed": "",
        "aging": "",
        "patience": "",
        "unread": [],
        "quotas": [
            {
                "flavor": "any",
                "resource": GPU,
                "used": "5",
                "nominal": "4",
                "borrowed": "1",
                "left": "5",
                "borrowingLimit": "",
                "lendingLimit": "",
            },
            {
                "flavor": "any",
                "resource": CPU,
                "used": "1500m",
                "nominal": "2",
                "borrowed": "0",
                "left": "500m",
                "borrowingLimit": "1",
                "lendingLimit": "",
            },
        ],
        "running": 1,
        "waiting": 2,
        "oldestSince": "2026-11-20T11:55:00Z",
    }
    assert (lends["name"], lends["running"], lends["oldestSince"]) == ("a", 0, "")
    (quota,) = lends["quotas"]
    assert (quota["used"], quota["left"], quota["lendingLimit"]) == ("0", "7", "6")
    assert stopped["closed"] == "it is stopped (Hold)"
    assert stopped["strategy"] == "StrictFIFO"


def test_without_queues_there_are_no_rows() -> None:
    assert view_queues(with_gangs(Snapshot(), [record("u1")])) == []
