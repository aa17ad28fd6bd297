"""Who fails alone rests for growing times, and takes little of everybody's time."""

from __future__ import annotations

from contracts.ids import Namespace
from solver.service.suspects import (
    FIRST_REST_S,
    MAX_REST_S,
    MOST_REMEMBERED,
    SHARE,
    Sign,
    Suspects,
)

TEAM = Namespace("team-a")
BAD = Sign(TEAM, "bad")


def test_rests_grow_up_to_a_limit() -> None:
    """Each failure doubles the rest."""
    suspects = Suspects()
    rests = [suspects.note_failure(BAD, now=0.0, cost_s=0.0) for _ in range(40)]
    assert rests[:3] == [FIRST_REST_S, 2 * FIRST_REST_S, 4 * FIRST_REST_S]
    assert max(rests) == rests[-1] == MAX_REST_S


def test_all_of_them_together_get_a_part_of_the_time() -> None:
    """Another one waits until the others had their share."""
    suspects = Suspects()
    other = Sign(TEAM, "other")
    suspects.note_failure(other, now=0.0, cost_s=0.0)
    suspects.note_failure(BAD, now=100.0, cost_s=10.0)
    assert suspects.rest_until(other) == 100.0 + SHARE * 10.0


def test_a_gang_is_known_by_what_it_says_in_its_namespace() -> None:
    """Nobody else's gang is one, whatever it says."""
    suspects = Suspects()
    assert not suspects.concern(TEAM)
    suspects.note_failure(BAD, now=0.0, cost_s=1.0)
    assert BAD in suspects
    assert suspects.concern(TEAM)
    assert Sign(TEAM, "changed") not in suspects
    assert not suspects.concern(Namespace("team-b"))
    suspects.clear(BAD)
    assert not suspects.concern(TEAM)


def test_no_more_than_some_are_remembered() -> None:
    """The one that failed longest ago is forgotten."""
    suspects = Suspects()
    for number in range(MOST_REMEMBERED + 1):
        suspects.note_failure(Sign(TEAM, str(number)), now=0.0, cost_s=0.0)
    assert Sign(TEAM, "0") not in suspects
    assert Sign(TEAM, str(MOST_REMEMBERED)) in suspects
