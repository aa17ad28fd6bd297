"""Upstream's own CEL and ours judge the same selectors alike.

Each expression is the selector of a request for one device, so it is compiled and
evaluated as the API server and kube-scheduler do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from contracts.codec import to_builtins
from solver.cel.evaluator import SelectorEvaluator
from tests.cases.selectors import CASES, DRIVER, GPU, Expected
from tests.oracles.differential.draw import Json
from tests.oracles.differential.oracle import answers

FEATURES = {"ListTypeAttributes": True, "ConsumableCapacity": True}
KNOWN = {
    "lists.range(60).includes(50)": "an attribute has at most 48 values",
    "['x'].transformMapEntry(i, v, {'cel.@mapInsert': i}).size() == 1": (
        "it is how the engine calls its own function"
    ),
}
"""Cases that upstream judges otherwise, and why we do not."""
A = f'device.attributes["{DRIVER}"]'
CHAINS = (
    ("1", "+1", " == {sum}"),
    ("1", "+1", " == 1"),
    ("1.5", "+0.1", " > 1.0"),
    ("9223372036854775807-{count}", "+1", " > 0"),
    ("9223372036854775807", "+1", "-{count} > 0"),
    (f"{A}.minor", f"*{A}.minor", " > 0"),
    (f"({A}.brand", "+'x'", f").startsWith({A}.brand)"),
    ("[1]", "+[2]", " == [1] || true"),
    ("' x'", ".trim()", " == 'x'"),
    (f"{A}.?nope", f".or({A}.?nope)", f".or({A}.?minor).value() == 3"),
    ("", "false ? 1/0 == 1 : ", "true"),
    ("", f"has({A}.nope) ? false : ", f"{A}.ecc"),
    (f"[1, 2].exists(x, {A}.minor", "+x-x", " == 3)"),
    ("[[1]].all(x, x", ".map(y, y)", " == [1])"),
    ("cel.bind(m, device.attributes, m['nope'].size()", "+1", " == {count})"),
    ("cel.bind(d, device, d.driver", "+''", " == device.driver)"),
    ("['a'].transformMap(i, v, v", "+v", ")[0].size() == {sum}"),
    ("[duration('1s')", "+duration('1s')", "].sum() > duration('{count}s')"),
    ("1", "+1", "+'a' == 1"),
    ("1", "+1", " / 0 == 1 || true"),
    ("nope", "+1", " == 1"),
    ("[1", "+1", ", 'a'].size() == 2"),
)
"""What comes before, what is repeated, and what comes after."""
NESTS = (
    ("(", f"{A}.ecc", ")"),
    ("!(", f"{A}.ecc", ")"),
    ("int(", f"{A}.minor", ")"),
    ("[", "1", "]"),
    ("{'a': ", "1", "}"),
    (f"{A}.ecc && (false || ", "true", ")"),
)
"""What opens, what is within, and what closes."""
MOST, DRAWN = 200, 300
MOST_NESTED = 60


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as found:
        yield found


def upstream(program: Path, expressions: Sequence[str]) -> list[str]:
    """Judge selectors: `true`, `false` or the kind of an error."""
    cases = [_case(str(place), text) for place, text in enumerate(expressions)]
    return [_judgement(answer) for answer in answers(program, cases)]


def _case(name: str, expression: str) -> Json:
    request = {
        "deviceClassName": "any",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
    }
    devices = {"requests": [{"name": "r", "exactly": request}]}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": [_GPU]}
    metadata = {"name": "c", "namespace": "d", "uid": "u"}
    return {
        "id": name,
        "node": {"metadata": {"name": "n"}},
        "claims": [{"metadata": metadata, "spec": {"devices": devices}}],
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "features": FEATURES,
    }


_GPU = to_builtins(GPU)


def _judgement(answer: Json) -> str:
    return _kind(answer.get("error") or str(answer["outcome"] == "success"))


def ours(evaluator: SelectorEvaluator, expression: str) -> str:
    (verdict,) = evaluator.evaluate([(expression, DRIVER, GPU)])
    return str(verdict.value) if verdict.value is not None else _kind(verdict.error)


def _kind(text: str) -> str:
    """Return which error a text tells of."""
    for kind in ("compile error", "runtime error", "empty"):
        if kind in text:
            return kind
    return text


def test_every_case_of_ours_is_judged_so_by_upstream(upstream_oracle: Path) -> None:
    """So that a wrong case is not kept true by a wrong engine."""
    theirs = upstream(upstream_oracle, [expression for expression, _ in CASES])
    assert [
        (expression, expected, judged)
        for (expression, expected), judged in zip(CASES, theirs, strict=True)
        if not _agrees(expected, judged) and expression not in KNOWN
    ] == []


def _agrees(expected: Expected, judged: str) -> bool:
    if isinstance(expected, bool):
        return judged == str(expected)
    return judged not in ("True", "False")


def test_deep_expressions_are_judged_alike(
    upstream_oracle: Path, evaluator: SelectorEvaluator
) -> None:
    """From what the engine reads by itself to what Kubernetes reads."""
    draw = random.Random(1)
    expressions = [_draw(draw) for _ in range(DRAWN)]
    theirs = upstream(upstream_oracle, expressions)
    found = [ours(evaluator, expression) for expression in expressions]
    assert [
        (expression[:60], len(expression), upstreams, own)
        for expression, upstreams, own in zip(expressions, theirs, found, strict=True)
        if upstreams != own
    ] == []
    assert set(theirs) == {"True", "False", "compile error", "runtime error"}


def _draw(draw: random.Random) -> str:
    if draw.random() < 0.2:
        opening, within, closing = draw.choice(NESTS)
        count = draw.randint(1, MOST_NESTED)
        whole = opening * count + within + closing * count
        return f"{whole} == {whole}"
    before, each, after = draw.choice(CHAINS)
    count = draw.randint(1, MOST)
    words = {"{count}": str(count), "{sum}": str(count + 1)}
    for word, number in words.items():
        before, after = before.replace(word, number), after.replace(word, number)
    return before + each * count + after
