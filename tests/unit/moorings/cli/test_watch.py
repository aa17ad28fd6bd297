"""Each event is one line: what happened to which gang."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.messages import (
    AllocationRefused,
    AllocationWritten,
    ConfirmationMessage,
    DecisionMessage,
    PodWritten,
)
from contracts.topics import CONFIRMATIONS, DECISIONS, Topic
from moorings.bus_client import Client
from moorings.cli.output import Format
from moorings.cli.watch import EventFilter, Watch
from moorings.errors import UsageError
from moorings.views.events import MOST_PODS, describe
from runtime.bus.bus import Bus
from runtime.wire import Incoming
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated, gang_pending

DECISION = gang_allocated(pods=2)
WRITTEN = AllocationWritten(
    cluster=DECISION.cluster, namespace=DECISION.namespace, uid=DECISION.uid, attempt=1
)


def written(count: int) -> AllocationWritten:
    """Write a gang of so many pods."""
    pods = tuple(
        PodWritten(member="worker", index=index, pod=f"train-{index}")
        for index in range(count)
    )
    return replace(WRITTEN, pods=pods)


class DecisionBus:
    """Has the decision of the gang."""

    def __init__(self) -> None:
        self.reads = 0

    async def read_last(self, topic: Topic[Any], *names: str) -> Incoming[Any]:
        """Return the decision."""
        self.reads += 1
        return incoming(DECISION, topic, names)


def incoming(
    message: DecisionMessage | ConfirmationMessage | None,
    topic: Topic[Any] = DECISIONS,
    names: tuple[str, ...] = (),
) -> Incoming[Any]:
    """Let a message come."""
    return Incoming(topic=topic, names=names, message=message, data=b"{}", sequence=1)


def watch(
    bus: DecisionBus,
    namespace: str | None = None,
    output: Format = Format.TABLE,
    *,
    gang: str = "",
    kinds: tuple[str, ...] = (),
) -> Watch:
    """Watch a bus."""
    wanted = EventFilter.of(gang, namespace, kinds)
    return Watch(Client(cast("Bus", bus), CLUSTER), wanted, output, 0)


def test_a_decision_is_told_in_numbers_and_a_refusal_by_its_first_reason() -> None:
    """Nodes are counted once."""
    assert describe(DECISION) == "2 pods on 1 node"
    reasons = (Reason(rule=Rule.WITHDRAWN, message="one"), Reason(rule=Rule.WITHDRAWN))
    assert describe(replace(gang_pending(), reasons=reasons)) == str(reasons[0])
    assert describe(gang_pending()) == ""


def test_growth_is_told_by_what_is_new() -> None:
    """And a refusal of it by what stays."""
    assert describe(replace(DECISION, kept={"worker": 1})) == (
        "2 pods on 1 node, 1 new"
    )
    refused = AllocationRefused(
        cluster=DECISION.cluster,
        namespace=DECISION.namespace,
        uid=DECISION.uid,
        attempt=2,
        reason="disk full",
    )
    assert describe(refused) == "disk full"
    assert describe(replace(refused, keeps=True)) == "unchanged: disk full"


def test_only_the_first_pods_are_named() -> None:
    """A line is a line."""
    text = describe(written(MOST_PODS + 2))
    assert f"train-{MOST_PODS - 1}" in text
    assert f"train-{MOST_PODS}" not in text


async def test_a_confirmation_is_named_after_its_decision(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which is read once, and not at all where it was on a line before."""
    bus = DecisionBus()
    watching = watch(bus)
    for _ in range(2):
        await watching._print_event(incoming(WRITTEN, CONFIRMATIONS))
    assert bus.reads == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3:5] for line in lines] == [
        ["AllocationWritten", f"{builders.NAMESPACE}/train"]
    ] * 2
    fresh = DecisionBus()
    watching = watch(fresh)
    await watching._print_event(incoming(DECISION))
    await watching._print_event(incoming(WRITTEN, CONFIRMATIONS))
    assert fresh.reads == 0


async def test_other_namespaces_and_what_was_removed_are_no_events(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For machines the line is the message as it travelled."""
    other = watch(DecisionBus(), "team-b")
    await other._print_event(incoming(DECISION))
    await other._print_event(incoming(None))
    assert capsys.readouterr().out == ""
    machine = watch(DecisionBus(), builders.NAMESPACE, Format.JSON)
    await machine._print_event(incoming(DECISION))
    assert capsys.readouterr().out == "{}\n"


@pytest.mark.parametrize(
    ("gang", "kinds", "shown"),
    [
        ("train", (), ["GangAllocated", "AllocationWritten"]),
        (f"{builders.NAMESPACE}/train", ("gangallocated",), ["GangAllocated"]),
        (DECISION.uid, ("AllocationWritten",), ["AllocationWritten"]),
        ("other", (), []),
        ("team-b/train", (), []),
        ("", ("GangPending",), []),
    ],
)
async def test_only_events_of_the_gang_and_kinds_are_shown(
    capsys: pytest.CaptureFixture[str],
    gang: str,
    kinds: tuple[str, ...],
    shown: list[str],
) -> None:
    """A confirmation does not say its gang's name: its decision does."""
    for form in Format.TABLE, Format.JSON:
        watching = watch(DecisionBus(), None, form, gang=gang, kinds=kinds)
        await watching._print_event(incoming(DECISION))
        await watching._print_event(incoming(WRITTEN, CONFIRMATIONS))
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == len(shown)
        if form is Format.TABLE:
            assert [line.split()[3] for line in lines] == shown


def test_only_streams_with_what_is_wanted_are_read() -> None:
    assert EventFilter().topics == (DECISIONS, CONFIRMATIONS)
    assert EventFilter.of("", None, ["GatesOpened"]).topics == (CONFIRMATIONS,)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean GangAllocated"):
        EventFilter.of("", None, ["GangAlocated"])
    with pytest.raises(UsageError, match="not in namespace team-b"):
        EventFilter.of("team-a/train", "team-b", ())
