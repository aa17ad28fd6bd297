"""Rules of a gang: declared by its Gang object, or by its pods."""

from __future__ import annotations

import pytest

from contracts.names import CONSTRAINTS, TOPOLOGY
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import OwnerKey
from publisher.gangs.running.growth_rules import keep_rules
from publisher.gangs.submit.readiness import NotReady
from publisher.gangs.submit.rules import find_rules
from tests import builders
from tests.builders import gang_constraint, member, member_claim, topology_rule
from tests.builders.pods import waiting_pod

MEMBERS = (member(member_claim(name="gpu")), member(name="driver"))


def rules_of(**annotations: str) -> DeclaredRules | NotReady:
    names = {"constraints": CONSTRAINTS, "topology": TOPOLOGY}
    said = {names[key]: text for key, text in annotations.items()}
    return find_rules([waiting_pod("a", annotations=said)], None, None, MEMBERS)


def test_annotations_say_what_a_gang_object_would() -> None:
    found = rules_of(
        constraints='[{"matchAttribute": "a.io/x", "requests": ["worker/gpu"]}]',
        topology='[{"key": "rack", "members": ["worker"]}]',
    )
    assert found == DeclaredRules(
        constraints=(gang_constraint("a.io/x", "worker/gpu"),),
        topology=(topology_rule("rack", "worker"),),
    )


def test_a_gang_object_wins_over_annotations() -> None:
    gang = builders.gang(*MEMBERS, topology=(topology_rule("zone"),))
    pods = [waiting_pod("a", annotations={TOPOLOGY: '[{"key": "rack"}]'})]
    found = find_rules(pods, gang, None, MEMBERS)
    assert found == DeclaredRules(topology=(topology_rule("zone"),))


@pytest.mark.parametrize(
    ("annotations", "reason", "words"),
    [
        ({"topology": '[{"key": "a b"}]'}, "TopologyInvalid", "[0].key"),
        (
            {"topology": '[{"key": "rack", "members": ["pod"]}]'},
            "TopologyInvalid",
            '[0].members[0]: Invalid value: "pod": there is no member pod',
        ),
        (
            {"topology": '[{"key": "rack", "mode": "Maybe"}]'},
            "TopologyInvalid",
            "supported values",
        ),
        (
            {"constraints": '[{"matchAttribute": "a.io/x", "requests": ["w/gpu"]}]'},
            "ConstraintsInvalid",
            "there is no member w",
        ),
        ({"constraints": '[{"scope": "Pod"}]'}, "ConstraintsInvalid", "[0]"),
        ({"constraints": "?"}, "ConstraintsInvalid", "malformed"),
    ],
)
def test_a_rule_that_nobody_can_keep_is_named(
    annotations: dict[str, str], reason: str, words: str
) -> None:
    """The annotation, its field and what is wrong, before anything is submitted."""
    told = rules_of(**annotations)
    assert isinstance(told, NotReady)
    assert told.reason == reason
    assert "annotation moorings.dev/" in told.message
    assert words in told.message


def test_pods_that_replace_others_are_not_asked_about_the_members_that_run() -> None:
    """What names only others is left out; what names both is about these alone."""
    rules = DeclaredRules(
        constraints=(
            gang_constraint("a.io/x", "driver"),
            gang_constraint("a.io/y", "driver", "worker/gpu"),
            gang_constraint("a.io/z"),
        ),
        topology=(topology_rule("rack", "driver"), topology_rule("zone", "worker")),
    )
    assert keep_rules(rules, MEMBERS[:1]) == DeclaredRules(
        constraints=(
            gang_constraint("a.io/y", "worker/gpu"),
            gang_constraint("a.io/z"),
        ),
        topology=(topology_rule("zone", "worker"),),
    )


def test_of_a_part_of_a_gang_no_member_is_missed() -> None:
    """The others run."""
    said = {TOPOLOGY: '[{"key": "rack", "members": ["driver"]}]'}
    found = find_rules([waiting_pod("a", annotations=said)], None, None, None)
    assert found == DeclaredRules(topology=(topology_rule("rack", "driver"),))


def test_what_made_the_pods_may_ask_for_a_domain_too() -> None:
    """A PodGroup of Kubernetes; what the pods say themselves holds beside it."""
    group = GangOwner(
        key=OwnerKey("PodGroup", "team-a", "g"),
        uid="u",
        topology=(topology_rule("zone"),),
    )
    said = {TOPOLOGY: '[{"key": "rack"}]'}
    pods = [waiting_pod("a", annotations=said)]
    assert find_rules(pods, None, group, MEMBERS) == DeclaredRules(
        topology=(topology_rule("rack"), topology_rule("zone"))
    )
