"""What people may type after `get` and `explain`."""

from __future__ import annotations

import pytest

from moorings.cli.get import hint_at_kinds, parse_target
from moorings.errors import UsageError


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("gangs", None), ("gangs", None)),
        (("gang", "train"), ("gangs", "train")),
        (("train", None), ("gangs", "train")),
        (("team/train", None), ("gangs", "team/train")),
        (("po", None), ("pods", None)),
        (("pod/train-0", None), ("pods", "train-0")),
        (("no", "node-1"), ("nodes", "node-1")),
        (("solve/1f", None), ("solves", "1f")),
        (("device/gpu-0", None), ("devices", "gpu-0")),
        (("cq", None), ("queues", None)),
        (("clusterqueue.kueue.x-k8s.io/team-a", None), ("queues", "team-a")),
    ],
)
def test_kinds_and_names_are_written_as_for_kubectl(
    words: tuple[str, str | None], target: tuple[str, str | None]
) -> None:
    assert parse_target(*words) == target


def test_two_words_begin_with_a_kind() -> None:
    with pytest.raises(UsageError, match="the kinds are devices, gangs, nodes, pods"):
        parse_target("train", "worker")


@pytest.mark.parametrize(
    ("words", "is_guessed"),
    [
        (("train", None), True),
        (("team/train", None), True),
        (("gangs", "train"), False),
        (("gangs", "gangs"), False),
        (("gang/train", None), False),
        (("gangs", None), False),
    ],
)
def test_other_kinds_are_hinted_at_where_the_kind_was_guessed(
    words: tuple[str, str | None], is_guessed: bool
) -> None:
    assert bool(hint_at_kinds(words[0], parse_target(*words))) == is_guessed
