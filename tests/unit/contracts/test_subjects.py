"""Names become one token of a subject, and come back."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contracts import subjects
from contracts.errors import SubjectError
from contracts.ids import ClusterName, NodeName


@settings(deadline=None)
@given(st.text(min_size=1, max_size=40))
@example("node-1.example.com")
@example("a_b=2E c*>")
def test_every_name_comes_back_from_its_token(name: str) -> None:
    token = subjects.token(name)

    assert subjects.untoken(token) == name
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", token)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=8, unique=True))
def test_different_names_have_different_tokens(names: list[str]) -> None:
    assert len({subjects.token(name) for name in names}) == len(names)


def test_the_longest_kubernetes_name_fits_and_longer_ones_do_not() -> None:
    assert subjects.token("a" * 253)
    with pytest.raises(SubjectError):
        subjects.token("é" * 254)
    with pytest.raises(SubjectError, match="empty"):
        subjects.token("")


def test_subjects_follow_the_table() -> None:
    cluster, node = ClusterName("east"), NodeName("n1.example.com")

    assert subjects.inventory(cluster, node) == "inv.v1.east.n1_example_com"
    assert subjects.wildcard("inv", cluster) == "inv.v1.east.>"


def test_every_subject_has_a_stream_that_takes_it() -> None:
    streams = {stream.name: stream.subjects for stream in subjects.STREAMS}

    for row in subjects.SUBJECTS:
        heads = [subject.removesuffix(">") for subject in streams[row.stream]]
        assert any(row.pattern.startswith(head) for head in heads), row.pattern
