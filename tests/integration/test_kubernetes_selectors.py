"""What selectors may cost, as a real API server prices them and as we do."""

from __future__ import annotations

import pytest

from solver.cel.evaluator import SelectorEvaluator
from tests.cases.prices import CHEAP, DEAR
from tests.cases.selectors import DRIVER, GPU
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Kube, RefusedError


async def test_the_api_server_and_we_refuse_the_same_selectors(
    kube: Kube, namespace: str
) -> None:
    """Those that a Gang brings past it are priced here before they run."""
    found: dict[str, tuple[bool, bool]] = {}
    with SelectorEvaluator() as evaluator:
        for number, (name, expression) in enumerate((CHEAP | DEAR).items()):
            selectors = [{"cel": {"expression": expression}}]
            spec = objects.requests("gpu", selectors=selectors)
            try:
                await kube.create(objects.claim(namespace, f"c{number}", spec))
                theirs = ""
            except RefusedError as error:
                theirs = error.message
            (verdict,) = evaluator.evaluate([(expression, DRIVER, GPU)])
            assert not theirs or "cost" in theirs, (name, theirs)
            found[name] = (not theirs, "estimated cost" not in verdict.error)
    expected = dict.fromkeys(CHEAP, (True, True))
    expected |= dict.fromkeys(DEAR, (False, False))
    assert found == expected


@pytest.mark.parametrize("expression", DEAR.values(), ids=DEAR)
def test_a_dear_selector_is_refused_without_being_evaluated(expression: str) -> None:
    with SelectorEvaluator() as evaluator:
        (verdict,) = evaluator.evaluate([(expression, DRIVER, GPU)])
        assert verdict.error.startswith(
            "CEL compile error: too complex: estimated cost"
        )
        assert evaluator.refusal_of(expression) == verdict.error
