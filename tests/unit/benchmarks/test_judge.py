"""The judge of the benchmarks finds what is wrong; its greedy peer breaks no rule."""

from __future__ import annotations

import ast
import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.judge import expressions
from benchmarks.judge.cluster import Cluster, read_quantity
from benchmarks.judge.expressions import UnknownExpressionError, read_expression
from benchmarks.judge.greedy import Greedy, write_plan
from benchmarks.judge.verdict import judge_plan
from benchmarks.worlds.ordinary.families import FAMILIES, draw_world
from benchmarks.worlds.ordinary.objects import DRIVER, attribute_is, of_driver

SEED = 3


def test_the_judge_shares_no_code_with_the_product() -> None:
    """Nothing but the standard library and itself."""
    folder = Path(expressions.__file__).parent
    modules = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
            elif isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
    foreign = {name for name in modules if not name.startswith("benchmarks.judge.")}
    assert {name.partition(".")[0] for name in foreign} <= sys.stdlib_module_names


def greedy_plan(objects: list[Any], *, best: bool = True) -> tuple[int, Any]:
    greedy = Greedy(Cluster(objects), best=best)
    return greedy.run(), write_plan(greedy)


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_greedy_places_is_right(family: str, best: bool) -> None:
    objects = draw_world(family, FAMILIES[family].small, SEED)
    value, plan = greedy_plan(objects, best=best)
    verdict = judge_plan(Cluster(objects), plan)
    assert not verdict.wrong
    assert verdict.value == value
    assert (value > 0) == (family != "huge")


def broken(family: str, nodes: int, breaks: Any) -> set[str]:
    """Break the plan of a world; says what the judge finds."""
    objects = draw_world(family, nodes, SEED)
    _, plan = greedy_plan(objects)
    plan = copy.deepcopy(plan)
    breaks(plan)
    return set(judge_plan(Cluster(objects), plan).wrong)


def results(claim: Any) -> list[Any]:
    found: list[Any] = claim["allocation"]["devices"]["results"]
    return found


def test_a_pod_that_is_missing_is_found() -> None:
    def breaks(plan: Any) -> None:
        plan["claims"].pop()

    assert "not all pods of a gang" in broken("cputight", 4, breaks)


def test_a_device_of_two_pods_is_found() -> None:
    def breaks(plan: Any) -> None:
        one = plan["claims"][0]
        for other in plan["claims"][1:]:
            if other["node"] == one["node"]:
                results(other)[0]["device"] = results(one)[0]["device"]

    assert "taken twice, counters or capacity" in broken("cputight", 4, breaks)


def test_a_node_that_is_too_full_is_found() -> None:
    objects = draw_world("cputight", 4, SEED)
    _, plan = greedy_plan(objects)
    for item in objects:
        if item["kind"] == "Node":
            item["status"]["allocatable"] |= {"cpu": "1", "memory": "1Gi"}
    found = set(judge_plan(Cluster(objects), plan).wrong)
    assert found == {"too little CPU", "too little memory"}


def test_a_gang_in_two_racks_is_found() -> None:
    objects = draw_world("nvl72", 36, SEED)
    _, plan = greedy_plan(objects)
    for number, item in enumerate(objects):
        if item["kind"] == "Node":
            item["metadata"]["labels"]["rack"] = f"r{number % 2}"
    assert set(judge_plan(Cluster(objects), plan).wrong) == {"topology"}


def test_devices_that_do_not_match_are_found() -> None:
    objects = draw_world("helios", 4, SEED)
    _, plan = greedy_plan(objects)
    for item in objects:
        for device in item.get("spec", {}).get("devices", ()):
            device["attributes"]["numaNode"] = {"int": int(device["name"][-1])}
            device["attributes"]["kind"] = {"string": "gpu"}
    found = set(judge_plan(Cluster(objects), plan).wrong)
    assert "matchAttribute" in found


def test_what_is_not_understood_is_refused() -> None:
    objects = draw_world("mig", 1, SEED)
    objects[-1]["spec"]["constraints"] = []
    with pytest.raises(ValueError, match="not understood: constraints"):
        Cluster(objects)


def test_expressions_are_read_with_their_precedence() -> None:
    one, two = attribute_is("model", "A"), attribute_is("memory", 40, ">=")
    attributes: dict[str, bool | int | str] = {"model": "A", "memory": 39}
    for text, expected in (
        (of_driver(one), True),
        (f"{one} && {two}", False),
        (f"{one} || {two} && {two}", True),
        (f"({one} || {two}) && {two}", False),
        (attribute_is("absent", "A"), False),
    ):
        assert read_expression(text, DRIVER)(attributes) is expected, text
    with pytest.raises(UnknownExpressionError):
        read_expression(f"{one} && size(device)", DRIVER)


def test_quantities_are_read_in_thousandths() -> None:
    texts: dict[str | int, int] = {"3750m": 3750, "2": 2000, "1Gi": 2**30 * 1000}
    assert {text: read_quantity(text) for text in texts} == texts
    assert read_quantity(3) == 3000
