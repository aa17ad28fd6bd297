"""What is due is what differs from the bus, whatever order versions come in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from publisher.cluster.outbox import Outbox

SUBJECTS = st.sampled_from(["a", "b", "c"])
DATA = st.none() | st.sampled_from([b"1", b"2"])


def published(outbox: Outbox, bus: dict[str, bytes], most: int = 100) -> int:
    """Publish all that is due; gives how many messages that took."""
    batch = list(outbox.next(most))
    for subject, data in batch:
        if data is None:
            bus.pop(subject, None)
        else:
            bus[subject] = data
    outbox.done(batch)
    return len(batch)


@given(
    bus=st.dictionaries(SUBJECTS, st.sampled_from([b"1", b"2"])),
    puts=st.lists(st.tuples(SUBJECTS, DATA)),
)
def test_the_bus_holds_what_is_wanted_and_nothing_is_said_twice(
    bus: dict[str, bytes], puts: list[tuple[str, bytes | None]]
) -> None:
    """Exactly what differs is published, whatever the bus held before."""
    outbox, wanted = Outbox(), dict[str, bytes]()
    for subject, data in puts:
        outbox.put(subject, data)
        wanted.pop(subject, None)
        if data is not None:
            wanted[subject] = data
    assert not outbox
    different = {s for s in bus.keys() | wanted.keys() if bus.get(s) != wanted.get(s)}
    outbox.begin(bus)
    assert published(outbox, bus) == len(different)
    assert bus == wanted
    assert not outbox


@given(st.permutations([1, 2, 3, 4]), st.integers(0, 4))
def test_an_older_version_never_replaces_a_newer(
    versions: list[int], begun_after: int
) -> None:
    """In whatever order versions come, the newest one is on the bus."""
    outbox, bus = Outbox(), dict[str, bytes]()
    for number, version in enumerate(versions):
        if number == begun_after:
            outbox.begin(bus)
        outbox.put("a", b"%d" % version, version)
        published(outbox, bus)
    outbox.begin(bus)
    published(outbox, bus)
    assert bus == {"a": b"4"}


def test_what_changes_while_it_is_published_stays_due() -> None:
    """An answer to the old value does not settle the new one."""
    outbox = Outbox()
    outbox.begin({})
    outbox.put("a", b"1", 1)
    batch = list(outbox.next(10))
    outbox.put("a", b"2", 2)
    outbox.done(batch)
    assert list(outbox.next(10)) == [("a", b"2")]


def test_a_new_object_of_an_old_name_is_news_whatever_its_version() -> None:
    """Versions of two objects are not compared."""
    outbox = Outbox()
    outbox.begin({})
    outbox.put("a", b"1", 9)
    outbox.put("a", None)
    outbox.put("a", b"2", 3)
    assert list(outbox.next(10)) == [("a", b"2")]


def test_who_does_not_lead_has_nothing_due() -> None:
    """A standby publishes nothing and waits for nothing."""
    outbox = Outbox()
    outbox.begin({"a": b"1"})
    outbox.end()
    outbox.put("b", b"1")
    assert not outbox
    assert outbox.published < 0


@given(st.lists(st.tuples(SUBJECTS, DATA)), st.integers(1, 3))
def test_a_change_is_said_once_everything_before_it_is(
    puts: list[tuple[str, bytes | None]], batch_size: int
) -> None:
    """However busy it is: what came later does not count."""
    outbox, bus, wanted = Outbox(), dict[str, bytes](), dict[str, bytes]()
    outbox.begin({})
    for subject, data in puts:
        outbox.put(subject, data)
        wanted.pop(subject, None)
        if data is not None:
            wanted[subject] = data
        expected, changes = dict(wanted), outbox.changes
        published(outbox, bus, batch_size)
        if outbox.published >= changes:
            assert bus == expected
    while outbox:
        published(outbox, bus, batch_size)
    assert outbox.published == outbox.changes


def test_later_changes_of_others_are_not_waited_for() -> None:
    """Whoever waits for a change waits for those before it alone."""
    outbox = Outbox()
    outbox.begin({})
    outbox.put("a", b"1")
    changes, batch = outbox.changes, list(outbox.next(1))
    outbox.put("b", b"1")
    assert outbox.published < changes
    outbox.done(batch)
    assert outbox
    assert outbox.published >= changes
