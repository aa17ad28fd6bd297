"""Every rule that can say no has advice."""

from __future__ import annotations

from contracts.allocation import Rule
from moorings.console.advice import ADVICE, OTHERWISE, advise


def test_every_rule_has_advice() -> None:
    assert set(ADVICE) == set(Rule)


def test_a_rule_of_another_version_is_no_error() -> None:
    assert advise("RuleOfTomorrow") == OTHERWISE
    assert advise(Rule.TAKEN) == ADVICE[Rule.TAKEN]
