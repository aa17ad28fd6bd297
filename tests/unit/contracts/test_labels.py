"""Label selectors select as the API server's do."""

from __future__ import annotations

import pytest

from contracts.labels import LabelSelector, LabelSelectorRequirement, does_match

LABELS = {"app": "train", "tier": "a"}


def by(operator: str, *values: str, key: str = "app") -> LabelSelector:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=values)
    return LabelSelector(match_expressions=(requirement,))


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        (LabelSelector(), True),
        (LabelSelector(match_labels={"app": "train", "tier": "a"}), True),
        (LabelSelector(match_labels={"app": "train", "tier": "b"}), False),
        (by("In", "serve", "train"), True),
        (by("In", "serve"), False),
        (by("In", "train", key="none"), False),
        (by("NotIn", "serve"), True),
        (by("NotIn", "train"), False),
        (by("NotIn", "train", key="none"), True),
        (by("Exists"), True),
        (by("Exists", key="none"), False),
        (by("DoesNotExist"), False),
        (by("DoesNotExist", key="none"), True),
        (by("Resembles", "train"), False),
    ],
)
def test_a_selector_selects(selector: LabelSelector, *, holds: bool) -> None:
    assert does_match(selector, LABELS) is holds
