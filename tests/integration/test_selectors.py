"""Selectors as the sandbox judges them: a table, and what tries to break out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from contracts.device import Device, DeviceAttribute
from solver.cel.evaluator import SelectorEvaluator
from solver.cel.sandbox import Sandbox
from solver.problem.selectors import Verdict
from tests.builders import DRIVER, Version, device

GPU = device(
    "gpu-0",
    attributes={
        "model": "A100",
        "index": 3,
        "healthy": True,
        "driverVersion": Version("580.126.9"),
        "resource.kubernetes.io/pcieRoot": "pci0000:10",
        "net.example.com/rail": "rail-1",
    },
    capacity={"memory": "40Gi", "net.example.com/bandwidth": "400G"},
)
D = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'
TRUE = [
    f'device.driver == "{DRIVER}"',
    f'{D}.model == "A100"',
    f'{D}["model"].startsWith("A")',
    f"{D}.index > 2 && {D}.index <= 3",
    f"{D}.healthy",
    f'{D}.model in ["H100", "A100"]',
    f'{D}.model.lowerAscii() == "a100"',
    f'{D}.model.matches("^A[0-9]+$")',
    f'"model" in {D}',
    f'!("nope" in {D})',
    f"has({D}.model) && !has({D}.nope)",
    f'{D}.?nope.orValue("x") == "x"',
    f'{D}[?"model"].hasValue()',
    'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:10"',
    'device.attributes["net.example.com"].rail.split("-")[1] == "1"',
    '!("nope.example.com" in device.attributes)',
    '"net.example.com" in device.attributes',
    'device.attributes["nope.example.com"].size() == 0',
    (
        '"a.example.com" in device.attributes ? false : '
        'device.attributes["a.example.com"].size() == 0'
    ),
    "device.attributes.exists(d, d == 'net.example.com')",
    "device.attributes.all(d, d != 'nope.example.com')",
    f'{C}.memory.compareTo(quantity("40Gi")) == 0',
    f'{C}.memory.isGreaterThan(quantity("20Gi"))',
    f'{C}.memory.isLessThan(quantity("1Ti"))',
    f'{C}.memory == quantity("40960Mi")',
    f"{C}.memory.asInteger() == 42949672960",
    f'{C}.memory.add(quantity("1Gi")) == quantity("41Gi")',
    f"{C}.memory.sub(1).asInteger() == 42949672959",
    f"sign({C}.memory) == 1",
    'quantity("500m").isInteger() == false',
    'isQuantity("5Gi") && !isQuantity("five")',
    'device.capacity["net.example.com"].bandwidth.isInteger()',
    f'{D}.driverVersion.isGreaterThan(semver("580.0.0"))',
    f'{D}.driverVersion.compareTo(semver("580.126.9")) == 0',
    f'{D}.driverVersion == semver("580.126.9+build")',
    f"{D}.driverVersion.major() == 580 && {D}.driverVersion.patch() == 9",
    'semver("v1.2", true) == semver("1.2.0")',
    'semver("1.0.0-alpha").isLessThan(semver("1.0.0"))',
    'isSemver("1.2.3") && !isSemver("1.2")',
    "device.allowMultipleAllocations == false",
    "[1, 2, 3].exists(i, i == 2) && [1, 2].all(i, v, v > i)",
    "sets.contains([1, 2], [1]) && [3, 1].sort() == [1, 3]",
    f"cel.bind(m, {D}.model, m == 'A100' && m.size() == 4)",
    f"{D}.nope == 1 || true",
    f"{D}.index < 3.5 && {D}.index == 3.0",
    f"{D}.index == 3 // the third",
]
FALSE = [
    f'{D}.model == "H100"',
    f"{D}.model == 3",
    f"false && {D}.nope == 1",
    'device.driver == "other.example.com"',
    '"memory" in device.capacity["nope.example.com"]',
]
ERRORS = {
    f"{D}.nope == 1": "CEL runtime error: no such key: nope",
    "nope == 1": "undeclared reference to 'nope'",
    "device.driver ==": "CEL compile error",
    "device.driver": "must evaluate to bool or the unknown type",
    f"{D}.model": "could not be converted to bool",
    f"{D}.index + 'x' == 'y'": "CEL runtime error",
    "null": "must evaluate to bool or the unknown type",
    "dyn(null)": "could not be converted to bool",
    'quantity("five") == quantity("5")': "is no quantity",
    'semver("1") == semver("1")': "version",
    "1 / 0 == 1": "CEL runtime error",
    "'" + "x" * 10_300 + "' == ''": "longer than 10240 bytes",
}


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator(Sandbox(limit_s=3.0)) as found:
        yield found


def judged(
    evaluator: SelectorEvaluator, expression: str, seen: Device = GPU
) -> Verdict:
    return evaluator.evaluate([(expression, DRIVER, seen)])[0]


@pytest.mark.parametrize("expression", TRUE)
def test_expression_is_true(evaluator: SelectorEvaluator, expression: str) -> None:
    assert judged(evaluator, expression) == Verdict(value=True)


@pytest.mark.parametrize("expression", FALSE)
def test_expression_is_false(evaluator: SelectorEvaluator, expression: str) -> None:
    assert judged(evaluator, expression) == Verdict(value=False)


@pytest.mark.parametrize("expression", ERRORS)
def test_expression_fails_with_a_reason(
    evaluator: SelectorEvaluator, expression: str
) -> None:
    verdict = judged(evaluator, expression)
    assert verdict.value is None
    assert ERRORS[expression] in verdict.error


def test_an_attribute_without_value_fails_any_selector(
    evaluator: SelectorEvaluator,
) -> None:
    broken = device(attributes={"a": 1})
    empty = Device(name=broken.name, attributes={"a": DeviceAttribute()})
    assert "unsupported attribute value" in judged(evaluator, "true", empty).error


@pytest.mark.parametrize(
    "attack",
    [
        (
            "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, "
            "[1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, "
            "[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, true))))))"
        ),
        "cel.bind(a, 'xxxxxxxxxxxxxxxx', "
        + "".join("cel.bind(a, a + a + a + a + a + a + a + a, " for _ in range(12))
        + "a.size() > 0"
        + ")" * 13,
        "(" * 300 + "true" + ")" * 300,
        "'" + "a" * 200 + "!'.matches('(a+)+$')",
    ],
)
def test_an_attack_costs_one_expression(
    evaluator: SelectorEvaluator, attack: str
) -> None:
    """Whatever it does, it ends with a verdict and the next expression is judged."""
    verdict = judged(evaluator, attack)
    assert verdict.error or verdict.value is not None
    assert judged(evaluator, f'{D}.model == "A100"') == Verdict(value=True)


def test_a_killed_sandbox_is_replaced() -> None:
    sandbox = Sandbox()
    with SelectorEvaluator(sandbox) as found:
        assert judged(found, "true").value is True
        before = sandbox.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        first = judged(found, "true")
        assert first.value is True or "ended its process" in first.error
        assert judged(found, "true").value is True
        assert sandbox.pid != before


def test_the_sandbox_is_recycled() -> None:
    sandbox = Sandbox(recycle=2)
    with SelectorEvaluator(sandbox) as found:
        pids = set()
        for _ in range(6):
            judged(found, "true")
            pids.add(sandbox.pid)
        assert len(pids) >= 2
