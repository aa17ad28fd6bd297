"""Who was over before a process began is told by the subject of what is said of it."""

from __future__ import annotations

import pytest

from contracts import topics
from contracts.ids import GangKey, GangUID, Namespace
from runtime.past_gangs import PastGangs

OVER = GangKey(Namespace("team"), GangUID("u-1"))


@pytest.mark.parametrize(
    ("namespace", "uid", "skipped"),
    [("team", "u-1", True), ("other", "u-1", False), ("team", "u-2", False)],
)
def test_a_subject_is_one_gang_s(namespace: str, uid: str, skipped: bool) -> None:
    """Of its namespace and uid, in any cluster and any topic of gangs."""
    past = PastGangs()
    past.add(OVER)
    for topic in topics.GANG_TOPICS:
        assert past.skips(topic.subject("c", namespace, uid)) is skipped


def test_nobody_is_skipped_by_a_name_that_only_looks_like_theirs() -> None:
    """`a.b` is written `a_b`, which is how the text of another gang may read."""
    past = PastGangs()
    past.add(GangKey(Namespace("a_b"), GangUID("u")))
    assert not past.skips(topics.SUBMISSIONS.subject("c", "a.b", "u"))
    assert not past.skips(topics.SUBMISSIONS.subject("c", "a_b", "u"))
    assert not past.skips("fence.v1.c")


def test_who_lives_again_is_read() -> None:
    """Its submission is another one."""
    past = PastGangs()
    past.add(OVER)
    past.discard(OVER)
    assert not past.skips(topics.SUBMISSIONS.subject("c", "team", "u-1"))


def test_once_all_was_read_nobody_is_past() -> None:
    """Whatever is said from then on counts, and nothing is kept."""
    past = PastGangs()
    past.add(OVER)
    past.close()
    past.add(OVER)
    assert not past.has(OVER)
    assert not past.skips(topics.COMMANDS.subject("c", "team", "u-1"))
