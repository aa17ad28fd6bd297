"""`moorings plan` takes published shapes of workload for the gangs that they are."""

from __future__ import annotations

import pytest

from moorings.plan.reading import Reader
from moorings.plan.work import prepare_work
from tests import builders
from tests.builders.inputs import entries
from tests.cases.group_trees import TREES, Tree, list_by_name, list_rules
from tests.cases.published import SHAPES, Gangs, Json, list_gangs


@pytest.mark.parametrize(("objects", "gangs"), SHAPES.values(), ids=SHAPES)
def test_a_shape_is_the_gangs_of_the_table(objects: list[Json], gangs: Gangs) -> None:
    one = builders.claim_template(name="one", namespace="default")
    said: list[str] = []
    read = Reader(said.append).read_list(objects)
    work = prepare_work([*entries(one), *read])
    assert list_gangs(message.gang for message in work.gangs) == gangs
    assert (said, list(work.waiting)) == ([], [])


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_tree_of_groups_is_the_gangs_of_the_table(tree: Tree) -> None:
    one = builders.claim_template(name="one", namespace="default")
    read = Reader(lambda _: None).read_list(tree.objects)
    work = prepare_work([*entries(one), *read])
    gangs = [message.gang for message in work.gangs]
    assert list_by_name(gangs) == tree.gangs
    assert list_rules(gangs) == tree.topology
    said = {str(reason) for waiting in work.waiting for reason in waiting.reasons}
    for reason in tree.reasons:
        assert any(reason in text for text in said), said
    assert bool(said) == bool(tree.reasons), said
