"""Subjects, streams and who uses them follow from one table."""

from __future__ import annotations

import pytest

from contracts import topics
from contracts.errors import AddressError
from contracts.ids import ClusterName, NodeName
from contracts.messages import NodeSeen
from contracts.streams import STREAMS


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
    with pytest.raises(AddressError, match="about east, a"):
        topics.HEARTBEATS.decode(("east", "b"), data)


def test_every_subject_has_a_stream_that_takes_it() -> None:
    """Each row of the table names a stream, and that stream stores its subjects."""
    streams = {stream.name: stream.subjects for stream in STREAMS}

    for family in (*topics.TOPICS, topics.BLOBS):
        heads = [subject.removesuffix(">") for subject in streams[family.stream]]
        assert any(family.pattern.startswith(head) for head in heads), family.pattern
