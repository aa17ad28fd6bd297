"""Why a gang waits, beside its reason: its place in line, and who has the devices."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.codec import to_builtins
from contracts.ids import ClusterName, NodeName
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DevicesAnnounced, ObjectObserved
from moorings.cli.views import print_explanation
from moorings.views.fold import DevicesFold
from moorings.views.gangs import explain_gang
from moorings.views.waiting import find_since, view_contested, view_wait
from tests import builders
from tests.builders.decisions import (
    CLUSTER,
    gang_allocated,
    gang_pending,
    submission,
)
from tests.builders.plans import record_of

LOCAL = ClusterName("local")


@pytest.mark.parametrize(
    ("said", "since"),
    [
        (["SubmitGang"], "1"),
        (["SubmitGang", "GangPending", "GangPending"], "1"),
        (["SubmitGang", "GangAllocated"], ""),
        (["SubmitGang", "GangAllocated", "AllocationRefused", "GangPending"], "3"),
        (["GangPending"], "1"),
        ([], ""),
    ],
)
def test_a_gang_waits_since_it_had_devices_last(said: list[str], since: str) -> None:
    """Or since it was submitted."""
    events = [{"what": what, "at": str(at)} for at, what in enumerate(said, start=1)]
    assert find_since(events) == since


def known_devices() -> DevicesFold:
    """Announce two devices, of which a gang holds one, and their class."""
    fold = DevicesFold()
    selector = f'device.driver == "{builders.DRIVER}"'
    raw = to_builtins(
        to_kubernetes(builders.device_class(builders.DEVICE_CLASS, selector))
    )
    messages: list[Any] = [
        ObjectObserved(
            cluster=LOCAL, kind="DeviceClass", key=builders.DEVICE_CLASS, object=raw
        ),
        DevicesAnnounced(
            cluster=CLUSTER,
            node=NodeName(builders.NODE),
            pools=(builders.pool(*builders.devices(2)),),
        ),
        submission(builders.gang(builders.member(), priority=7)),
        gang_allocated(),
    ]
    for sequence, message in enumerate(messages, start=1):
        fold.apply(message, sequence)
    return fold


def test_who_holds_the_devices_that_it_could_have_is_counted() -> None:
    contested = view_contested(record_of(submission()), known_devices().known())
    assert contested == [
        {
            "driver": builders.DRIVER,
            "states": {"Held": 1, "Free": 1},
            "holders": [
                {"gang": f"{builders.NAMESPACE}/train", "devices": 1, "priority": 7}
            ],
        }
    ]


def test_of_other_devices_nothing_is_said() -> None:
    """As where its class is not known."""
    assert view_contested(record_of(submission()), DevicesFold().known()) == []


def test_all_of_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, and the decisions as a table."""
    record = record_of(submission(), gang_pending())
    at = "2026-11-20T12:00:00Z"
    tried = [{"text": "1 more node like a", "helps": True}]
    explanation = explain_gang(record) | {
        "waitsSince": at,
        **view_wait(record, [record], known_devices().known()),
        "decisions": [
            {
                "at": at,
                "what": "GangPending",
                "solve": "s",
                "detail": "long",
                "reasons": ["DevicesTaken: long"],
            }
        ],
    }
    print_explanation(explanation)
    said = capsys.readouterr().out
    assert "  waits since 20" in said
    assert "  place 1 of 1 in line\n" in said
    assert f"  2 devices of {builders.DRIVER}: 1 held, 1 free\n    held by " in said
    assert f"`moorings explain {builders.NAMESPACE}/train --what-helps`" in said
    assert said.splitlines()[-1].split()[-2:] == ["s", "DevicesTaken"]
    print_explanation(explanation | {"help": {"solve": "s", "at": at, "tried": tried}})
    said = capsys.readouterr().out
    assert "    yes  1 more node like a\n" in said
    assert "--what-helps" not in said
    assert "none of the changes" not in said
    tried[0]["helps"] = False
    print_explanation(explanation | {"help": {"solve": "s", "at": at, "tried": tried}})
    assert "    none of the changes tried would be enough" in capsys.readouterr().out
