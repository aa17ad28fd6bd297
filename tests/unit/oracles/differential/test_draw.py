"""Cases repeat by seed, and every trait and its pairs occur."""

from __future__ import annotations

import json
from itertools import combinations

from tests.oracles.differential.case import DEFAULTS, generate
from tests.oracles.differential.draw import TRAITS

SEEDS = range(1500)


def test_a_seed_makes_the_same_case_again() -> None:
    """A failure can be repeated by its number."""
    for seed in SEEDS[:50]:
        assert json.dumps(generate(seed)) == json.dumps(generate(seed))


def test_every_pair_of_traits_occurs() -> None:
    """Nearly every one, in so many cases."""
    met = {
        pair
        for seed in SEEDS
        for pair in combinations(
            sorted(tag for tag in generate(seed)["tags"] if tag.startswith("about-")), 2
        )
    }
    names = sorted(f"about-{trait}" for trait in TRAITS)
    missing = set(combinations(names, 2)) - met
    assert len(missing) <= len(names) // 4, sorted(missing)


def test_every_switch_is_seen_on_and_off() -> None:
    """Both ways of each feature gate are compared."""
    seen = {
        (name, value)
        for seed in SEEDS
        for name, value in generate(seed)["features"].items()
    }
    assert seen == {(name, value) for name in DEFAULTS for value in (True, False)}
