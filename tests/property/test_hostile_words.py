"""Whatever is said on the bus, each reader of the publisher takes what others say.

Messages that can be read, as extreme as their types allow, of a gang and of a node:
through what reads them, what plans by them, and what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contracts import messages, topics
from contracts.avoidance import NodesAvoided
from contracts.codec import encode
from contracts.device import ResourceSlice
from contracts.ids import DriverName, NodeName, PoolID, PoolName
from contracts.kubernetes.decode import to_kubernetes
from contracts.messages import DevicesAnnounced
from contracts.names import GANG
from contracts.topics import Topic
from publisher.cluster.gang_bus import GangBus
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.view import GroupKey
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.announcement_limits import AnnouncementLimits
from publisher.slices.announcements import Announcements
from publisher.slices.eviction_budget import EvictionBudget
from publisher.slices.layout import PoolLayout
from publisher.slices.reconciler import SliceReconciler
from publisher.slices.sink import SlicePlan
from publisher.steps import Create
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated
from tests.builders.plans import NOW, TRAIN, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod
from tests.draw import hostile
from tests.lab.heard_bus import HeardBus, Said

GANG_WORDS: dict[Topic[Any], Any] = {
    topics.SUBMISSIONS: messages.SubmissionMessage,
    topics.COMMANDS: messages.CommandMessage,
    topics.DECISIONS: messages.DecisionMessage,
    topics.CONFIRMATIONS: messages.ConfirmationMessage,
    topics.AVOIDANCES: NodesAvoided,
}
NODE_WORDS: dict[Topic[Any], Any] = {
    topics.INVENTORIES: messages.InventoryMessage,
    topics.HEALTH: messages.HealthMessage,
}
SOME = settings(
    suppress_health_check=list(HealthCheck),
)
LIMIT_S = 60.0
STEADY_UID = "00000000-0000-4000-8000-0000000000aa"


# --- of gangs -------------------------------------------------------------------------


def words_of_gang(topic: Topic[Any]) -> st.SearchStrategy[Said]:
    """Draw what may be said of the gang `train`, or of one of its name."""
    address = {"cluster": CLUSTER, "namespace": TRAIN.namespace}
    last = {"name": TRAIN.name} if topic is topics.AVOIDANCES else {"uid": builders.UID}
    names = (*address.values(), *last.values())
    bodies = hostile.bodies(GANG_WORDS[topic], **address, **last)
    return st.tuples(st.just(topic), st.just(names), bodies)


POD_A = waiting_pod("a", gang="train", size=2, templates=["gpus"])
POD_B = waiting_pod("b", gang="train", size=2, templates=["gpus"])
LIVES: tuple[tuple[Any, ...], ...] = (
    (),
    (submission_of((POD_A, POD_B)),),
    (submission_of((POD_A, POD_B)), gang_allocated(pods=2)),
)
STEADY_POD = waiting_pod("steady", gang="steady", templates=["gpus"])
STEADY_SAID = replace(submission_of((STEADY_POD,)), uid=cast("Any", STEADY_UID))
STEADY = GroupKey(TRAIN.namespace, "steady")
VIEW = view_of(
    (POD_A, POD_B, STEADY_POD),
    [real_claim(f"{name}-gpus") for name in ("a", "b", "steady")],
)
TOPIC_OF: dict[type[Any], Topic[Any]] = {
    messages.SubmitGang: topics.SUBMISSIONS,
    messages.GangAllocated: topics.DECISIONS,
}


def _steady() -> messages.SubmitGang:
    """Submit another gang."""
    gang = STEADY_SAID.gang
    metadata = replace(gang.metadata, name="steady", uid=STEADY_UID)
    metadata = replace(metadata, labels={**metadata.labels, GANG: "steady"})
    return replace(STEADY_SAID, gang=replace(gang, metadata=metadata))


def _plan(bus: GangBus, group: GroupKey) -> NextSteps:
    plan = plan_gang(
        PlanContext(
            cluster=CLUSTER,
            group=group,
            view=VIEW,
            records=bus.of_group(group),
            owns=lambda _: True,
            now=NOW,
        )
    )
    for message in plan.messages:
        encode(message)
    for patch in plan.patches:
        encode(patch.body)
    return plan


async def _read_gangs(said: Iterable[Said]) -> GangBus:
    """Read all of it, the other gang last."""
    steady = _steady()
    heard = HeardBus([*said, (topics.SUBMISSIONS, steady.address, steady)])

    async def ignore(_: object) -> None: ...

    bus = GangBus(CLUSTER, cast("Any", heard), ignore, VIEW.groups)
    read, stop = asyncio.Event(), asyncio.Event()
    read.set()
    await asyncio.gather(*(task(stop) for task in bus.tasks(read).values()))
    assert bus.synced.is_set()
    return bus


UNDISTURBED = _plan(asyncio.run(_read_gangs([])), STEADY)


@SOME
@given(
    life=st.sampled_from(LIVES),
    words=st.lists(
        st.sampled_from([*GANG_WORDS]).flatmap(words_of_gang), min_size=1, max_size=4
    ),
)
def test_nothing_said_of_a_gang_ends_a_plan(
    life: tuple[Any, ...], words: list[Said]
) -> None:
    """Neither its own, in any stage, nor another's; and the other's stays the same."""
    real = [(TOPIC_OF[type(said)], said.address, said) for said in life]
    bus = asyncio.run(_read_gangs([*real, *words]))
    for group in sorted({*bus.groups(), TRAIN} - {STEADY}):
        _plan(bus, group)
        bus.avoided(group.namespace, group.name)
    assert _plan(bus, STEADY) == UNDISTURBED


def test_the_other_gang_is_planned_for() -> None:
    """Or nothing would be shown by a plan that stays the same."""
    assert UNDISTURBED.reports


# --- of nodes -------------------------------------------------------------------------


def words_of_node(topic: Topic[Any]) -> st.SearchStrategy[Said]:
    """Draw what an agent may say."""
    bodies = hostile.bodies(NODE_WORDS[topic], cluster=CLUSTER, node="bad")
    return st.tuples(st.just(topic), st.just((CLUSTER, "bad")), bodies)


GOOD = PoolID(DriverName("gpu.example.com"), PoolName("good"))
ANNOUNCED = DevicesAnnounced(
    cluster=CLUSTER,
    node=NodeName("good"),
    pools=(builders.pool(*builders.devices(2), name="good"),),
)


class WrittenSlices:
    """Keeps the plans of one round, as an API server would be sent them."""

    def __init__(self, stop: asyncio.Event) -> None:
        self.written: dict[PoolID, list[object]] = {}
        self._stop = stop

    def pools(self) -> Iterable[PoolID]:
        """Nothing is there."""
        return ()

    def slices(self, _: PoolID) -> tuple[ResourceSlice, ...]:
        """Nothing is there."""
        return ()

    def owner_of(self, _: PoolLayout) -> None:
        """Nobody."""
        return

    async def carry_out(self, plans: Mapping[PoolID, SlicePlan]) -> dict[PoolID, Any]:
        """Note what is to be written."""
        for pool, plan in plans.items():
            assert all(isinstance(step, Create) for step in plan)
            self.written[pool] = [to_kubernetes(step.object) for step in plan]
        if GOOD in plans:
            self._stop.set()
        return {}


async def _write_slices(said: Iterable[Said]) -> Mapping[PoolID, list[object]]:
    """Read what agents said, and write what follows, the other node's last."""
    heard = HeardBus([*said, (topics.INVENTORIES, (CLUSTER, "good"), ANNOUNCED)])
    stop = asyncio.Event()
    sink = WrittenSlices(stop)
    announced = AnnouncedPools(lambda *_: True, EvictionBudget(100.0))
    slices = SliceReconciler(sink, announced, lambda: NOW)
    limits = AnnouncementLimits(worst_effect="NoExecute")
    reading = Announcements(
        CLUSTER, cast("Any", heard), announced, limits, slices.hear
    ).tasks()
    await reading["inventories"](stop)
    await reading["health"](stop)
    announced.admit_evictions(0.0)
    async with asyncio.timeout(LIMIT_S):
        await slices.publish(stop)
    return sink.written


ALONE = asyncio.run(_write_slices([]))[GOOD]


@SOME
@given(
    st.lists(
        st.sampled_from([*NODE_WORDS]).flatmap(words_of_node), min_size=1, max_size=4
    )
)
def test_nothing_that_an_agent_says_keeps_another_nodes_slices_back(
    words: list[Said],
) -> None:
    assert ALONE
    assert asyncio.run(_write_slices(words))[GOOD] == ALONE
