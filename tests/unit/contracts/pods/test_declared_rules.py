"""What pods ask across their gang, as their annotations say it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contracts.gang_rules import MAX_TOPOLOGY, GangConstraint, GangTopology
from contracts.ids import FullyQualifiedName
from contracts.names import CONSTRAINTS, TOPOLOGY
from contracts.pods.declared_rules import (
    MOST_SHOWN,
    DeclaredRules,
    InvalidRules,
    read_declared_rules,
)
from contracts.workload import Pod
from tests.builders import pod


def saying(name: str = "a", **annotations: str) -> Pod:
    names = {"constraints": CONSTRAINTS, "topology": TOPOLOGY}
    said = {names[key]: text for key, text in annotations.items()}
    return pod(name, annotations=said)


def test_pods_that_say_nothing_ask_nothing() -> None:
    assert read_declared_rules([saying(), saying("b")]) == DeclaredRules()


def test_both_annotations_have_the_shape_of_the_gang() -> None:
    text = {
        "constraints": '[{"matchAttribute": "a.io/rail", "requests": ["pod/nic"]}]',
        "topology": '[{"key": "rack", "groupSize": 8, "mode": null}, {"key": "zone"}]',
    }
    assert read_declared_rules([saying(**text), saying("b", **text)]) == DeclaredRules(
        constraints=(
            GangConstraint(
                match_attribute=FullyQualifiedName("a.io/rail"), requests=("pod/nic",)
            ),
        ),
        topology=(GangTopology(key="rack", group_size=8), GangTopology(key="zone")),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rack", "JSON is malformed"),
        ("[", "truncated"),
        ("[" * 100_000, ""),
        ("{}", "Expected `array`"),
        ('["rack"]', "[0]: Expected `object`"),
        ('[{"key": "rack"}, {}]', "[1]: Object missing required field `key`"),
        ('[{"key": 1}]', "[0].key: Expected `str`"),
        ('[{"key": "rack", "groupsize": 8}]', "[0].groupsize: unknown field"),
        ('[{"key": "rack", "groupSize": "8"}]', "[0].groupSize: Invalid enum value"),
        ('[{"key": "rack", "groupSize": 1e99}]', "[0].groupSize: Expected `int"),
        ('[{"key": "rack", "members": "all"}]', "[0].members: Expected `array`"),
        (json.dumps([{"key": "rack"}] * (MAX_TOPOLOGY + 1)), "must have at most 8"),
        ('["\ud800"]', ""),
    ],
)
def test_what_is_not_understood_is_named(text: str, words: str) -> None:
    """Pod, annotation, field and rule, in a line that can be read."""
    told = read_declared_rules([saying(topology=text)])
    assert isinstance(told, InvalidRules)
    assert told.reason == "TopologyInvalid"
    assert told.message.startswith(f"pod a: annotation {TOPOLOGY}: ")
    assert words in told.message
    assert len(told.message) <= MOST_SHOWN


def test_pods_that_disagree_are_told() -> None:
    """Also where some of them say nothing."""
    for other in ("", '[{"distinctAttribute": "a.io/x"}]'):
        some: dict[str, Any] = {"constraints": other} if other else {}
        first = saying(constraints='[{"matchAttribute": "a.io/x"}]')
        assert read_declared_rules([first, saying("b", **some)]) == InvalidRules(
            reason="ConstraintsInvalid",
            message=f"the pods disagree on the annotation {CONSTRAINTS}",
        )
