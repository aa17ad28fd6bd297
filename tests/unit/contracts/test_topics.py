"""Messages, subjects and streams follow from one table, and all of them fit."""

from __future__ import annotations

import re

import pytest

from contracts import topics
from contracts.errors import AddressError
from contracts.ids import ClusterName, GangUID, Namespace, NodeName
from contracts.messages import MAX_BYTES, AllocationWritten, NodeSeen, PodWritten
from contracts.streams import STREAMS
from contracts.topics import CONFIRMATIONS
from tests.lab.manifests import BASE


def test_subjects_follow_the_table() -> None:
    """A topic builds its subjects from names and reads the names back."""
    subject = topics.INVENTORIES.subject("east", "n1.example.com")

    assert subject == "inv.v1.east.n1_example_com"
    assert topics.INVENTORIES.names_of(subject) == ("east", "n1.example.com")
    assert topics.INVENTORIES.subjects_below("east") == "inv.v1.east.>"
    assert topics.INVENTORIES.pattern == "inv.v1.<cluster>.<node>"


@pytest.mark.parametrize(
    "subject",
    ["inv.v1.east", "inv.v1.east.a.b", "inv.v2.east.a", "health.v1.east.a", "inv", ""],
)
def test_a_subject_of_another_form_is_refused(subject: str) -> None:
    """Names are read from the topic's own subjects and from nothing else."""
    with pytest.raises(AddressError):
        topics.INVENTORIES.names_of(subject)


def test_a_message_belongs_to_the_subject_of_its_address() -> None:
    """A message that says something else than its subject is no message."""
    seen = NodeSeen(cluster=ClusterName("east"), node=NodeName("a"))
    data = topics.HEARTBEATS.codec.encode(seen)

    assert topics.HEARTBEATS.subject_of(seen) == "hb.v1.east.a"
    assert topics.HEARTBEATS.decode(("east", "a"), data) == seen
    with pytest.raises(AddressError, match="belongs to east, a"):
        topics.HEARTBEATS.decode(("east", "b"), data)


def test_every_subject_has_a_stream_that_takes_it() -> None:
    """Each row of the table names a stream, and that stream stores its subjects."""
    streams = {stream.name: stream.subjects for stream in STREAMS}

    for family in (*topics.TOPICS, topics.BLOBS):
        heads = [subject.removesuffix(">") for subject in streams[family.stream]]
        assert any(family.pattern.startswith(head) for head in heads), family.pattern


WRITTEN = AllocationWritten(
    cluster=ClusterName("c"), namespace=Namespace("n"), uid=GangUID("u"), attempt=1
)


@pytest.mark.parametrize(("length", "named"), [(40, True), (200, False)])
def test_pods_are_named_unless_that_takes_too_much(length: int, named: bool) -> None:
    """A message fits the bus, with the names or without."""
    pods = tuple(
        PodWritten(member="w", index=i, pod="p" * length, claims={"gpus": "c" * 40})
        for i in range(5000)
    )
    message = WRITTEN.naming(pods)
    assert message.pods == (pods if named else ())
    assert message.pods_omitted is not named
    assert len(CONFIRMATIONS.codec.encode(message)) <= MAX_BYTES


CONF = (BASE / "nats" / "nats.conf").read_text()


def _limit(name: str) -> int:
    (number, unit), *_ = re.findall(rf"{name}: (\d+)(GB|MB)\n", CONF)
    return int(number) << {"GB": 30, "MB": 20}[unit]


def test_all_streams_together_fit_on_a_server() -> None:
    """The server sets the room apart, so none takes another's; a tenth stays free."""
    for storage, name in (("file", "max_file"), ("memory", "max_mem")):
        sizes = [s.max_bytes for s in STREAMS if s.storage == storage]
        assert all(size > 0 for size in sizes)
        assert sum(sizes) <= _limit(name) * 0.9


def test_only_what_nothing_follows_from_is_dropped_for_room() -> None:
    """Submissions, commands, decisions, confirmations and state are refused instead."""
    disposable = {stream.name for stream in STREAMS if stream.disposable}
    assert disposable == {"HB", "REPORT", "LEADS", "AVOID", "SOLVE", "BLOB"}
