"""How much a run tries: `make test` some of everything, `make soak` all of it."""

from __future__ import annotations

import os

from hypothesis import settings

VARIABLE = "MOORINGS_SOAK"
SOAK = os.environ.get(VARIABLE, "") not in {"", "0"}


def sized(usual: int, soak: int) -> int:
    """Choose how many cases are tried, by the kind of run."""
    return soak if SOAK else usual


def load_profile() -> None:
    """Have Hypothesis draw 30 examples, or 1,000 in the long form; none has a deadline.

    How long an example takes says more about the machine than about us.
    """
    settings.register_profile("ci", settings.default, deadline=None, max_examples=30)
    settings.register_profile("soak", settings.get_profile("ci"), max_examples=1_000)
    settings.load_profile("soak" if SOAK else "ci")
