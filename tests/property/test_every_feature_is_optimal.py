"""The model says what trying everything says, on drawn problems of every feature."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from solver.allocate import allocate
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import Status
from tests.brute import Brute, TooManyWaysError
from tests.brute_world import MalformedError
from tests.drawn import drawn

PROBLEMS = 20_000 if os.environ.get("MOORINGS_SOAK") else 2_000
AT_ONCE = 500
FEATURES = {
    "admin": "about-admin",
    "alternatives": "first-available",
    "all": "all",
    "binding": "binding",
    "capacity": "capacity-request",
    "compatibility groups": "compatibility-groups",
    "counters": "counters",
    "derived attributes": "derived-attributes",
    "distinct": "distinct",
    "generations": "about-generations",
    "held": "held",
    "lists": "list-attribute",
    "match": "match",
    "node fit": "node-fit",
    "per device": "per-device",
    "seen by all": "place-all",
    "seen by selector": "place-selector",
    "shareable": "shareable",
    "shared": "shared",
    "skip": "skip-node-operations",
    "taints": "taints",
}
"""What must occur, by the tag of the case."""
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as made:
        yield made


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_value_is_that_of_brute_force(first: int, evaluator: SelectorEvaluator) -> None:
    """All tiers equal the best of all answers, and are proven; the judge has agreed."""
    for seed in range(first, first + AT_ONCE):
        problem, tags = drawn(seed, evaluator)
        try:
            best = Brute(problem).value()
        except (TooManyWaysError, MalformedError):
            SEEN["not tried"] += 1
            continue
        decision = allocate(problem)
        tiers = [tier for tier in decision.objective if tier.tier <= 2]
        values = tuple(t.value if t.tier == 1 else -t.value for t in tiers)
        padded = (*values, *(0,) * (len(best) - len(values)))
        assert padded == best, f"seed {seed}: brute {best}, model {values}"
        assert decision.status is Status.OPTIMAL, f"seed {seed}"
        assert all(tier.bound == tier.value for tier in tiers)
        placed = any(gang.members for gang in decision.gangs)
        SEEN.update([*tags, "placed" if placed else "none"])


def test_every_feature_was_met() -> None:
    """The law above is about all features, and about yes and no."""
    met = SEEN["placed"] + SEEN["none"]
    assert SEEN["placed"] > met // 5, SEEN
    assert SEEN["not tried"] < met // 20, SEEN
    rare = {name for name, tag in FEATURES.items() if SEEN[tag] < met // 100}
    assert not rare, (rare, SEEN)
