"""Annotations of ClusterQueues that do not count are told, with the reason."""

from __future__ import annotations

import pytest

from solver.timeline.queue_annotations import find_unread


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("patience", "soon", "must be a duration"),
        ("preemption-delay", "", "must be a duration"),
        ("aging", "1h", "must be a duration and how many steps"),
        ("reservations", "many", "must be a number, 0 to 16"),
        ("pacience", "5m", "is unknown; there are moorings.dev/aging"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, text: str, told: str) -> None:
    (said,) = find_unread({f"moorings.dev/{name}": text})
    assert said.startswith(f"moorings.dev/{name} ")
    assert told in said


def test_what_counts_and_what_is_others_is_not() -> None:
    said = {"patience": "never", "aging": "1h/10", "reservations": "99"}
    ours = {f"moorings.dev/{name}": text for name, text in said.items()}
    assert not [*find_unread({**ours, "kueue.x-k8s.io/patience": "soon"})]
