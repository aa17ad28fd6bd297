"""Selectors as the sandbox judges them: a table, and what tries to break out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from contracts.device import Device, DeviceAttribute
from solver.cel.evaluator import SelectorEvaluator
from solver.cel.sandbox import KILLED, Sandbox
from solver.cel.wire import Allowance, Limits
from solver.errors import SandboxUnavailableError
from solver.selectors.table import Verdict
from tests.builders import Version, device
from tests.cases.selectors import CASES, DRIVER, GPU, Expected, costly_selector

MODEL = f'device.attributes["{DRIVER}"].brand == "Nvidia"'
TEN = "[0,1,2,3,4,5,6,7,8,9]"
DOUBLINGS = (
    "cel.bind(a0, 'xxxxxxxxxxxxxxxx', "
    + "".join(f"cel.bind(a{i + 1}, a{i} + a{i} + a{i} + a{i}, " for i in range(24))
    + "a24.size() > 0"
    + ")" * 25
)
DEADLY = " && ".join(["lists.range(4000000).sort().size() > 0"] * 8)
"""Takes a second, which its price does not tell, or all of the memory."""
ATTACKS = {
    "endless comprehension": (
        "".join(f"{TEN}.all(v{i}, " for i in range(5)) + "true" + ")" * 5,
        "more than 10000 steps of a comprehension",
    ),
    "endless range": ("lists.range(1000000000).size() > 0", "CEL runtime error"),
    "doubled string": (DOUBLINGS.replace("24", "20"), "estimated cost"),
    "doubled replace": (
        "'x'" + ".replace('x', 'xxxxxxxxxxxxxxxx')" * 10 + ".size() > 0",
        "estimated cost",
    ),
    "deep nesting": ("(" * 300 + "true" + ")" * 300, "nested deeper than"),
    "deeper nesting": ("[" * 5000 + "]" * 5000 + " == []", "nested deeper than"),
    "long chain": ("+".join(["1"] * 400) + " == 400", "nested deeper than"),
    "too long": ("'" + "x" * 10_300 + "' == ''", "longer than 10240 bytes"),
    "null": ("[dyn(null)].map(x, x)[0]", "could not be converted to bool"),
    "control characters": ("\0\1 == \ud800", "CEL compile error"),
}


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as found:
        yield found


def judged(
    evaluator: SelectorEvaluator, expression: str, seen: Device = GPU
) -> Verdict:
    return evaluator.evaluate([(expression, DRIVER, seen)])[0]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_expression_is_judged_as_upstream_judges_it(
    evaluator: SelectorEvaluator, expression: str, expected: Expected
) -> None:
    verdict = judged(evaluator, expression)
    if isinstance(expected, bool):
        assert verdict == Verdict(value=expected)
    else:
        assert verdict.value is None
        assert expected in verdict.error


@pytest.mark.parametrize(
    "attribute", [DeviceAttribute(), DeviceAttribute(int_value=2**63)]
)
def test_an_attribute_without_valid_value_fails_any_selector(
    evaluator: SelectorEvaluator, attribute: DeviceAttribute
) -> None:
    broken = Device(name=GPU.name, attributes={"a": attribute})
    verdict = judged(evaluator, "true", broken)
    assert verdict.error == (
        "CEL runtime error: attribute a: unsupported attribute value"
    )
    assert "CEL compile error" in judged(evaluator, "nope", broken).error


def test_a_malformed_version_fails_any_selector(evaluator: SelectorEvaluator) -> None:
    broken = device(attributes={"v": Version("1.2"), "x": 1})
    assert "attribute v: unsupported" in judged(evaluator, "true", broken).error


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_costs_one_verdict(evaluator: SelectorEvaluator, attack: str) -> None:
    """Whatever it does, it ends with an error and the next expression is judged."""
    expression, error = ATTACKS[attack]
    verdict = judged(evaluator, expression)
    assert verdict.value is None
    assert error in verdict.error
    assert judged(evaluator, MODEL) == Verdict(value=True)


def test_a_backtracking_pattern_is_harmless(evaluator: SelectorEvaluator) -> None:
    """RE2 takes linear time where others take centuries."""
    text = "'" + "a" * 200 + "!'"
    for expression in (f"{text}.matches('^(a+)+$')", f"{text}.find('^(a+)+$') != ''"):
        assert judged(evaluator, expression) == Verdict(value=False)


def test_a_device_after_a_deadly_one_is_judged() -> None:
    """A process that dies of one device costs that device's verdict only."""
    deadly = device(attributes={"n": 26})
    harmless = [device(f"gpu-{n}", attributes={"n": n}) for n in range(2)]
    expression = (
        f'device.attributes["{DRIVER}"].n == 26 ? ({DEADLY}) : '
        f'device.attributes["{DRIVER}"].n == 1'
    )
    with SelectorEvaluator(Sandbox(Limits(cpu_s=0.1))) as found:
        rows = [(expression, DRIVER, d) for d in (harmless[0], deadly, harmless[1])]
        verdicts = found.evaluate(rows)
    assert [verdict.value for verdict in verdicts] == [False, None, True]
    assert "CEL runtime error" in verdicts[1].error


