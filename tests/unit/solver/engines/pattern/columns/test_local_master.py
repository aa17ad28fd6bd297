"""Patterns that suit some classes, while all others stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from solver.engines.pattern.columns.local_master import LocalMaster, LocalResult
from solver.engines.pattern.columns.model import PatternModel
from solver.engines.pattern.columns.objective import Floor, Objective
from solver.engines.pattern.columns.pricing import Pattern
from tests.builders import gang, member, member_claim, request
from tests.builders.patterns import nodes_of_sizes, pattern_model

UID = "00000000-0000-4000-8000-{:012}"


def model_of(*devices: int, sizes: tuple[int, ...]) -> PatternModel:
    """Ask for a gang of two pods for each number of devices."""
    return pattern_model(
        nodes_of_sizes(*sizes),
        *(
            gang(
                member(member_claim(request(count=count)), count=2),
                name=f"g{index}",
                uid=UID.format(index),
            )
            for index, count in enumerate(devices)
        ),
    )


def price(
    model: PatternModel,
    *free: int,
    supply: Sequence[int] = (),
    floors: tuple[Floor, ...] = (),
    objective: Objective | None = None,
) -> LocalResult:
    """Price patterns for these classes; `supply`: places elsewhere, by member kind."""
    weights = Objective(tuple(kind.weight for kind in model.data.gangs))
    places = supply or [0] * model.data.members
    begun: dict[int, tuple[Pattern, ...]] = dict.fromkeys(free, ())
    master = LocalMaster(model, objective or weights, floors, places, begun)
    result = master.run()
    assert result is not None
    return result


def test_classes_that_are_free_are_priced_from_nothing() -> None:
    """A node of four takes a pod of three: half of the gang, as far as this knows."""
    model = model_of(3, sizes=(4,))
    result = price(model, 0)
    assert result.worth == pytest.approx(model.data.gangs[0].weight / 2)
    assert [pattern.counts for pattern in result.patterns_by_class[0]] == [((0, 1),)]


def test_places_on_other_nodes_count() -> None:
    """With one place elsewhere, one node is enough for the gang."""
    model = model_of(3, sizes=(4,))
    assert price(model, 0, supply=[1]).worth == pytest.approx(
        model.data.gangs[0].weight
    )


def test_patterns_are_those_that_go_with_the_others() -> None:
    """Pods of three have places elsewhere, so the node is for those of two."""
    model = model_of(3, 2, sizes=(4,))
    three, two = (model.devices.index(devices) for devices in (3, 2))
    supply = [0, 0]
    supply[three] = 2
    result = price(model, 0, supply=supply)
    assert result.worth == pytest.approx(sum(k.weight for k in model.data.gangs))
    assert ((two, 2),) in [pattern.counts for pattern in result.patterns_by_class[0]]


def test_the_most_useful_pattern_comes_first() -> None:
    """Sorted by what a node earns by them, at the last prices."""
    model = model_of(3, 2, sizes=(4, 3))
    for patterns in price(model, 0, 1).patterns_by_class.values():
        asked = [
            sum(model.devices[member] * pods for member, pods in pattern.counts)
            for pattern in patterns
        ]
        assert asked[0] == max(asked)


def test_floors_are_kept() -> None:
    """A gang that an earlier goal took in is in, whatever it is worth now."""
    model = model_of(2, 1, sizes=(2,))
    worth_now = Objective((0, 1) if model.devices[0] == 2 else (1, 0))
    earlier = Objective((1, 0) if model.devices[0] == 2 else (0, 1))
    assert price(model, 0, objective=worth_now).worth == pytest.approx(1)
    floors = (Floor(earlier, 1),)
    supply = [1, 1]
    kept = price(model, 0, objective=worth_now, floors=floors, supply=supply)
    assert kept.worth == pytest.approx(1 / 2)
