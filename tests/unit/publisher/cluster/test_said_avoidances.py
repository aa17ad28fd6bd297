"""What gangs avoid is remembered no longer than the bus remembers it."""

from __future__ import annotations

from contracts.avoidance import NodesAvoided
from contracts.ids import Namespace
from contracts.topics import DAY_S
from publisher.cluster.said_avoidances import SaidAvoidances
from tests.builders.decisions import CLUSTER


def counted(name: str, recreations: int = 1) -> NodesAvoided:
    return NodesAvoided(
        cluster=CLUSTER, namespace=Namespace("ml"), name=name, recreations=recreations
    )


def test_what_the_stream_has_forgotten_is_forgotten() -> None:
    said, old, new = SaidAvoidances(), counted("old"), counted("new")
    said.note(old.address, old, 0.0)
    assert said.get(old.address, DAY_S - 1.0) == old
    assert said.get(old.address, DAY_S) is None
    said.note(new.address, new, DAY_S)
    assert len(said) == 1
    assert said.get(new.address, DAY_S) == new


def test_what_is_said_again_is_remembered_from_then_on() -> None:
    said, old, other = SaidAvoidances(), counted("old"), counted("other")
    said.note(old.address, old, 0.0)
    said.note(other.address, other, 1.0)
    said.note(old.address, counted("old", 2), DAY_S / 2)
    said.note(other.address, other, DAY_S + 1.0)
    assert said.get(old.address, DAY_S + 1.0) == counted("old", 2)


def test_what_is_taken_back_or_says_nothing_leaves_nothing() -> None:
    said, message = SaidAvoidances(), counted("train")
    for nothing in (None, counted("train", 0)):
        said.note(message.address, message, 0.0)
        said.note(message.address, nothing, 1.0)
        assert len(said) == 0
