"""How long a gang runs at most."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.gang import Gang, GangSpec
from contracts.names import DURATION
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import OwnerKey
from contracts.workload import Pod
from publisher.gangs.submit.durations import find_duration
from publisher.gangs.submit.readiness import NotReady
from tests.builders.pods import waiting_pod

OWNER = GangOwner(key=OwnerKey("Job", "team-a", "train"), uid="1", lasts_s=3600)


def pod(name: str, duration: str = "", deadline_s: int | None = None) -> Pod:
    made = waiting_pod(name, annotations={DURATION: duration} if duration else {})
    return replace(made, spec=replace(made.spec, active_deadline_seconds=deadline_s))


def test_the_author_s_word_counts_before_who_ends_the_pods() -> None:
    written = Gang(spec=GangSpec(duration="2h"))
    annotated = [pod("a", "1h30m", 60), pod("b", "1h30m", 60)]
    assert find_duration(annotated, written, OWNER) == "2h"
    assert find_duration(annotated, Gang(), OWNER) == "1h30m"
    assert find_duration([pod("a", "", 60)], None, OWNER) == "3600s"
    ended = [pod("a", "", 60), pod("b", "", 90)]
    assert find_duration(ended, None, None) == "90s"
    assert not find_duration([*ended, pod("c")], None, None)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (("soon", "soon"), "'soon' must be a duration such as"),
        (("1h", "2h"), "the pods disagree: 1h, 2h"),
        (("1h", ""), "the pods disagree: 1h"),
    ],
)
def test_what_is_no_duration_is_told(values: tuple[str, str], text: str) -> None:
    told = find_duration([pod("a", values[0]), pod("b", values[1])], None, None)
    assert isinstance(told, NotReady)
    assert told.reason == "DurationInvalid"
    assert told.message.startswith(f"annotation moorings.dev/duration: {text}")
