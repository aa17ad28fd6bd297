"""Of a namespace with a quota the most urgent gangs are tried; the others wait."""

from __future__ import annotations

from contracts.ids import GangKey, GangUID, Namespace
from contracts.messages import CancelGang
from solver.queueing.gang_queue import GangQueue
from solver.queueing.places import Moved, Places
from solver.queueing.rounds import BatchLimits
from solver.queueing.turns import Ticket
from solver.quotas import Quotas
from solver.snapshot.events import ANYTHING
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import gang
from tests.builders.problems import CLUSTER, snapshot_of

TWO = Quotas.read(["a=2", "closed=0"])


def ticket(
    age: int, *, priority: int = 0, namespace: str = "a", replaces: bool = False
) -> Ticket:
    key = GangKey(Namespace(namespace), GangUID(f"uid-{age}"))
    return Ticket(gang=key, priority=priority, age=age, pods=1, replaces=replaces)


def test_a_more_urgent_gang_takes_the_place_of_the_least_urgent() -> None:
    """By priority, then age; whose place is free again gives it to the next."""
    places = Places(TWO)
    first, second, third = ticket(1), ticket(2), ticket(3)
    assert places.put(second) == Moved(entered=(second,))
    assert places.put(third) == Moved(entered=(third,))
    assert places.put(first) == Moved(entered=(first,), displaced=(third,))
    urgent, late = ticket(9, priority=1), ticket(4)
    assert places.put(late) == Moved()
    assert places.put(urgent) == Moved(entered=(urgent,), displaced=(second,))
    assert [places.is_beyond(t.gang) for t in (first, second, third, late)] == [
        False,
        True,
        True,
        True,
    ]
    assert places.count(Namespace("a")) == 5
    assert places.remove(third.gang) == Moved()
    assert places.remove(first.gang) == Moved(entered=(second,))
    assert places.remove(urgent.gang) == Moved(entered=(late,))
    for gone in (second, late):
        assert places.remove(gone.gang) == Moved()
    assert places.count(Namespace("a")) == 0


def test_who_replaces_lost_pods_is_more_urgent_than_others_of_its_priority() -> None:
    places = Places(TWO)
    first, second, lost = ticket(1), ticket(2, priority=1), ticket(3, replaces=True)
    places.put(first)
    places.put(second)
    assert places.put(lost) == Moved(entered=(lost,), displaced=(first,))
    assert places.remove(lost.gang) == Moved(entered=(first,))


def test_without_a_quota_everybody_has_a_place_and_of_zero_nobody() -> None:
    """Who is not limited is not even kept."""
    places = Places(TWO)
    free, closed = ticket(1, namespace="b"), ticket(2, namespace="closed")
    assert places.put(free) == Moved(entered=(free,))
    assert places.count(Namespace("b")) == 0
    assert places.put(closed) == Moved()
    assert places.get_beyond(closed.gang) == closed
    assert places.remove(closed.gang) == Moved()
    assert places.remove(free.gang) == Moved()


def waiting(*priorities: int) -> Snapshot:
    wanted = [
        gang(
            name=f"g{number}",
            namespace="a",
            uid=f"00000000-0000-4000-8000-{number:012}",
            priority=priority,
        )
        for number, priority in enumerate(priorities)
    ]
    return snapshot_of({}, wanted)


def tried(queue: GangQueue, snapshot: Snapshot) -> list[str]:
    return [record.name for record in queue.choose(snapshot, BatchLimits())]


def test_who_has_no_place_is_not_tried_whatever_grows() -> None:
    """Until one of its namespace is decided or ends."""
    snapshot = waiting(0, 0, 0, 5)
    queue = GangQueue(TWO)
    for record in sorted(
        snapshot.waiting.values(), key=lambda record: record.submission_sequence
    ):
        queue.follow(record)
    assert tried(queue, snapshot) == ["g3", "g0"]
    queue.wake(snapshot, [ANYTHING])
    assert tried(queue, snapshot) == ["g3", "g0"]
    assert sorted(key.uid[-1] for key in queue.displaced) == ["1", "2"]
    (first,) = [r for r in snapshot.waiting.values() if r.name == "g0"]
    message = CancelGang(cluster=CLUSTER, namespace=first.namespace, uid=first.uid)
    snapshot = apply(snapshot, message, sequence=1)
    ended = snapshot.gangs.get(first.key)
    assert ended is not None
    queue.follow(ended)
    assert tried(queue, snapshot) == ["g1"]
    assert [key.uid[-1] for key in queue.displaced] == ["2"]
