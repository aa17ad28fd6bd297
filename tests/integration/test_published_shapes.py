"""`moorings plan` takes published shapes of workload for the gangs that they are."""

from __future__ import annotations

import pytest

from moorings.plan.reading import Reader
from moorings.plan.work import prepare_work
from tests import builders
from tests.builders.inputs import entries
from tests.cases.published import SHAPES, Gangs, Json, list_gangs


@pytest.mark.parametrize(("objects", "gangs"), SHAPES.values(), ids=SHAPES)
def test_a_shape_is_the_gangs_of_the_table(objects: list[Json], gangs: Gangs) -> None:
    one = builders.claim_template(name="one", namespace="default")
    said: list[str] = []
    read = Reader(said.append).read_list(objects)
    work = prepare_work([*entries(one), *read])
    assert list_gangs(message.gang for message in work.gangs) == gangs
    assert (said, list(work.waiting)) == ([], [])
