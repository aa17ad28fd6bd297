"""Rules across pods that nobody can keep are found before pods wait for it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Gang
from moorings.lint.findings import LintRule, Severity
from tests import builders
from tests.builders import gang_constraint, member, member_claim, request, topology_rule
from tests.builders.lint import lint_objects

RAIL = "net.example.com/rail"
CLIQUE = "attribute:example.com/clique"


def slice_of(node: str, clique: str | None, rail: str | None) -> Any:
    """Give a node four devices, half of them on a rail."""
    of_clique = {"example.com/clique": clique} if clique else {}
    of_rail = {RAIL: rail} if rail else {}
    devices = [
        builders.device(
            f"gpu-{n}", attributes={**of_clique, **(of_rail if n < 2 else {})}
        )
        for n in range(4)
    ]
    return builders.resource_slice(*devices, name=f"s-{node}", node=node, pool=node)


def node(name: str, rack: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"rack": rack}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


NODES = (node("n1", "r1"), node("n2", "r1"), node("n3", "r2"))
DEVICES = (
    builders.device_class(),
    slice_of("n1", "c1", "0"),
    slice_of("n2", "c2", "1"),
    slice_of("n3", None, None),
)
"""Rack r1 has eight devices, r2 four; c1 and c2 have four each."""


def asking(
    count: int, *, devices: int = 1, least: int | None = None, **rules: Any
) -> Gang:
    claim = member_claim(request(count=devices))
    pods = member(claim, count=count, min_count=least)
    return builders.gang(pods, **rules)


def found(gang: Gang) -> list[tuple[str, LintRule, str]]:
    return [
        (finding.field, finding.rule, finding.message)
        for finding in lint_objects(*NODES, *DEVICES, gang).findings
    ]


@pytest.mark.parametrize(
    "gang",
    [
        asking(8, topology=(topology_rule("rack"),)),
        asking(9, least=8, topology=(topology_rule("rack"),)),
        asking(12, topology=(topology_rule("rack", group_size=4),)),
        asking(2, topology=(topology_rule("rack", max_per_domain=1),)),
        asking(4, topology=(topology_rule(CLIQUE),)),
        asking(9, topology=(topology_rule("rack", mode="Preferred"),)),
    ],
)
def test_rules_that_can_be_kept_are_left_alone(gang: Gang) -> None:
    """By counting; and what is only preferred asks for no room."""
    assert found(gang) == []


@pytest.mark.parametrize(
    ("gang", "words"),
    [
        (
            asking(9, topology=(topology_rule("rack"),)),
            "all 9 pods in one domain of rack: r1 has room for 8 of 9, r2 for 4",
        ),
        (
            asking(5, devices=2, topology=(topology_rule("rack"),)),
            "all 5 pods in one domain of rack: r1 has room for 4 of 5, r2 for 2",
        ),
        (
            asking(10, topology=(topology_rule("rack", group_size=5),)),
            (
                "groups of 5 pods of worker, each in one domain of rack: room "
                "for 1 of 2 groups; r1 has room for 8, r2 for 4"
            ),
        ),
        (
            asking(3, topology=(topology_rule("rack", max_per_domain=1),)),
            (
                "at most 1 of 3 pods in one domain of rack: the 2 with room can take "
                "2 of 3"
            ),
        ),
        (
            asking(9, topology=(topology_rule(CLIQUE),)),
            f"all 9 pods in one domain of {CLIQUE}: c1 has room for 4 of 9, c2 for 4",
        ),
    ],
)
def test_domains_that_are_too_small_are_named(gang: Gang, words: str) -> None:
    assert found(gang) == [("spec.topology[0]", LintRule.TOPOLOGY, words)]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("raek", "no Node has the label raek"),
        ("attribute:example.com/rack", "no device that the pods may use has "),
    ],
)
@pytest.mark.parametrize("mode", ["Required", "Preferred"])
def test_a_key_that_nothing_has_is_named(key: str, words: str, mode: str) -> None:
    """It keeps the gang out, or prefers nothing."""
    gang = asking(1, topology=(topology_rule("rack"), topology_rule(key, mode=mode)))
    (finding,) = lint_objects(*NODES, *DEVICES, gang).findings
    assert (finding.field, finding.rule) == (
        "spec.topology[1].key",
        LintRule.TOPOLOGY_KEY,
    )
    assert finding.message.startswith(words)
    required = mode == "Required"
    assert finding.severity is (Severity.ERROR if required else Severity.WARNING)


def test_without_nodes_no_label_is_missed() -> None:
    """Nobody has said what nodes are."""
    gang = asking(1, topology=(topology_rule("rack"),))
    assert lint_objects(*DEVICES, gang).findings == ()


def test_an_attribute_that_devices_lack_is_named() -> None:
    """None has it: an error; some: these are never chosen."""
    some = asking(2, constraints=(gang_constraint(RAIL, "worker"),))
    (finding,) = lint_objects(*NODES, *DEVICES, some).findings
    assert (finding.rule, finding.severity) == (
        LintRule.ATTRIBUTE_MISSING,
        Severity.WARNING,
    )
    assert finding.field == "spec.constraints[0]"
    assert finding.message == f"8 of 12 matching devices lack {RAIL}"
    none = asking(2, constraints=(gang_constraint(distinct="example.com/feed"),))
    (finding,) = lint_objects(*NODES, *DEVICES, none).findings
    assert finding.severity is Severity.ERROR
    assert finding.message == "12 of 12 matching devices lack example.com/feed"


def test_a_path_that_names_nothing_of_a_template_is_named() -> None:
    """What the claim asks for stands in another object."""
    pods = member(member_claim(name="gpu", template="t"), count=2)
    path = "worker/gpu/nic"
    gang = builders.gang(pods, constraints=(gang_constraint(RAIL, path),))
    template = builders.claim_template(name="t")
    findings = lint_objects(*NODES, *DEVICES, template, gang).findings
    assert [(each.rule, each.field) for each in findings] == [
        (LintRule.INVALID, "spec.constraints[0].requests[0]")
    ]
