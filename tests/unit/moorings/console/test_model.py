"""A page is told everything once, then what changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from contracts.fence import EpochClaimed
from contracts.ids import ClusterName, DriverName, GangUID, Namespace, NodeName
from contracts.messages import DevicesAnnounced, NodeSeen
from contracts.reports import WAITING, GroupReported, PodsReport, ReportWithdrawn
from contracts.topics import (
    DECISIONS,
    FENCE,
    HEARTBEAT_S,
    HEARTBEATS,
    INVENTORIES,
    REPORTS,
    SOLVES,
    SUBMISSIONS,
    Topic,
)
from moorings.console.holders import (
    find_freed,
    list_running,
    name_gangs,
    sum_amounts,
)
from moorings.console.model import MOST_SOLVES, ConsoleModel
from runtime.wire import Incoming
from tests import builders
from tests.builders.decisions import gang_allocated, submission
from tests.builders.solves import solve_decided, solve_opened

CLUSTER, NODE = ClusterName("local"), NodeName(builders.NODE)
POOL = builders.pool(*builders.devices(2))
ANNOUNCED = DevicesAnnounced(cluster=CLUSTER, node=NODE, pools=(POOL,))


def take(
    model: ConsoleModel,
    topic: Topic[Any],
    message: Any,
    now_s: float = 0,
    time_s: float = 0,
) -> None:
    incoming = Incoming(
        topic=topic,
        names=message.address,
        message=message,
        data=b"",
        sequence=1,
        time_s=time_s,
    )
    model.take(incoming, now_s)


def test_what_changed_is_told_once() -> None:
    model = ConsoleModel(CLUSTER)
    take(model, INVENTORIES, ANNOUNCED)
    assert set(model.update(0)["nodes"]) == {NODE}
    assert model.update(0) == {}
    take(model, SUBMISSIONS, submission())
    (row,) = model.update(0)["gangs"].values()
    assert row["phase"] == "Pending"
    whole = model.whole()
    assert (set(whole["nodes"]), len(whole["gangs"])) == ({NODE}, 1)


def test_a_node_is_silent_when_its_heartbeat_is_old() -> None:
    model = ConsoleModel(CLUSTER)
    take(model, INVENTORIES, ANNOUNCED)
    take(model, HEARTBEATS, NodeSeen(cluster=CLUSTER, node=NODE), 100.0)
    model.update(101.0)
    assert model.picture.records[NODE]["status"] == "ready"
    update = model.update(101.0 + HEARTBEAT_S)
    assert update["nodes"][NODE]["status"] == "silent"


def test_an_inventory_that_expired_is_not_shown() -> None:
    model = ConsoleModel(CLUSTER)
    take(model, INVENTORIES, ANNOUNCED)
    model.update(0)
    end = Incoming.end(INVENTORIES, INVENTORIES.subject_of(ANNOUNCED))
    model.take(end, 0)
    assert set(model.update(0)["nodes"]) == {NODE}
    assert model.picture.records.get(NODE, {"states": ""})["states"] == ""


def test_a_report_is_shown_until_it_is_withdrawn() -> None:
    model = ConsoleModel(CLUSTER)
    group: dict[str, Any] = {
        "cluster": CLUSTER,
        "namespace": Namespace("n"),
        "kind": "Gang",
        "name": "g",
    }
    report = PodsReport(phase=WAITING, reason="PodsMissing", pods=1)
    since = "2026-11-20T12:00:00Z"
    take(model, REPORTS, GroupReported(**group, since=since, reports=(report,)))
    ((name, row),) = model.update(0)["gangs"].items()
    assert (row["phase"], row["reason"]) == (WAITING, "PodsMissing: ")
    take(model, REPORTS, ReportWithdrawn(**group))
    assert model.update(0)["gangs"] == {name: None}


def test_a_solve_is_listed_with_its_answer_and_the_oldest_goes() -> None:
    model = ConsoleModel(CLUSTER)
    for number in range(MOST_SOLVES + 1):
        take(model, SOLVES, solve_opened(f"s{number}", CLUSTER))
    update = model.update(0)
    assert update["solves"]["s0"] is None
    assert len(model.solves) == MOST_SOLVES
    take(model, SOLVES, solve_decided("s1", CLUSTER))
    assert model.update(0)["solves"]["s1"]["status"] == "Optimal"


def test_messages_that_could_not_be_read_are_counted() -> None:
    model = ConsoleModel(CLUSTER)
    unread = [{"subject": "inv.v1.local.a", "why": "no JSON"}]
    assert model.update(0, 1, unread)["about"]["unread"] == 1


def test_who_holds_devices_and_what_would_be_free() -> None:
    model = ConsoleModel(CLUSTER)
    take(model, INVENTORIES, ANNOUNCED)
    take(model, SUBMISSIONS, submission())
    take(model, DECISIONS, gang_allocated(pods=1))
    model.update(0)
    (runs,) = list_running(model.known)
    name = name_gangs(model.known)[runs.record.key]
    assert (name, runs.devices) == (f"{builders.NAMESPACE}/train", 1)
    (freed,) = find_freed(model.known, {name})
    (device,) = freed.devices
    assert device.device == "gpu-0"
    (node,) = freed.amounts
    assert freed.amounts[node] == sum_amounts(model.known, node)
    assert find_freed(model.known, {"x/y"}) == []


def test_a_gang_is_found_by_its_uid() -> None:
    model = ConsoleModel(CLUSTER)
    take(model, SUBMISSIONS, submission())
    (story,) = model.stories
    assert story.records[-1].uid == GangUID(builders.UID)


def test_devices_that_the_solver_refuses_are_shown_as_such_once_it_says_so() -> None:
    model = ConsoleModel(CLUSTER)
    take(model, INVENTORIES, ANNOUNCED)
    assert model.update(0)["nodes"][NODE]["states"] == "FF"
    claim = EpochClaimed(
        cluster=CLUSTER,
        epoch=1,
        holder="s-1",
        lease_s=10,
        agent_drivers=(DriverName("other.example.com"),),
    )
    take(model, FENCE, claim)
    assert model.update(0)["nodes"][NODE]["states"] == "AA"
    take(model, FENCE, structs.replace(claim, agent_drivers=()))
    assert model.update(0)["nodes"][NODE]["states"] == "FF"


def test_that_no_solver_leads_is_told_until_one_does() -> None:
    """None ever did, one does, and one did some time ago."""
    model = ConsoleModel(CLUSTER)
    (never,) = model.update(0)["about"]["silences"]
    assert never.startswith("no solver has ever led in cluster local")
    now_s = datetime.now(UTC).timestamp()
    claim = EpochClaimed(cluster=CLUSTER, epoch=1, holder="s-1", lease_s=10)
    take(model, FENCE, claim, time_s=now_s)
    assert model.update(0)["about"]["silences"] == []
    take(model, FENCE, claim, time_s=now_s - 3600)
    (gone,) = model.update(0)["about"]["silences"]
    assert gone.startswith("no solver leads in cluster local: s-1 was last heard from")
