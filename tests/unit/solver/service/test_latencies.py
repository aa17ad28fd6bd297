"""Each stage of a gang's life is timed once, by the bus's clock."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.ids import GangKey, GangUID
from contracts.lifecycle import LifecycleMessage
from contracts.messages import AllocationWritten, GatesOpened
from solver.service.latencies import Latencies, StageTaken
from tests.builders.decisions import (
    gang_allocated,
    gang_pending,
    gang_released,
    submission,
)


def written(attempt: int) -> AllocationWritten:
    decided = gang_allocated()
    return AllocationWritten(
        cluster=decided.cluster,
        namespace=decided.namespace,
        uid=decided.uid,
        attempt=attempt,
    )


def opened(attempt: int) -> GatesOpened:
    decided = gang_allocated()
    return GatesOpened(
        cluster=decided.cluster,
        namespace=decided.namespace,
        uid=decided.uid,
        attempt=attempt,
        state=1,
    )


def told(
    latencies: Latencies, *said: tuple[LifecycleMessage, float]
) -> dict[str, float]:
    """Tell what was said when; return the stages that ended, in seconds."""
    stages: list[StageTaken] = []
    for message, time_s in said:
        stages += latencies.note(message, time_s)
    return {stage.stage: stage.seconds for stage in stages}


def test_a_gang_is_timed_from_its_submission_to_its_gates() -> None:
    allocated = gang_allocated(attempt=1)
    assert told(
        Latencies(),
        (submission(), 100.0),
        (allocated, 103.0),
        (written(1), 104.0),
        (opened(1), 104.5),
    ) == {"allocated": 3.0, "decision": 3.0, "written": 1.0, "gates": 0.5}


def test_who_waits_has_its_first_decision_long_before_its_devices() -> None:
    latencies = Latencies()
    waits = told(latencies, (submission(), 100.0), (gang_pending(), 101.0))
    assert waits == {"decision": 1.0}
    assert told(latencies, (gang_pending(), 102.0)) == {}
    assert told(latencies, (gang_allocated(attempt=1), 160.0)) == {"allocated": 60.0}


def test_what_is_confirmed_of_another_attempt_ends_no_stage() -> None:
    latencies = Latencies()
    told(latencies, (submission(), 100.0), (gang_allocated(attempt=1), 101.0))
    told(latencies, (gang_allocated(attempt=2), 103.0))
    assert told(latencies, (written(1), 109.0)) == {}
    assert told(latencies, (written(2), 104.0)) == {"written": 1.0}


def test_who_is_over_is_forgotten() -> None:
    latencies = Latencies()
    first = submission()
    told(latencies, (first, 100.0), (gang_released(), 200.0))
    assert latencies.submitted_s(first.key) is None
    assert told(latencies, (gang_allocated(attempt=1), 300.0)) == {}


def test_the_oldest_is_the_one_submitted_first() -> None:
    latencies = Latencies()
    first = submission()
    told(latencies, (first, 100.0))
    stranger = GangKey(first.key.namespace, GangUID("unknown"))
    assert latencies.oldest_s([stranger, first.key]) == 100.0
    assert latencies.oldest_s([stranger]) is None


def test_a_gang_that_grows_was_in_before() -> None:
    """Only how long its claims take to be written is timed again."""
    latencies = Latencies()
    told(latencies, (submission(), 100.0), (gang_allocated(attempt=1), 101.0))
    grown = replace(gang_allocated(attempt=2, pods=2), kept={"worker": 1})
    assert told(latencies, (grown, 900.0), (written(2), 902.0)) == {"written": 2.0}
