"""What the exit code of a plan follows from."""

from __future__ import annotations

import pytest

from moorings.plan import plan


@pytest.mark.parametrize(
    ("status", "verdicts", "is_yes", "has_errors"),
    [
        ("Optimal", (), True, False),
        ("Optimal", ("allocated", "allocated"), True, False),
        ("Feasible", ("allocated", "none"), False, False),
        ("Optimal", ("allocated", "error"), False, True),
        ("Error", (), False, True),
    ],
)
def test_yes_means_that_everything_is_allocated(
    status: str, verdicts: tuple[str, ...], *, is_yes: bool, has_errors: bool
) -> None:
    """A no is an answer; an error is none."""
    made = plan.Plan(
        status=status,
        gangs=tuple(
            plan.GangPlan(namespace="n", name=str(index), uid=str(index), verdict=v)
            for index, v in enumerate(verdicts)
        ),
    )
    assert (made.is_yes, made.has_errors) == (is_yes, has_errors)
