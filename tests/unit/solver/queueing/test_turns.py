"""Whose turn it is."""

from __future__ import annotations

from contracts.ids import GangKey, GangUID, Namespace
from solver.queueing.turns import Ticket, Turns


def key(uid: str, namespace: str = "a") -> GangKey:
    return GangKey(Namespace(namespace), GangUID(uid))


def ticket(
    uid: str,
    age: int,
    namespace: str = "a",
    priority: int = 0,
    *,
    replaces: bool = False,
) -> Ticket:
    gang = key(uid, namespace)
    return Ticket(gang=gang, priority=priority, age=age, pods=1, replaces=replaces)


def taken(turns: Turns) -> list[str]:
    """Take everybody, in turn."""
    found: list[str] = []
    while (first := turns.peek()) is not None:
        turns.take(first)
        found.append(first.gang.uid)
    return found


def test_turns_go_by_priority_then_namespace_then_age() -> None:
    """In whatever order gangs come."""
    turns = Turns()
    for each in (
        ticket("young", 3),
        ticket("old", 1),
        ticket("other", 2, "b"),
        ticket("urgent", 9, "b", priority=1),
    ):
        turns.put(each)
    assert len(turns) == 4
    assert taken(turns) == ["urgent", "old", "other", "young"]
    assert turns.peek() is None


def test_lost_pods_are_replaced_before_others_of_their_priority() -> None:
    """In turns of their own: the rotation of the others stays where it is."""
    turns = Turns()
    for each in (
        ticket("old", 1),
        ticket("other", 2, "b"),
        ticket("urgent", 3, priority=1),
        ticket("lost", 4, replaces=True),
        ticket("lost too", 5, "b", replaces=True),
    ):
        turns.put(each)
    assert turns.find_replacing() == (0, True)
    assert turns.has_below((0, True))
    assert not turns.has_below((0, False))
    turns.pass_over_rank((0, True))
    assert turns.find_replacing() is None
    turns.resume()
    assert taken(turns) == ["urgent", "lost", "lost too", "old", "other"]
    assert not turns.has_below((9, True))


def test_a_rotation_goes_on_where_it_stopped() -> None:
    """A namespace that comes back joins at the end."""
    turns = Turns()
    for age in range(3):
        turns.put(ticket(f"a{age}", age))
        turns.put(ticket(f"b{age}", age, "b"))
    first = turns.peek()
    assert first is not None
    turns.take(first)
    assert first.gang.uid == "a0"
    turns.put(first)
    assert taken(turns) == ["b0", "a0", "b1", "a1", "b2", "a2"]


def test_a_gang_is_put_once_and_found_until_it_is_removed() -> None:
    """Put again, what was said last counts."""
    turns = Turns()
    turns.put(ticket("g", 1))
    turns.put(ticket("g", 2, priority=5))
    assert turns.get(key("g")) == ticket("g", 2, priority=5)
    assert turns.remove(key("g")) == ticket("g", 2, priority=5)
    assert turns.remove(key("g")) is None
    assert turns.get(key("g")) is None
    assert taken(turns) == []


def test_two_namespaces_may_use_one_uid() -> None:
    """Neither takes the other's turn."""
    turns = Turns()
    turns.put(ticket("g", 1))
    turns.put(ticket("g", 2, "b"))
    assert turns.remove(key("g")) == ticket("g", 1)
    assert turns.peek() == ticket("g", 2, "b")
