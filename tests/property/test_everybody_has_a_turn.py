"""The queue of gangs: nobody is passed over, priorities count, calls decide alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.lifecycle import GangRecord
from contracts.messages import CancelGang, SubmitGang
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import MOST_IN_A_ROW, BatchLimits
from solver.snapshot.events import ANYTHING
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import devices, gang, member, member_claim, pool
from tests.builders.problems import CLUSTER, snapshot_of
from tests.builders.solving import Solving

Shape = tuple[str, int, int]
"""(namespace, priority, pods) of a gang."""
SHAPES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-1, 1), st.integers(1, 9)),
    min_size=1,
    max_size=24,
)
LIMITS = st.builds(BatchLimits, gangs=st.integers(1, 6), pods=st.integers(1, 12))


def asked(shapes: list[Shape]) -> Snapshot:
    return snapshot_of({}, [shaped(n, shape) for n, shape in enumerate(shapes)])


def shaped(number: int, shape: Shape) -> Gang:
    namespace, priority, pods = shape
    return gang(
        member(member_claim(), count=pods),
        name=f"g{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
        priority=priority,
    )


def queue_of(snapshot: Snapshot) -> GangQueue:
    queue = GangQueue()
    for record in snapshot.waiting.values():
        queue.follow(record)
    return queue


def priority_of(record: GangRecord) -> int:
    assert record.submission is not None
    return record.submission.gang.spec.priority


@given(SHAPES, LIMITS)
def test_everybody_is_tried_in_each_round_whatever_grows(
    shapes: list[Shape], limits: BatchLimits
) -> None:
    """Each batch is tried in vain, and something grows for everybody before the next.

    A batch takes one gang of the round at least, so a round ends.
    """
    snapshot = asked(shapes)
    queue = queue_of(snapshot)
    for _ in range(3):
        left = set(snapshot.waiting)
        for _ in shapes:
            left -= {record.key for record in queue.choose(snapshot, limits)}
            queue.wake(snapshot, [ANYTHING])
        assert not left


@given(SHAPES, LIMITS)
def test_who_was_never_tried_comes_by_priority_and_in_a_namespace_by_age(
    shapes: list[Shape], limits: BatchLimits
) -> None:
    """Whatever grew meanwhile for those that were tried."""
    snapshot = asked(shapes)
    queue = queue_of(snapshot)
    first_tried: list[GangRecord] = []
    for _ in shapes:
        batch = queue.choose(snapshot, limits)
        assert list(batch) == sorted(
            batch, key=lambda r: (-priority_of(r), r.submission_sequence)
        )
        first_tried += [record for record in batch if record not in first_tried]
        queue.wake(snapshot, [ANYTHING])
    assert len(first_tried) == len(shapes)
    priorities = [priority_of(record) for record in first_tried]
    assert priorities == sorted(priorities, reverse=True)
    for line in {(r.namespace, priority_of(r)) for r in first_tried}:
        ages = [
            record.submission_sequence
            for record in first_tried
            if (record.namespace, priority_of(record)) == line
        ]
        assert ages == sorted(ages)


@given(SHAPES, LIMITS)
def test_a_namespace_waits_for_one_gang_of_each_other_at_most(
    shapes: list[Shape], limits: BatchLimits
) -> None:
    """However long their lines are: of those tried before it, no other has two more."""
    snapshot = asked([(namespace, 0, 1) for namespace, _, _ in shapes])
    queue = queue_of(snapshot)
    waiting = [record.namespace for record in snapshot.waiting.values()]
    tried: list[str] = []
    one = BatchLimits(gangs=1, pods=limits.pods)
    while batch := queue.choose(snapshot, one):
        tried.append(batch[0].namespace)
        for other in set(waiting):
            for each in set(waiting):
                if tried.count(each) < waiting.count(each):
                    assert tried.count(other) <= tried.count(each) + 1
    assert sorted(tried) == sorted(waiting)


@given(SHAPES, LIMITS, st.lists(st.booleans(), max_size=12))
def test_the_same_calls_give_the_same_order(
    shapes: list[Shape], limits: BatchLimits, grows: list[bool]
) -> None:
    snapshot = asked(shapes)
    one, other = queue_of(snapshot), queue_of(snapshot)
    for grown in grows:
        assert one.choose(snapshot, limits) == other.choose(snapshot, limits)
        if grown:
            one.wake(snapshot, [ANYTHING])
            other.wake(snapshot, [ANYTHING])


# --- pods that running gangs have lost ------------------------------------------------


def replacing(number: int, shape: Shape) -> SubmitGang:
    asking = shaped(number, shape)
    uid = GangUID(asking.metadata.uid)
    return SubmitGang(cluster=CLUSTER, uid=uid, gang=asking, restores=9)


def submitted(snapshot: Snapshot, *lost: SubmitGang) -> Snapshot:
    for message in lost:
        sequence = 1000 + int(message.uid[-12:])
        snapshot = apply(snapshot, message, sequence=sequence)
    return snapshot


def follow(queue: GangQueue, snapshot: Snapshot, message: SubmitGang) -> None:
    record = snapshot.gangs.get(message.key)
    assert record is not None
    queue.follow(record)


def replaces(record: GangRecord) -> bool:
    assert record.submission is not None
    return record.submission.restores > 0


@given(SHAPES, SHAPES, LIMITS)
def test_everybody_is_tried_in_each_round_beside_lost_pods(
    shapes: list[Shape], lost: list[Shape], limits: BatchLimits
) -> None:
    """Others wait for few batches of those, though something grows before each."""
    first = len(shapes)
    messages = [replacing(first + n, shape) for n, shape in enumerate(lost)]
    snapshot = submitted(asked(shapes), *messages)
    queue = queue_of(snapshot)
    for _ in range(3):
        left = set(snapshot.waiting)
        for _ in range((MOST_IN_A_ROW + 1) * (first + len(lost))):
            left -= {record.key for record in queue.choose(snapshot, limits)}
            queue.wake(snapshot, [ANYTHING])
        assert not left


@given(SHAPES, LIMITS, st.integers(-1, 1))
def test_a_gang_whose_pod_fails_again_and_again_keeps_nobody_waiting(
    shapes: list[Shape], limits: BatchLimits, priority: int
) -> None:
    """A new pod asks for its place before each batch, and everybody's turn comes."""
    snapshot = asked(shapes)
    queue = queue_of(snapshot)
    left = set(snapshot.waiting)
    for number in range(len(shapes), len(shapes) * (MOST_IN_A_ROW + 2)):
        message = replacing(number, ("a", priority, 1))
        snapshot = submitted(snapshot, message)
        follow(queue, snapshot, message)
        left -= {record.key for record in queue.choose(snapshot, limits)}
        queue.wake(snapshot, [ANYTHING])
        namespace = message.key.namespace
        cancel = CancelGang(cluster=CLUSTER, namespace=namespace, uid=message.uid)
        snapshot = apply(snapshot, cancel, sequence=number)
        follow(queue, snapshot, message)
    assert not left


