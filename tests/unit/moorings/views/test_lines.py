"""A gang's place in line, and who is before it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.ids import GangUID
from contracts.lifecycle import GangRecord
from moorings.cli.views import print_explanation
from moorings.views.gangs import explain_gang
from moorings.views.lines import WaitingLines
from solver.snapshot.snapshot import Snapshot
from tests import builders
from tests.builders.decisions import gang_allocated, submission
from tests.builders.plans import record_of
from tests.builders.queues import cluster_queue, local_queue, with_queues

QUEUES = with_queues(
    Snapshot(), cluster_queue("q", {}), local_queue("a", "q"), local_queue("b", "q")
).queues


def waiting(
    sequence: int, *, namespace: str = "a", priority: int = 0, restores: int = 0
) -> GangRecord:
    """Let a gang wait that was submitted in this order."""
    uid = GangUID(f"u{sequence}")
    gang = builders.gang(
        builders.member(),
        name=f"g{sequence}",
        namespace=namespace,
        priority=priority,
        uid=uid,
    )
    message = replace(submission(gang, uid=uid), restores=restores)
    return GangRecord.of(message).apply(message, sequence)


MINE = waiting(5)
LINE = [
    waiting(1, priority=2),
    waiting(2, restores=1),
    waiting(3),
    waiting(4, namespace="b"),
    MINE,
    waiting(6),
    waiting(7, namespace="b"),
    waiting(8, priority=-1),
    record_of(submission(), gang_allocated()),
]


def test_priority_comes_first_then_namespaces_take_turns() -> None:
    lines = WaitingLines(LINE)
    assert lines.view(MINE.key) == {
        "place": 5,
        "waiting": 8,
        "queue": "",
        "higherPriority": 2,
        "olderInQueue": 0,
        "olderInNamespace": 1,
        "namespacesInTurn": 2,
        "byAge": 0,
    }
    assert lines.list_before(MINE.key) == ["a/g1", "a/g2", "a/g3"]


def test_gangs_of_a_queue_wait_by_rank_and_age() -> None:
    """Whatever namespaces they are of; who has no queue waits beside them."""
    lines = WaitingLines([*LINE, waiting(0, namespace="c")], QUEUES)
    assert lines.view(MINE.key) == {
        "place": 5,
        "waiting": 8,
        "queue": "q",
        "higherPriority": 2,
        "olderInQueue": 2,
        "olderInNamespace": 0,
        "namespacesInTurn": 0,
        "byAge": 0,
    }
    assert lines.list_before(MINE.key) == ["a/g1", "a/g2", "a/g3", "b/g4"]
    alone = lines.view(waiting(0, namespace="c").key)
    assert alone is not None
    assert (alone["place"], alone["waiting"], alone["queue"]) == (1, 1, "")


def test_who_is_in_has_no_place_in_line() -> None:
    placed = record_of(submission(), gang_allocated())
    assert WaitingLines([placed]).view(placed.key) is None
    assert WaitingLines([placed]).list_before(placed.key) == []


def test_a_place_in_a_queue_is_told_with_who_is_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = WaitingLines(LINE, QUEUES)
    last = LINE[6]
    place = {**(lines.view(last.key) or {}), "before": lines.list_before(last.key)}
    print_explanation(explain_gang(last) | {"place": place})
    said = capsys.readouterr().out
    assert "  7th of 8 in ClusterQueue q: 2 of higher priority, 4 older\n" in said
    assert "    after a/g1, a/g2, a/g3, b/g4, a/g5 and 1 more\n" in said


def test_who_has_waited_for_long_has_a_better_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = cluster_queue("q", {})
    queue["metadata"]["annotations"] = {"moorings.dev/aging": "1h/2"}
    queues = with_queues(Snapshot(), queue, local_queue("a", "q")).queues
    old = replace(waiting(1), waits_since_s=1000.0)
    urgent = replace(waiting(2, priority=1), waits_since_s=9000.0)
    lines = WaitingLines([old, urgent], queues, now_s=1000.0 + 7200)
    place = {**(lines.view(old.key) or {}), "before": []}
    assert (place["place"], place["byAge"]) == (1, 2)
    print_explanation(explain_gang(old) | {"place": place})
    said = capsys.readouterr().out
    assert "1st of 2 in ClusterQueue q; its age adds 2 to its priority\n" in said
