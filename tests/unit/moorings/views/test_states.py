"""Of several states of a device one is shown."""

from __future__ import annotations

from moorings.views.states import worst_state


def test_of_several_states_the_worst_is_shown() -> None:
    assert worst_state(["Held", "Unhealthy"]) == "Unhealthy"
    assert worst_state(["Held"]) == "Held"