def test_an_expression_that_kills_again_and_again_is_given_up() -> None:
    sandbox = Sandbox(Limits(cpu_s=0.1, losses=2))
    expression = f'device.attributes["{DRIVER}"].n >= 0 && ({DEADLY})'
    rows = [(expression, DRIVER, device(attributes={"n": n})) for n in range(6)]
    with SelectorEvaluator(sandbox) as found:
        verdicts = found.evaluate(rows)
        assert len(verdicts) == 6
        assert all(verdict.error for verdict in verdicts)
        assert found.evaluations == 0
        assert found.refusal_of(expression) == verdicts[0].error


COSTLY = costly_selector(DRIVER)


def rows_of(expression: str, count: int) -> list[tuple[str, str, Device]]:
    return [
        (expression, DRIVER, device(f"gpu-{n}", attributes={"uuid": f"{n}"}))
        for n in range(count)
    ]


def test_expressions_are_evaluated_as_far_as_they_are_allowed() -> None:
    """Ordinary ones to the end; what is left of a slow one goes on later."""
    plain = f'device.attributes["{DRIVER}"].uuid != "1"'
    allowance = Allowance(base_s=0.2, look_s=0.0005)
    rows = [*rows_of(COSTLY, 60), *rows_of(plain, 500)]
    with SelectorEvaluator() as found:
        verdicts, spent_s = found.evaluate_within(rows, allowance)
        assert all(verdicts[60:]), "the plain ones are all judged"
        judged = sum(verdict is not None for verdict in verdicts[:60])
        assert 0 < judged < 60
        assert spent_s > 0.2
        again, _ = found.evaluate_within(rows, allowance)
        assert sum(verdict is not None for verdict in again[:60]) > judged
        assert found.evaluations < 60 + 500
        none, spent_s = found.evaluate_within(rows_of("true", 1), allowance, 0.0)
        assert (none, spent_s) == ([None], 0.0)


