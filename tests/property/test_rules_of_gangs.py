"""Gangs with rules across their pods get the best answer there is, as trying all says.

Each answer was judged as well, by `allocate`, gang by gang.
"""

from __future__ import annotations

from collections import Counter

import pytest

from solver.allocate import allocate
from solver.decision import Status
from solver.engines import choose
from solver.engines.apart import APART
from tests.draw.gang_worlds import gang_world
from tests.lab.soak import sized
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.disagreement import disagreement

WORLDS = sized(400, 20_000)
AT_ONCE = WORLDS // 20
FEATURES = (
    "admin",
    "all",
    "alternatives",
    "derived",
    "distinct Gang",
    "distinct Member",
    "distinct Pod",
    "elastic",
    "even",
    "expected",
    "groups",
    "grows",
    "list",
    "match Gang",
    "match Member",
    "match Pod",
    "no label",
    "path",
    "plain",
    "Preferred attribute",
    "Preferred label",
    "Required attribute",
    "Required label",
    "seen by all",
    "seen by device",
    "seen by rack",
    "shareable",
    "shared by members",
    "shared claim",
    "spread",
    "standing",
    "two claims",
)
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, WORLDS, AT_ONCE))
def test_value_is_that_of_brute_force(first: int) -> None:
    """Who is in, and every tier, is what trying everything says."""
    for seed in range(first, first + AT_ONCE):
        problem, seen = gang_world(seed)
        try:
            brute = Brute(problem)
            best = brute.value()
        except TooManyWaysError:
            SEEN["skipped"] += 1
            continue
        decision = allocate(problem)
        SEEN.update(key for key in seen if seen[key])
        is_in = any(gang.members for gang in decision.gangs)
        SEEN["in" if is_in else "out"] += 1
        SEEN["cost"] += any(
            t.tier == "topology" and t.value for t in decision.objective
        )
        assert decision.status is Status.OPTIMAL, seed
        assert disagreement(decision.objective, brute.tiers(), best) == "", seed


@pytest.mark.parametrize("first", range(0, WORLDS // 4, AT_ONCE))
def test_parts_never_promise_more_than_there_is(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decided in parts no answer is better than the best, and no bound is below it."""
    monkeypatch.setattr(choose, "WHOLE", 0)
    for seed in range(first, first + AT_ONCE):
        problem, _ = gang_world(seed)
        elastic = any(gang.is_elastic for gang in problem.gangs)
        if len(problem.gangs) < 2 and not elastic:
            continue
        decision = allocate(problem)
        if decision.statistics.engine != APART and not elastic:
            continue
        try:
            best = Brute(problem).value()
        except TooManyWaysError:
            continue
        is_proven = decision.status is Status.OPTIMAL
        sort = "made rigid" if elastic else "apart"
        SEEN.update([sort, f"{sort}, proven"] if is_proven else [sort])
        for tier, value in zip(decision.objective, best, strict=False):
            if not tier.tier.is_gain:
                break
            assert tier.value <= value, seed
            assert tier.bound is None or tier.bound >= value, seed
            assert not is_proven or tier.value == value, seed
            if tier.value < value:
                break


def test_every_feature_was_met() -> None:
    """The law above is about all features, and about yes and no."""
    met = SEEN["in"] + SEEN["out"]
    assert met > WORLDS * 0.9, SEEN
    assert min(SEEN["in"], SEEN["out"]) > met // 5, SEEN
    assert SEEN["cost"] > met // 50, SEEN
    for sort in ("apart", "made rigid"):
        assert SEEN[sort] > WORLDS // 100, SEEN
        assert SEEN[f"{sort}, proven"] > WORLDS // 400, SEEN
    rare = {name for name in FEATURES if SEEN[name] < met // 100}
    assert not rare, (rare, SEEN)
