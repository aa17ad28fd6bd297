"""Pods that are expected are surveyed from those that came, and leave room."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from contracts.device import ResourcePool
from contracts.gang import Gang, Member
from contracts.ids import GangUID, Namespace, NodeName, SolveID
from contracts.lifecycle import GangRecord
from contracts.messages import DevicesAnnounced, SubmitGang
from solver.allocate import allocate
from solver.problem.assemble import assemble, find_missing_verdicts, resolve_gangs
from solver.problem.expected import (
    MOST_PODS,
    NAMESPACE_PODS,
    PAST_GANGS,
    PAST_KINDS,
    PastDemand,
    list_last,
)
from solver.problem.gangs import GangPart
from solver.problem.problem import ExpectedPart
from solver.problem.surveys import Surveys
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable
from solver.service.messages import make_decision
from solver.snapshot.pages import Page
from solver.snapshot.snapshot import NodePresence, Snapshot, apply
from tests.builders import device, devices, gang, member, member_claim, pool, request
from tests.builders.models import DRAWN_UID
from tests.builders.patterns import nodes_of_sizes
from tests.builders.problems import CLUSTER, PARAMETERS, PlainEvaluator, snapshot_of

ONE = BatchLimits(gangs=1, pods=100)


def of_pod(number: int, count: int = 1, **fields: object) -> Gang:
    """Ask for one pod with so many devices."""
    pod = member(member_claim(request(count=count, **fields)))  # type: ignore[arg-type]  # fields of one builder
    return gang(pod, name=f"g{number}", uid=DRAWN_UID.format(number))


def resolved(snapshot: Snapshot) -> tuple[GangPart, ...]:
    records = choose_batch(snapshot, BatchLimits(gangs=10_000, pods=100_000))
    return resolve_gangs(snapshot, records, PARAMETERS.features)


def table_of(snapshot: Snapshot, gangs: tuple[GangPart, ...]) -> SelectorTable:
    table = SelectorTable()
    while missing := find_missing_verdicts(snapshot, gangs, table):
        table = table.with_verdicts(missing, PlainEvaluator().evaluate(missing))
    return table


def expected(snapshot: Snapshot) -> tuple[ExpectedPart, ...]:
    """Say what is expected after all these gangs were asked for."""
    past, gangs = PastDemand(), resolved(snapshot)
    past.note(gangs)
    return past.expect((), snapshot.inventory.pages, table_of(snapshot, gangs))


def place_in_turn(snapshot: Snapshot, *gangs: Gang) -> list[NodeName]:
    """Decide gangs as they come, as the service does; return each pod's node."""
    past, nodes = PastDemand(), []
    for number, item in enumerate(gangs, start=1):
        message = SubmitGang(cluster=CLUSTER, uid=item.metadata.uid, gang=item)  # type: ignore[arg-type]  # a uid
        snapshot = apply(snapshot, message, sequence=number)
        (record,) = choose_batch(snapshot, ONE)
        parts = resolve_gangs(snapshot, [record], PARAMETERS.features)
        past.note(parts)
        table = table_of(snapshot, parts)
        coming = past.expect((), snapshot.inventory.pages, table)
        (answer,) = allocate(assemble(snapshot, parts, table, PARAMETERS, coming)).gangs
        decision = make_decision(
            answer, record, cluster=CLUSTER, solve=SolveID("s"), epoch=1
        )
        assert decision is not None
        snapshot = apply(snapshot, decision, sequence=number)
        nodes += [pod.node for pod in answer.members]
    return nodes


def test_six_single_pods_break_one_node_of_eight() -> None:
    """One after the other, nothing configured: three nodes stay whole."""
    snapshot = snapshot_of(nodes_of_sizes(8, 8, 8, 8))
    assert set(place_in_turn(snapshot, *map(of_pod, range(6)))) == {"n0"}


def test_the_last_device_of_a_used_node_goes_before_a_whole_node() -> None:
    """However many single pods have come."""
    snapshot = snapshot_of(nodes_of_sizes(8, 8, 8))
    nodes = place_in_turn(snapshot, *map(of_pod, range(16)))
    assert Counter(nodes) == {"n0": 8, "n1": 8}


def test_a_pair_takes_the_place_that_fits_it() -> None:
    """After pods of six, five and one: what is left is two, three, eight."""
    snapshot = snapshot_of(nodes_of_sizes(8, 8, 8))
    pods = [of_pod(0, 6), of_pod(1, 5), of_pod(2, 2)]
    assert place_in_turn(snapshot, *pods) == ["n0", "n1", "n0"]


def test_a_gang_prefers_nodes_that_are_used() -> None:
    """Four pods fill what is left of two nodes; the third stays whole."""
    snapshot = snapshot_of(nodes_of_sizes(8, 8, 8))
    pods = member(member_claim(request(count=2)), count=4)
    four = gang(pods, name="four", uid=DRAWN_UID.format(9))
    nodes = place_in_turn(snapshot, of_pod(0, 5), of_pod(1, 5), of_pod(2, 4), four)
    assert "n2" not in nodes[:2]
    assert len(set(nodes)) == 3


