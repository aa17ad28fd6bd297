"""Each gang is tried once a round, and those that replace lost pods come first."""

from __future__ import annotations

from contracts.ids import GangKey, GangUID, Namespace
from contracts.lifecycle import GangRecord
from solver.queueing.rounds import MOST_IN_A_ROW, Batch, BatchLimits, Rounds
from solver.queueing.turns import Ticket
from solver.snapshot.maps import FrozenMap


def ticket(
    number: int, pods: int = 1, *, priority: int = 0, replaces: bool = False
) -> Ticket:
    gang = GangKey(Namespace("default"), GangUID(str(number)))
    return Ticket(
        gang=gang, priority=priority, age=number, pods=pods, replaces=replaces
    )


MANY = BatchLimits()


def choose(rounds: Rounds, limits: BatchLimits = MANY, count: int = 9) -> list[int]:
    records: FrozenMap[GangKey, GangRecord] = FrozenMap()
    for number in range(count):
        key = ticket(number).gang
        record = GangRecord(uid=key.uid, namespace=key.namespace)
        records = records.with_item(key, record)
    batch = Batch(records, lambda _: True)
    rounds.fill(batch, limits)
    return [each.age for each in batch.tickets]


def test_half_of_a_batch_is_for_those_that_were_tried_before() -> None:
    """The rest is for this round; what is left of a batch is for them again."""
    rounds = Rounds()
    for number in range(4):
        rounds.put(ticket(number))
        rounds.put_again(ticket(number + 4))
    assert choose(rounds, BatchLimits(gangs=4)) == [4, 5, 0, 1]
    assert choose(rounds, BatchLimits(gangs=6)) == [6, 7, 2, 3]
    assert not len(rounds)


def test_a_round_ends_when_nobody_is_due() -> None:
    """Then those that were tried before are due."""
    rounds = Rounds()
    rounds.put_again(ticket(1))
    rounds.put_again(ticket(2))
    assert choose(rounds, BatchLimits(gangs=1)) == [1]
    assert choose(rounds, BatchLimits(gangs=1)) == [2]


def test_a_single_gang_may_be_larger_than_a_batch() -> None:
    """Whatever part of one is for it."""
    rounds = Rounds()
    rounds.put(ticket(1, pods=100))
    rounds.put(ticket(2, pods=100))
    limits = BatchLimits(gangs=2, pods=8).part(4)
    assert limits == BatchLimits(gangs=0, pods=2)
    assert choose(rounds, limits) == [1]
    assert choose(rounds, limits) == [2]


def test_who_is_not_there_any_more_takes_no_place() -> None:
    rounds = Rounds()
    rounds.put(ticket(7))
    rounds.put(ticket(1))
    assert choose(rounds, BatchLimits(gangs=1), count=3) == [1]
    assert rounds.remove(ticket(1).gang) is None


def test_lost_pods_are_replaced_without_others_of_their_priority_beside() -> None:
    """More urgent gangs may be decided with them; the others come next."""
    rounds = Rounds()
    rounds.put_again(ticket(1))
    rounds.put(ticket(2))
    rounds.put(ticket(3, replaces=True))
    rounds.put_again(ticket(4, replaces=True))
    rounds.put(ticket(5, priority=1))
    rounds.put(ticket(6, priority=-1, replaces=True))
    assert sorted(choose(rounds)) == [3, 4, 5]
    assert sorted(choose(rounds)) == [1, 2, 6]
    assert not len(rounds)


def test_others_wait_for_few_such_batches() -> None:
    """Though pods fail again before each batch, or something grows for them."""
    rounds = Rounds()
    rounds.put(ticket(1))
    for number in range(2, 2 + MOST_IN_A_ROW):
        rounds.put(ticket(number, replaces=True))
        assert choose(rounds) == [number]
    rounds.put(ticket(7, replaces=True))
    rounds.put_again(ticket(8, replaces=True))
    assert choose(rounds, BatchLimits(gangs=1)) == [1]
    assert sorted(choose(rounds)) == [7, 8]
    rounds.put(ticket(1))
    rounds.put(ticket(2, replaces=True))
    assert choose(rounds) == [2], "the count begins anew"


def test_a_batch_of_those_who_waited_has_others_where_there_is_room() -> None:
    rounds = Rounds()
    rounds.put(ticket(1))
    for number in range(MOST_IN_A_ROW):
        rounds.put(ticket(2 + number, replaces=True))
        assert choose(rounds) == [2 + number]
    rounds.put(ticket(8, replaces=True))
    assert choose(rounds) == [1, 8]


def test_batches_for_which_nobody_waits_do_not_count() -> None:
    rounds = Rounds()
    for number in range(2, 8):
        rounds.put(ticket(number, replaces=True))
        assert choose(rounds) == [number]
    rounds.put(ticket(1))
    rounds.put(ticket(8, replaces=True))
    assert choose(rounds) == [8]


def test_nobody_waits_for_a_gang_that_is_not_there_any_more() -> None:
    rounds = Rounds()
    rounds.put(ticket(7, replaces=True))
    rounds.put(ticket(1))
    assert choose(rounds, count=3) == [1]
    assert not len(rounds)