@given(SHAPES, SHAPES, LIMITS)
def test_lost_pods_are_replaced_before_others_of_their_priority_are_decided(
    shapes: list[Shape], lost: list[Shape], limits: BatchLimits
) -> None:
    """Only what is more urgent may be decided beside them."""
    first = len(shapes)
    messages = [replacing(first + n, shape) for n, shape in enumerate(lost)]
    snapshot = submitted(asked(shapes), *messages)
    queue = queue_of(snapshot)
    for _ in range(MOST_IN_A_ROW):
        batch = queue.choose(snapshot, limits)
        ranks = [(priority_of(record), replaces(record)) for record in batch]
        top = max((rank for rank in ranks if rank[1]), default=None)
        assert top is None or min(ranks) == top


def test_a_lost_pod_gets_the_free_device_before_older_pods_and_others_the_rest() -> (
    None
):
    """Two devices are free, and three pods of another namespace wait for longer."""
    nodes = {"n": [pool(*devices(1), name="n")], "m": [pool(*devices(1), name="m")]}
    waiting = [shaped(n, ("b", 0, 1)) for n in range(3)]
    solving = Solving(snapshot_of(nodes, waiting))
    lost = replacing(7, ("a", 0, 1))
    solving.hear(lost)
    first, *_ = solving.decide()
    assert [each.uid for each in first.gangs] == [lost.uid]
    keys = [record.key for record in solving.snapshot.gangs.values()]
    assert solving.counts([lost.key]) == [1]
    assert sum(solving.counts(keys)) == 2