def test_what_was_asked_for_counts_by_its_pods() -> None:
    """Three pods of one weigh three times one pod of four."""
    gangs = [of_pod(0, 4), of_pod(1), of_pod(2), of_pod(3)]
    found = expected(snapshot_of(nodes_of_sizes(8), gangs))
    weights = {part.size: part.weight for part in found[:2]}
    assert weights[1000] // 3 == weights[4000]


@pytest.mark.parametrize("came", [1, 4])
def test_whole_nodes_count_as_one_pod_that_came(came: int) -> None:
    """And what halving them leads to: with the first pod half, later less."""
    pods = [of_pod(number) for number in range(came)]
    found = expected(snapshot_of(nodes_of_sizes(8, 8, 4), pods))
    shapes = {part.size: part.weight for part in found[1:]}
    assert set(shapes) == {8000, 4000, 2000, 1000}
    assert found[0].weight == came * sum(shapes.values())


def test_a_share_counts_as_a_part_of_a_device() -> None:
    """Three of eight are 375 thousandths; rounded up."""
    shared = [device("d", capacity={"memory": "8"}, allow_multiple_allocations=True)]
    asked = of_pod(0, capacity={"memory": "3"})
    found = expected(snapshot_of({"n": [pool(*shared, name="n")]}, [asked]))
    assert found[0].size == 375


def test_a_gang_that_is_tried_again_counts_once() -> None:
    """Who waits comes up again and again."""
    snapshot = snapshot_of(nodes_of_sizes(8), [of_pod(0), of_pod(1, 4)])
    gangs = resolved(snapshot)
    once, often = PastDemand(), PastDemand()
    once.note(gangs)
    for _ in range(9):
        often.note(gangs)
    table, pages = table_of(snapshot, gangs), snapshot.inventory.pages
    assert once.expect((), pages, table) == often.expect((), pages, table)


def test_the_past_is_bounded() -> None:
    """What came longer ago is forgotten, and kinds have a limit."""
    snapshot = snapshot_of(nodes_of_sizes(8), [of_pod(0, 3), of_pod(1)])
    old, new = resolved(snapshot)
    past = PastDemand()
    past.note([old])
    past.note(
        structs.replace(new, uid=DRAWN_UID.format(number))
        for number in range(2 * PAST_GANGS)
    )
    found = past.expect((), snapshot.inventory.pages, table_of(snapshot, (old, new)))
    assert 3000 not in {part.size for part in found}
    many = snapshot_of(nodes_of_sizes(8), [of_pod(n, n) for n in range(1, 61)])
    assert len(expected(many)) <= PAST_KINDS + 8


def weights_after(past: PastDemand, snapshot: Snapshot) -> dict[int, int]:
    """Weigh the kinds that came, by the thousandths of a device that they take."""
    table = table_of(snapshot, resolved(snapshot))
    found = past.expect((), snapshot.inventory.pages, table)
    return {
        part.size: part.weight for part in found if part.member.claims[0].name == ""
    }


def in_namespace(part: GangPart, namespace: str, *numbers: int) -> list[GangPart]:
    return [
        structs.replace(part, namespace=namespace, uid=DRAWN_UID.format(number))
        for number in numbers
    ]


def test_no_namespace_pushes_out_what_others_asked_for() -> None:
    """However often it submits: of who has fewer gangs in the past all are known."""
    snapshot = snapshot_of(nodes_of_sizes(8), [of_pod(0, 3), of_pod(1, 5)])
    few, many = resolved(snapshot)
    past = PastDemand()
    past.note(in_namespace(few, "quiet", *range(100)))
    past.note(in_namespace(many, "loud", *range(10 * PAST_GANGS)))
    weights = weights_after(past, snapshot)
    assert weights[3000] == weights[5000] * 100 // NAMESPACE_PODS
    alone = PastDemand()
    alone.note(in_namespace(many, "loud", *range(10 * PAST_GANGS)))
    assert set(weights_after(alone, snapshot)) & {3000, 5000} == {5000}


@pytest.mark.parametrize(("others", "counted"), [(400, 400), (1, NAMESPACE_PODS)])
def test_no_namespace_counts_for_more_than_all_others(
    others: int, counted: int
) -> None:
    """Where that are very few, for so many pods."""
    snapshot = snapshot_of(nodes_of_sizes(8), [of_pod(0, 3), of_pod(1, 5)])
    few, many = resolved(snapshot)
    huge = structs.replace(
        many, members=(structs.replace(many.members[0], count=9_000),)
    )
    past = PastDemand()
    past.note(in_namespace(huge, "loud", 1))
    past.note(in_namespace(few, "quiet", *range(others)))
    weights = weights_after(past, snapshot)
    assert weights[3000] == weights[5000] * others // counted


