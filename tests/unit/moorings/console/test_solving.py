"""Which recorded solve is asked about a gang."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.ids import ClusterName, GangKey, GangUID, Namespace
from moorings.console.model import ConsoleModel
from moorings.console.solving import find_last
from moorings.errors import UnknownNameError
from moorings.recorded import SolveEntry
from tests.builders.solves import solve_decided, solve_opened

CLUSTER = ClusterName("c")
GANG = GangKey(Namespace("team-a"), GangUID("u"))


def model_of(**solves: bool) -> ConsoleModel:
    """Record solves of a gang, the oldest first; True: one that is a promise."""
    model = ConsoleModel(CLUSTER)
    for name, is_promise in solves.items():
        opened = solve_opened(name, CLUSTER)
        opened = replace(opened, gangs=(GANG,), is_promise=is_promise)
        decided = solve_decided(name, CLUSTER)
        model.solves[name] = SolveEntry(opened=opened, decided=decided)
    return model


def test_a_promise_is_passed_over() -> None:
    """It is about a time to come, in which the gang has its place."""
    model = model_of(first=False, tried=False, promised=True)
    assert find_last(model, GANG).opened.solve == "tried"


def test_a_gang_that_was_only_promised_was_never_tried() -> None:
    with pytest.raises(UnknownNameError):
        find_last(model_of(promised=True), GANG)
