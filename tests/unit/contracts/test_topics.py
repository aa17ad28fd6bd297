"""Names become one token of a subject, and come back."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contracts import topics
from contracts.errors import AddressError, SubjectError
from contracts.ids import ClusterName, NodeName
from contracts.messages import NodeSeen


@settings(deadline=None)
@given(st.text(min_size=1, max_size=40))
@example("node-1.example.com")
@example("a_b=2E c*>")
def test_every_name_comes_back_from_its_token(name: str) -> None:
    """And a token has no character that NATS gives a meaning."""
    token = topics.token(name)

    assert topics.untoken(token) == name
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", token)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=8, unique=True))
def test_different_names_have_different_tokens(names: list[str]) -> None:
    """No two objects share a subject."""
    assert len({topics.token(name) for name in names}) == len(names)


def test_the_longest_kubernetes_name_fits_and_longer_ones_do_not() -> None:
    """An empty name is none."""
    assert topics.token("a" * 253)
    with pytest.raises(SubjectError):
        topics.token("é" * 254)
    with pytest.raises(SubjectError, match="empty"):
        topics.token("")


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
    streams = {stream.name: stream.subjects for stream in topics.STREAMS}

    for family in (*topics.TOPICS, topics.BLOBS):
        heads = [subject.removesuffix(">") for subject in streams[family.stream]]
        assert any(family.pattern.startswith(head) for head in heads), family.pattern