def test_a_start_knows_the_gangs_that_it_would_have_known() -> None:
    """The last of each namespace, as many as of the others."""
    records = [
        GangRecord(
            uid=GangUID(str(number)),
            namespace=Namespace("quiet" if number < 9 else "loud"),
            submission_sequence=number,
        )
        for number in range(3 * PAST_GANGS)
    ]
    last = list_last(records)
    assert len(last) == PAST_GANGS
    assert last[:9] == records[:9]
    assert last[9:] == records[9 - PAST_GANGS :]


@pytest.mark.parametrize(
    "pod",
    [
        member(member_claim(request(admin_access=True))),
        member(member_claim(request(mode="All"))),
    ],
)
def test_pods_that_bound_nothing_are_not_expected(pod: Member) -> None:
    """Without devices of a number there is no room to keep."""
    asked = gang(pod, uid=DRAWN_UID.format(1))
    assert expected(snapshot_of(nodes_of_sizes(8), [asked])) == ()


def test_a_kind_whose_selectors_are_not_known_is_left_out() -> None:
    """A verdict that nobody evaluated is not waited for."""
    snapshot = snapshot_of(nodes_of_sizes(8), [of_pod(0)])
    past = PastDemand()
    past.note(resolved(snapshot))
    assert past.expect((), snapshot.inventory.pages, SelectorTable()) == ()


def test_a_kind_whose_verdicts_were_forgotten_is_left_out() -> None:
    """It was known before; a Problem with it would lack rows."""
    snapshot = snapshot_of(nodes_of_sizes(8), [of_pod(0)])
    past, pages = PastDemand(), snapshot.inventory.pages
    past.note(resolved(snapshot))
    table = table_of(snapshot, resolved(snapshot))
    found = past.expect((), pages, table)
    assert found
    assert past.expect((), pages, SelectorTable()) == ()
    assert past.expect((), pages, table) == found


@pytest.mark.parametrize(
    ("pods", "is_expected"), [(MOST_PODS, True), (MOST_PODS + 1, False)]
)
def test_a_batch_that_is_too_large_leaves_out_what_is_expected(
    pods: int, *, is_expected: bool
) -> None:
    """It would only be counted: nothing pursues it there."""
    asked = gang(member(member_claim(request()), count=pods))
    snapshot = snapshot_of(nodes_of_sizes(8), [asked])
    past, batch = PastDemand(), resolved(snapshot)
    past.note(batch)
    found = past.expect(batch, snapshot.inventory.pages, table_of(snapshot, batch))
    assert bool(found) is is_expected


ALL: tuple[str, ...] = ()
"""Selectors that every device passes."""
TABLE = SelectorTable()


def surveyed(surveys: Surveys, snapshot: Snapshot) -> dict[int, int]:
    surveys.follow(snapshot.inventory.pages)
    return surveys.of(ALL, TABLE).nodes


def announce(snapshot: Snapshot, name: str, *pools: ResourcePool) -> Snapshot:
    message = DevicesAnnounced(cluster=CLUSTER, node=NodeName(name), pools=pools)
    return apply(snapshot, message)


def test_a_change_is_counted_wherever_it_is() -> None:
    """A node grows, one comes on a page of its own, one goes with its page."""
    surveys, snapshot = Surveys(), snapshot_of(nodes_of_sizes(8, 8, 4))
    assert surveyed(surveys, snapshot) == {8: 2, 4: 1}
    assert surveys.is_known(ALL, TABLE)
    snapshot = announce(snapshot, "n2", pool(*devices(6), name="n2"))
    assert surveyed(surveys, snapshot) == {8: 2, 6: 1}
    for number in range(3, 40):
        name = f"n{number}"
        snapshot = announce(snapshot, name, pool(*devices(2), name=name))
        assert surveyed(surveys, snapshot) == {8: 2, 6: 1, 2: number - 2}
    assert surveys.is_known(ALL, TABLE)
    snapshot = announce(snapshot, "n0")
    assert surveyed(surveys, snapshot) == {8: 1, 6: 1, 2: 37}


def test_the_capacity_of_a_share_is_the_most_of_any_device() -> None:
    small, large = (
        device("d", capacity={"memory": size}, allow_multiple_allocations=True)
        for size in ("8", "16")
    )
    surveys, snapshot = Surveys(), snapshot_of({"n": [pool(large, name="n")]})
    for shared, most in ((large, 16), (small, 8)):
        snapshot = announce(snapshot, "n", pool(shared, name="n"))
        surveys.follow(snapshot.inventory.pages)
        assert surveys.of(ALL, TABLE).capacity == {"memory": most * 10**9}


def test_nothing_is_read_again_where_no_pool_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is used of nodes changes pages all the time."""
    surveys, snapshot = Surveys(), snapshot_of(nodes_of_sizes(8, 8))
    assert surveyed(surveys, snapshot) == {8: 2}
    monkeypatch.setattr("solver.problem.surveys.find_distinct_pools", _read_again)
    away = apply(snapshot, NodePresence(node=NodeName("n1"), away=True))
    pages: list[Page] = list(away.inventory.pages)
    assert pages != list(snapshot.inventory.pages)
    assert surveyed(surveys, away) == {8: 2}


def _read_again(*_: object) -> None:
    raise AssertionError("read again")
