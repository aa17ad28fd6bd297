"""What a gang asks for, term by term."""

from __future__ import annotations

from solver.problem.gangs import GangPart
from solver.timeline.terms import list_terms, without_term
from tests.builders import (
    constraint,
    gang_constraint,
    member,
    member_claim,
    request,
    topology_rule,
)
from tests.builders.neighbours import apart, near, term
from tests.builders.timeline import World


def picky() -> GangPart:
    """Resolve a gang with a term of each kind."""
    selected = request(select=("true",), capacity={"memory": 1})
    claims = member_claim(selected, constraints=[constraint()])
    world = World(nodes=1)
    record = world.submit_members(
        "picky",
        member(
            claims,
            node_selector={"zone": "a"},
            affinity={**near(term()), **apart(term())},
        ),
        topology=(topology_rule(), topology_rule(mode="Preferred")),
        constraints=(gang_constraint(),),
    )
    (gang,) = world.asker(record).question(world.snapshot, record).gangs
    assert not gang.refused
    return gang


def test_each_term_has_a_path() -> None:
    assert [term.path for term in list_terms(picky())] == [
        "topology/0",
        "constraints/0",
        "worker/nodeSelector/zone",
        "worker/near/0",
        "worker/apart/0",
        "worker/gpus/constraints/0",
        "worker/gpus/gpu/selectors/0",
        "worker/gpus/gpu/capacity/memory",
    ]


def test_without_all_its_terms_a_gang_has_none() -> None:
    gang = picky()
    for each in list(list_terms(gang)):
        found = without_term(gang, each.path)
        assert found is not None
        gang = found
    assert list(list_terms(gang)) == []
    assert without_term(gang, "topology/0") is None
    (alternative,) = gang.members[0].claims[0].requests[0].alternatives
    assert alternative.selectors == ("true",)[: alternative.class_selectors]
