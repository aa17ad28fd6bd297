"""A case a line in, its plan a line out; a bad line answers for itself alone."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from contracts.codec import to_builtins
from contracts.kubernetes.decode import to_kubernetes
from moorings.nesting import MAX_LEVELS
from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from moorings.plan.plan import Plan
from solver.cel.evaluator import SelectorEvaluator
from tests import builders
from tests.builders.problems import PlainEvaluator

WORLD = [
    to_builtins(to_kubernetes(value))
    for value in (
        builders.device_class(),
        builders.resource_slice(*builders.devices(2)),
        builders.claim(),
    )
]


def answers(*lines: bytes) -> list[dict[str, Any]]:
    """Plan these lines."""
    planner = Planner(cast("SelectorEvaluator", PlainEvaluator()))
    return [json.loads(line) for line in plan_lines(lines, planner)]


def line(**fields: Any) -> bytes:
    """Make a line of input."""
    return json.dumps({"objects": WORLD, **fields}).encode()


def test_each_line_has_its_answer_in_order() -> None:
    """By the id that it came with, whatever that is; empty lines have none."""
    plans = answers(line(id=1), b"\n", line(id={"case": "b"}))
    assert [plan["id"] for plan in plans] == [1, {"case": "b"}]
    assert [plan["claims"][0]["verdict"] for plan in plans] == ["allocated"] * 2


def test_a_line_that_cannot_be_read_says_so_and_the_next_goes_on() -> None:
    """Its id is told wherever it can be read."""
    broken, wrong, fine = answers(b"{", b'{"id": 7}', line(id=8))
    assert (broken["status"], broken.get("id")) == ("Error", None)
    assert broken["error"] == "line 1: Input data was truncated"
    assert (wrong["status"], wrong["id"]) == ("Error", 7)
    assert wrong["error"].startswith("line 2: ")
    assert fine["status"] != "Error"


def test_an_object_of_a_known_kind_that_is_wrong_ends_its_case() -> None:
    """Nothing is decided without it; one of another kind is passed by."""
    bad = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": 1}
    other = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}}
    refused, fine = answers(
        line(id="a", objects=[*WORLD, bad]), line(id="b", objects=[*WORLD, other])
    )
    assert (refused["status"], refused["id"]) == ("Error", "a")
    assert refused["error"].startswith("line 1: objects[3]: ")
    assert fine["status"] != "Error"


def test_a_case_that_fails_unforeseen_does_not_end_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says what failed, and the next has its answer."""
    plan = Planner.plan

    def fail_once(*_: Any) -> Plan:
        monkeypatch.setattr(Planner, "plan", plan)
        raise TypeError("beyond int64")

    monkeypatch.setattr(Planner, "plan", fail_once)
    failed, fine = answers(line(id=1), line(id=2))
    assert (failed["id"], failed["status"]) == (1, "Error")
    assert failed["error"] == "line 1: TypeError: beyond int64"
    assert fine["status"] != "Error"


@pytest.mark.parametrize("levels", [500, 100_000])
def test_a_line_that_is_nested_without_end_ends_nothing(levels: int) -> None:
    """Whether the parser gives up or what reads its objects would, be it in the id."""
    deep = "[" * levels + "]" * levels
    wrongs = [
        f'{{"id": 1, "objects": [{deep}]}}',
        f'{{"id": 2, "objects": [{{"a": {deep}}}]}}',
        f'{{"id": {deep}, "objects": []}}',
        f'{{"id": {deep}}}',
    ]
    *refused, fine = answers(*(wrong.encode() for wrong in wrongs), line(id=9))
    assert [plan["status"] for plan in refused] == ["Error"] * len(wrongs)
    assert fine["status"] != "Error"


def test_a_line_nested_as_deeply_as_may_be_is_read() -> None:
    """What is not understood is passed by, as deep as it is."""
    deep: Any = "x"
    for _ in range(MAX_LEVELS - 1):
        deep = {"a": deep}
    other = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": deep}
    (fine,) = answers(line(id=1, objects=[*WORLD, other]))
    assert fine["status"] != "Error"


def test_every_error_names_its_line() -> None:
    """Of objects, of what is decided, and of what nobody understood."""
    claim = builders.claim()
    wrong = to_builtins(to_kubernetes(claim)) | {"spek": {}}
    other = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}}
    plans = answers(
        line(objects=[wrong]), line(objects=[other]), line(node="nosuch", id="c")
    )
    starts = ["line 1: objects[0]: ", "line 2: nothing that was rea", "line 3: --node "]
    for plan, start in zip(plans, starts, strict=True):
        assert (plan["status"], plan["error"][: len(start)]) == ("Error", start)


def test_a_key_twice_in_a_line_is_no_yes() -> None:
    """At any depth; the line keeps its id."""
    twice = b'{"id": 4, "objects": [], "objects": []}'
    deep = b'{"id": 5, "objects": [{"kind": "A", "kind": "B"}]}'
    assert [(plan["id"], plan["error"]) for plan in answers(twice, deep)] == [
        (4, "line 1: key 'objects' appears twice"),
        (5, "line 2: key 'kind' appears twice"),
    ]
