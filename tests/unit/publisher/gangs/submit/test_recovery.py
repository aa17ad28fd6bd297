"""What becomes of a gang whose pods cannot run, or whose devices fail."""

from __future__ import annotations

import pytest

from contracts.gang import Gang, GangSpec
from contracts.names import MAX_RECREATIONS, ON_DEVICE_FAILURE, RECOVERY
from contracts.workload import Pod
from publisher.gangs.submit.readiness import NotReady
from publisher.gangs.submit.recovery import DeclaredRecovery, find_recovery
from tests.builders.pods import waiting_pod

SAID = {
    RECOVERY: "Recreate",
    ON_DEVICE_FAILURE: "Unhealthy, Xid79",
    MAX_RECREATIONS: "3",
}
READ = DeclaredRecovery(
    recovery="Recreate", on_device_failure=("Unhealthy", "Xid79"), max_recreations=3
)


def pods(*annotations: dict[str, str]) -> list[Pod]:
    return [
        waiting_pod(name, annotations=said)
        for name, said in zip("ab", annotations, strict=False)
    ]


def test_the_gang_object_s_word_counts_before_that_of_its_pods() -> None:
    assert find_recovery(pods(SAID, SAID), None) == READ
    assert find_recovery(pods(SAID, SAID), Gang()) == DeclaredRecovery()
    spec = GangSpec(
        recovery=READ.recovery,
        on_device_failure=READ.on_device_failure,
        max_recreations=READ.max_recreations,
    )
    assert find_recovery(pods({}, {}), Gang(spec=spec)) == READ
    assert find_recovery(pods({}, {}), None) == DeclaredRecovery()


@pytest.mark.parametrize(
    ("key", "values", "text"),
    [
        (RECOVERY, ("Pray", "Pray"), "'Pray' is not one of Report, Recreate"),
        (ON_DEVICE_FAILURE, ("A", "B"), "the pods disagree: A, B"),
        (ON_DEVICE_FAILURE, ("A,", "A,"), 'reasons[1]: Invalid value: "": must be a'),
        (MAX_RECREATIONS, ("-1", "-1"), "'-1' is not a number of times"),
        (MAX_RECREATIONS, ("9" * 10, "9" * 10), "'9999999999' is not a number of"),
    ],
)
def test_what_cannot_become_of_a_gang_is_told(
    key: str, values: tuple[str, str], text: str
) -> None:
    told = find_recovery(pods(*({**SAID, key: value} for value in values)), None)
    assert isinstance(told, NotReady)
    assert told.reason == "RecoveryInvalid"
    assert told.message.startswith(f"annotation {key}: {text}")