def test_an_expression_that_costs_too_much_in_all_is_refused_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And is not paid for again."""
    monkeypatch.setattr(
        "solver.cel.evaluator.EXPENSIVE", Allowance(base_s=0.3, look_s=0.002)
    )
    with SelectorEvaluator() as found:
        verdicts = found.evaluate(rows_of(COSTLY, 400))
        assert len(verdicts) == 400
        assert "too expensive" in verdicts[-1].error
        assert found.refusal_of(COSTLY) == verdicts[-1].error
        evaluations = found.evaluations
        assert evaluations < 400
        fresh = [
            (COSTLY, DRIVER, device("new", attributes={"uuid": f"n{n}"}))
            for n in range(3)
        ]
        assert [v.error for v in found.evaluate(fresh)] == [verdicts[-1].error] * 3
        assert found.evaluations == evaluations


def test_a_sandbox_killed_at_rest_is_replaced() -> None:
    sandbox = Sandbox()
    with SelectorEvaluator(sandbox) as found:
        assert judged(found, "true").value is True
        before = sandbox.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        assert judged(found, "1 == 1").value is True
        assert sandbox.pid != before


def test_a_sandbox_killed_at_work_is_asked_again_once() -> None:
    """The second kill becomes an error, which is not remembered."""
    sandbox = Sandbox(Limits(cpu_s=60.0, memory_bytes=1 << 40))
    with SelectorEvaluator(sandbox) as found, ThreadPoolExecutor(1) as thread:
        assert judged(found, "true").value is True
        result = thread.submit(judged, found, DEADLY)
        killed: set[int] = set()
        while len(killed) < 2 and not result.done():
            pid = sandbox.pid
            if pid is not None and pid not in killed and is_busy(pid):
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
        assert result.result(timeout=30) == KILLED
        assert len(killed) == 2
        assert judged(found, MODEL) == Verdict(value=True)


def is_busy(pid: int) -> bool:
    """Say whether a process has started and is computing."""
    Event().wait(0.02)
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return False
    ticks = int(fields[11]) + int(fields[12])
    return fields[0] == "R" and ticks >= 40


def test_a_sandbox_is_recycled_without_a_trace_in_the_verdicts() -> None:
    sandbox = Sandbox(Limits(evaluations=2))
    with SelectorEvaluator(sandbox) as found:
        expression = f'device.attributes["{DRIVER}"].n >= 2'
        rows = [
            (expression, DRIVER, device(f"gpu-{n}", attributes={"n": n}))
            for n in range(5)
        ]
        verdicts = found.evaluate(rows)
        assert [verdict.value for verdict in verdicts] == [False, False] + [True] * 3


def test_a_leaking_expression_gets_fresh_processes() -> None:
    """A process that grows is replaced before it dies."""
    expression = (
        f'device.attributes["{DRIVER}"].n >= 0 && lists.range(3000).all(i, '
        'quantity("1").isInteger())'
    )
    rows = [(DRIVER, device(attributes={"n": n})) for n in range(12)]
    sandbox = Sandbox(Limits(resident_bytes=80 << 20))
    try:
        assert all(v.value is True for v in sandbox.evaluate(expression, rows))
    finally:
        sandbox.close()


def test_equal_looks_are_evaluated_once() -> None:
    """Attributes that an expression does not read cost nothing."""
    expression = f'device.attributes["{DRIVER}"].model == "A1"'
    rows = [
        (
            expression,
            DRIVER,
            device(f"gpu-{n}", attributes={"uuid": f"GPU-{n}", "model": f"A{n % 2}"}),
        )
        for n in range(50)
    ]
    with SelectorEvaluator() as found:
        verdicts = found.evaluate(rows)
        assert [verdict.value for verdict in verdicts] == [False, True] * 25
        assert found.evaluations == 2
        found.evaluate(rows)
        assert found.evaluations == 2


def test_an_installation_without_engine_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setattr("sys.executable", "/bin/false")
    sandbox = Sandbox()
    with pytest.raises(SandboxUnavailableError, match="installed"):
        sandbox.evaluate("true", [(DRIVER, GPU)])


def test_a_sandbox_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words, wherever a service waits for it; nothing is left open."""
    (tmp_path / "cel_expr_python.py").write_text("raise OSError('no such kernel')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    sandbox = Sandbox()
    with pytest.raises(SandboxUnavailableError, match=r"OSError: no such kernel$"):
        sandbox.wait_ready()
    with pytest.raises(SandboxUnavailableError, match=r"OSError: no such kernel$"):
        sandbox.evaluate("true", [(DRIVER, GPU)])


def test_a_sandbox_that_is_killed_at_its_start_is_started_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever did it, such as the kernel for want of memory; twice is told."""
    killed = tmp_path / "killed"
    (tmp_path / "cel_expr_python.py").write_text(
        "import os, signal, pathlib\n"
        f"once = pathlib.Path({str(killed)!r})\n"
        "if not once.exists():\n"
        "    once.touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "raise OSError('the second start')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="the second start"):
        Sandbox().wait_ready()
    (tmp_path / "cel_expr_python.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with pytest.raises(SandboxUnavailableError, match=r"killed by SIGKILL .* memory"):
        Sandbox().wait_ready()
