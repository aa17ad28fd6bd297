"""What a member asks of its node, and what of it is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Member
from solver.errors import RefusedError
from solver.problem.node_needs import (
    count_node_resources,
    read_required_affinity,
    read_rules_between_pods,
)
from tests.builders import member
from tests.builders.neighbours import near, term


def test_resources_of_claims_and_the_one_pod_are_not_asked() -> None:
    """What claims serve is counted as devices; one pod is not worth saying."""
    pod = member(resources={"cpu": "1500m", "example.com/gpu": 1, "pods": 1})
    assert count_node_resources(pod, {"example.com/gpu"}) == {"cpu": 1500}
    assert count_node_resources(member(resources={"pods": 2}), ()) == {"pods": 2}


def refusal_of(pod: Member) -> tuple[Rule, str, bool]:
    """Say by which rule and field a member is refused, and whether for good."""
    with pytest.raises(RefusedError) as raised:
        read_required_affinity(pod)
    reason = raised.value.reason
    return reason.rule, reason.field.rpartition(".affinity.")[2], raised.value.rejected


@pytest.mark.parametrize(
    ("affinity", "rule", "field"),
    [
        ({"nodeAffinity": 1}, Rule.INVALID, "nodeAffinity"),
        ({"nodes": {}}, Rule.INVALID, "nodes"),
    ],
)
def test_an_affinity_that_cannot_be_decided_is_refused_by_its_field(
    affinity: dict[str, Any], rule: Rule, field: str
) -> None:
    """What is malformed is invalid."""
    refused, where, rejected = refusal_of(member(affinity=affinity))
    assert refused is rule
    assert where.startswith(field)
    assert rejected


def test_what_cannot_be_known_of_other_pods_is_refused_by_its_field() -> None:
    """Labels of namespaces are not modelled; a term without a topology is invalid."""
    strange = term(namespaceSelector={"matchLabels": {"team": "a"}})
    with pytest.raises(RefusedError, match=r"NotModelled.*\[0\].namespaceSelector"):
        read_rules_between_pods("default", member(affinity=near(strange)))
    with pytest.raises(RefusedError, match=r"Invalid.*\[0\].topologyKey"):
        read_rules_between_pods("default", member(affinity=near({})))


def test_a_negative_amount_is_invalid() -> None:
    """Nobody gives a node something back by asking for less than nothing."""
    with pytest.raises(RefusedError, match=r"resources\[cpu\].*negative"):
        count_node_resources(member(resources={"cpu": -1}), ())


def test_an_affinity_without_requirements_takes_any_node() -> None:
    """Preferences are ignored."""
    assert read_required_affinity(member()) is None


def test_rules_of_a_place_of_several_pods_are_not_modelled() -> None:
    """What a place of three asks of others, each of the three would ask of the rest."""
    terms = near(term())
    read_rules_between_pods("team-a", member(affinity=terms, resources={"pods": 1}))
    with pytest.raises(RefusedError) as raised:
        read_rules_between_pods("team-a", member(affinity=terms, resources={"pods": 3}))
    assert raised.value.reason.rule is Rule.NOT_MODELLED
    assert "resources[pods]" in raised.value.reason.field
