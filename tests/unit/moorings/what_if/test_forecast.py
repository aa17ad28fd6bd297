"""What a what-if says is what is decided once things have changed: the same bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from msgspec import structs

from contracts.device import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangUID,
    NodeName,
    PoolName,
    SolveID,
)
from contracts.messages import (
    DevicesAnnounced,
    GangReleased,
    ObjectGone,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from moorings.deciding import Judged
from moorings.errors import UnknownNameError
from moorings.what_if.changes import TAINT, Changes
from moorings.what_if.forecast import Settings, answer_what_if
from solver.allocate import allocate
from solver.decision import DECISION
from solver.problem.assemble import assemble, resolve_gangs
from solver.problem.expected import PastDemand, list_last
from solver.problem.quota.asked import count_held
from solver.problem.quota.quotas import is_held_up_by_others, keep_quotas
from solver.problem.sharing import waits_for_another
from solver.queueing.gang_queue import GangQueue, urgency_of
from solver.queueing.queue_order import QueueOrder
from solver.queueing.rounds import BatchLimits
from solver.queueing.turns import pick_first
from solver.record import sha_of
from solver.service.messages import make_decision, make_release
from solver.snapshot.snapshot import InventoryExpired, Snapshot, apply
from solver.timeline.patience import NEVER
from tests.builders.devices import devices, pool
from tests.builders.gangs import gang, node
from tests.builders.problems import (
    CLUSTER,
    PARAMETERS,
    observe,
    observe_core,
)
from tests.builders.queues import cluster_queue, flavor, local_queue, with_queues
from tests.builders.simulated import evaluate_rows
from tests.builders.timeline import World, worker
from tests.builders.values import DEVICE_CLASS, DRIVER
from tests.lab.soak import sized

LATER = 1000
"""Sequences from here on are not taken."""


def device_id(node: str, name: str) -> DeviceID:
    return DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(name))


def judge(world: World) -> Judged:
    """Go on with the verdicts that are known of a world."""
    judged = Judged(evaluate_rows)
    judged.table = world.asker().table
    return judged


def settings(judged: Judged, patience_s: int = NEVER) -> Settings:
    return Settings(
        cluster=CLUSTER,
        parameters=PARAMETERS,
        judged=judged,
        patience_s=patience_s,
        now_s=100,
    )


def decide_as_a_service(snapshot: Snapshot, judged: Judged) -> list[str]:
    """Decide what waits, batch by batch, and return the hashes of the decisions."""
    features, hashes = PARAMETERS.features, list[str]()
    past, queue = PastDemand(), GangQueue()
    past.note(resolve_gangs(snapshot, list_last(snapshot.gangs.values()), features))
    queue.follow_queues(snapshot)
    for record in sorted(snapshot.waiting.values(), key=urgency_of):
        queue.follow(record)
    number = 2 * LATER
    while True:
        queue.wake(snapshot, snapshot.grown)
        snapshot = snapshot.without_grown()
        order = QueueOrder(snapshot, features)
        pick = order.pick if order.has_queues else pick_first
        limits = BatchLimits()
        batch = queue.choose(snapshot, limits, admits=order.takes, pick=pick)
        if not batch:
            return hashes
        within = keep_quotas(snapshot, resolve_gangs(snapshot, batch, features))
        judged.learn(snapshot, within.gangs)
        table = judged.table
        past.note(within.gangs)
        expected = past.expect(within.gangs, snapshot.inventory.pages, table)
        problem = assemble(
            snapshot, within.gangs, table, PARAMETERS, expected, quotas=within.quotas
        )
        decision = allocate(problem)
        hashes.append(sha_of(DECISION.encode(decision)))
        parts = zip(batch, within.gangs, decision.gangs, strict=True)
        for record, part, answer in parts:
            held = count_held(part, answer.members)
            message = make_decision(
                answer, record, cluster=CLUSTER, solve=SolveID(""), epoch=1, quota=held
            )
            if message is not None:
                number += 1
                snapshot = apply(snapshot, message, sequence=number, time_s=100)
                queue.follow(snapshot.gangs.get(record.key) or record)
        for waits in (snapshot.waiting.get(record.key) for record in batch):
            reasons = () if waits is None else waits.reasons
            if is_held_up_by_others(reasons) or waits_for_another(reasons):
                assert waits is not None
                queue.retry([waits.key])


def draw_world(draw: random.Random) -> World:
    """Draw a fleet on which some gangs run, and others wait."""
    world = World(draw.randrange(2, 6), 4)
    if draw.random() < 0.6:
        quotas = {"any": {DEVICE_CLASS: draw.randrange(2, 16), "cpu": 10_000}}
        world.snapshot = with_queues(
            world.snapshot,
            flavor("any"),
            cluster_queue("q", quotas),
            local_queue("team-a", "q"),
        )
    for number in range(draw.randrange(1, 5)):
        name = f"runs-{number}"
        try:
            world.start(name, draw.randrange(1, 3), draw.choice((1, 2, 4)), cpu=1)
        except AssertionError:
            world.cancel(name)
        else:
            if draw.random() < 0.5:
                world.run(name, cpu=1)
    for number in range(draw.randrange(4)):
        gpus = draw.choice((1, 2, 4))
        priority = draw.randrange(3)
        world.submit(f"waits-{number}", draw.randrange(1, 4), gpus, priority=priority)
    return world


def change_really(
    snapshot: Snapshot, changes: Changes, added: list[SubmitGang]
) -> Snapshot:
    """Let all of it happen, by what the bus says of it."""
    for message in _list_ends(snapshot, changes):
        snapshot = apply(snapshot, message, sequence=LATER)
    for like, count in changes.add_nodes.items():
        for number in range(1, count + 1):
            name = f"{like}-what-if-{number}"
            announced = DevicesAnnounced(
                cluster=CLUSTER,
                node=NodeName(name),
                pools=(pool(*devices(4), name=name),),
            )
            snapshot = observe_core(snapshot, node(name))
            snapshot = apply(snapshot, announced)
    for name in changes.without_nodes:
        snapshot = apply(snapshot, InventoryExpired(node=name))
        snapshot = apply(snapshot, ObjectGone(cluster=CLUSTER, kind="Node", key=name))
    for device in changes.taint:
        selector = DeviceTaintSelector(
            driver=device.driver, pool=device.pool, device=device.device
        )
        taint = DeviceTaint(key=TAINT, effect="NoSchedule")
        spec = DeviceTaintRuleSpec(device_selector=selector, taint=taint)
        rule = DeviceTaintRule(metadata=ObjectMeta(name="sick"), spec=spec)
        snapshot = observe(snapshot, "sick", rule)
    for amount in changes.quotas.values():
        quotas = {"any": {DEVICE_CLASS: amount.nano // 10**9, "cpu": 10_000}}
        snapshot = with_queues(snapshot, cluster_queue("q", quotas))
    for number, submitted in enumerate(added, start=LATER + 1):
        snapshot = apply(snapshot, submitted, sequence=number, time_s=100)
    return snapshot


def _list_ends(
    snapshot: Snapshot, changes: Changes
) -> Iterator[GangReleased | ObjectGone]:
    for name in changes.free:
        (record,) = (r for r in snapshot.placed.values() if r.name == name)
        outcome = ReleaseOutcome.COMPLETED
        yield make_release(record, outcome, cluster=CLUSTER, epoch=1)
        assert record.placed is not None
        for placed in record.placed.members:
            for claim in placed.claims:
                key = f"{claim.ref.namespace}/{claim.ref.name}-x7f2k"
                yield ObjectGone(cluster=CLUSTER, kind="ResourceClaim", key=key)
            key = f"{record.namespace}/{name}-{placed.member}-{placed.index}"
            yield ObjectGone(cluster=CLUSTER, kind="Pod", key=key)


def draw_changes(draw: random.Random, world: World) -> Changes:
    nodes = sorted(world.snapshot.inventory.nodes)
    running = sorted(r.name for r in world.snapshot.placed.values())
    has_queue = "q" in world.snapshot.queues.cluster_queues
    changes = Changes()
    if running and draw.random() < 0.5:
        changes = structs.replace(changes, free=(draw.choice(running),))
    if draw.random() < 0.4:
        changes = structs.replace(changes, add_nodes={nodes[0]: draw.randrange(1, 3)})
    if draw.random() < 0.3:
        changes = structs.replace(changes, without_nodes=(nodes[-1],))
    if draw.random() < 0.4:
        tainted = device_id(nodes[0], f"gpu-{draw.randrange(4)}")
        changes = structs.replace(changes, taint=(tainted,))
    if has_queue and draw.random() < 0.5:
        amount = Quantity.parse(str(draw.randrange(20)))
        changes = structs.replace(changes, quotas={f"q/{DEVICE_CLASS}": amount})
    return changes


@pytest.mark.parametrize("seed", range(sized(40, 1000)))
def test_what_is_forecast_is_what_is_decided(seed: int) -> None:
    draw = random.Random(seed)
    world = draw_world(draw)
    changes = draw_changes(draw, world)
    added = [
        SubmitGang(
            cluster=CLUSTER,
            uid=GangUID(f"new-{n}"),
            gang=gang(worker(draw.randrange(1, 3), 2), name=f"new-{n}", uid=f"new-{n}"),
        )
        for n in range(draw.randrange(3))
    ]
    snapshot = world.snapshot
    judged = judge(world)
    answer = answer_what_if(snapshot, changes, added, settings(judged))
    really = change_really(snapshot, changes, added)
    assert list(answer.decisions.after) == decide_as_a_service(really, judged)
    assert list(answer.decisions.before) == decide_as_a_service(snapshot, judged)
    assert world.snapshot is snapshot


def test_an_end_lets_a_gang_in_and_the_rest_stays() -> None:
    world = World(2)
    world.start("first")
    world.start("second")
    world.submit("waits")
    answer = answer_what_if(
        world.snapshot, Changes(free=("first",)), (), settings(judge(world))
    )
    differs = {each.name: each for each in answer.gangs if each.differs}
    assert sorted(differs) == ["team-a/first", "team-a/waits"]
    waits, first = differs["team-a/waits"], differs["team-a/first"]
    assert (str(waits.before), str(waits.after)) == ("waits", "allocated on 1 node")
    assert (str(first.before), str(first.after)) == ("runs on 1 node", "ended")
    assert answer.is_yes


def test_promises_stand_beside_the_decisions() -> None:
    world = World(2)
    world.start("runs", at_s=0.0, duration="1h")
    world.wait_for("waits", pods=2)
    changes = Changes(add_nodes={NodeName("n-0"): 1})
    answer = answer_what_if(world.snapshot, changes, (), settings(judge(world), 0))
    (waits,) = (each for each in answer.gangs if each.name == "team-a/waits")
    assert waits.before is not None
    assert waits.before.starts_by == "1970-01-01T01:00:00Z"
    assert waits.before.proven
    assert str(waits.after) == "allocated on 2 nodes"


def test_a_gang_on_a_node_that_goes_is_named() -> None:
    world = World(2)
    world.start("runs")
    (on,) = (pod.node for pod in world["runs"].placed.members)  # type: ignore[union-attr]
    answer = answer_what_if(
        world.snapshot, Changes(without_nodes=(on,)), (), settings(judge(world))
    )
    (runs,) = answer.gangs
    assert runs.after is not None
    assert runs.after.reasons == (f"it has pods on {on}, which is gone",)


@pytest.mark.parametrize(
    "changes",
    [
        Changes(free=("nobody",)),
        Changes(without_nodes=(NodeName("n-7"),)),
        Changes(add_nodes={NodeName("n-7"): 1}),
        Changes(taint=(device_id("n-0", "gpu-99"),)),
        Changes(taint=(device_id("n-7", "gpu-0"),)),
        Changes(quotas={"q/gpu": Quantity.parse("1")}),
    ],
)
def test_what_is_not_there_is_named(changes: Changes) -> None:
    world = World(1)
    with pytest.raises(UnknownNameError):
        answer_what_if(world.snapshot, changes, (), settings(judge(world)))
