"""Equal looks, equal verdicts: the law on which memoised selectors stand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from contracts.device import Device
from solver.cel.sandbox import Sandbox
from solver.problem.attributes import DERIVED
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from tests.builders import Version, device

DRIVER = "d.io"
DOMAINS = ("d.io", "e.io", "none.io")
NAMES = ("x", "y", "e.io/x", "e.io/y", "d.io/x")
VALUES = (0, 1, True, False, "x", "1", Version("1.0.0"), (1,), ("x", "y"), (True,))
SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    found = Sandbox()
    yield found
    found.close()


def devices() -> SearchStrategy[Device]:
    return st.builds(
        device,
        attributes=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES)),
        capacity=st.dictionaries(
            st.sampled_from(NAMES), st.sampled_from(("1", "1000m", "2"))
        ),
        allow_multiple_allocations=st.sampled_from((None, True, False)),
    )


def maps(mark: str = "") -> SearchStrategy[str]:
    """Draw a domain's map, in all the ways to write one."""
    field = st.sampled_from(("attributes", "capacity"))
    key = st.sampled_from(
        (
            *(f'"{domain}"' for domain in DOMAINS),
            *(f"r'{domain}'" for domain in DOMAINS),
            '"d" + ".io"',
            "device.driver",
            '"""e.io"""',
            '"\\x65.io"',
        )
    )
    return st.builds(
        lambda field, spaces, key: f"device{spaces}.{field}[{mark}{key}]",
        field,
        st.sampled_from(("", " ", " // [\n")),
        key,
    )


def conditions() -> SearchStrategy[str]:
    """Draw conditions that read a device this way and that."""
    name = st.sampled_from(("x", "y", "z"))
    value = st.sampled_from(("0", "1", "true", '"x"', "[1]", 'semver("1.0.0")'))
    simple = st.one_of(
        st.builds(lambda m, n, v: f"{m}.{n} == {v}", maps(), name, value),
        st.builds(
            lambda m, n, v: f"{m}.?{n}.orValue(dyn({v})) == {v}", maps(), name, value
        ),
        st.builds(lambda m, n, v: f'{m}["{n}"] == {v}', maps(), name, value),
        st.builds(lambda m, n: f"has({m}.{n})", maps(), name),
        st.builds(lambda m, n: f'"{n}" in {m}', maps(), name),
        st.builds(lambda m, n: f'("{n}" == "x") == ("{n}" in {m})', maps(), name),
        st.builds(lambda m, n: f"{m}.exists(k, k == '{n}')", maps(), name),
        st.builds(lambda m, n: f"{m}.exists(k, v, v == dyn('{n}'))", maps(), name),
        st.builds(lambda m: f"{m}.size() == 1", maps()),
        st.builds(lambda m, n: f"cel.bind(m, {m}, m.{n} == 1)", maps(), name),
        st.builds(lambda m, n: f"[{m}, {m}][1].{n} == 1", maps(), name),
        st.builds(lambda m, n: f"{m}.?{n}.hasValue()", maps("?"), name),
        st.builds(lambda m: f"{m}.orValue({{}}).size() == 1", maps("?")),
        st.builds(lambda m, n: f"has({m}.{n})", maps("?"), name),
        st.builds(lambda d: f'"{d}" in device.attributes', st.sampled_from(DOMAINS)),
        st.builds(lambda d: f'"{d}" in device.capacity', st.sampled_from(DOMAINS)),
        st.just("device.attributes.all(d, d == device.driver)"),
        st.just("device.capacity.size() == 1"),
        st.just("device.attributes == {}"),
        st.just("cel.bind(all, device.attributes, all['d.io'].x == 1)"),
        st.just("device.allowMultipleAllocations"),
        st.just("device.driver == 'd.io'"),
        st.just(r"r'\d' == device.attributes['d.io'].x || '\'' == ''"),
        st.just("device.capacity['d.io'].x.isInteger()"),
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds(lambda a, b: f"({a}) || ({b})", inner, inner),
            st.builds(lambda a, b: f"({a}) && ({b})", inner, inner),
            st.builds(lambda a, b: f"({a}) ? ({b}) : !({a})", inner, inner),
        ),
        max_leaves=3,
    )


@given(conditions(), devices(), devices(), st.sampled_from((True, True, True, False)))
@SETTINGS
def test_devices_that_look_the_same_are_judged_the_same(
    sandbox: Sandbox, expression: str, first: Device, other: Device, mixed: bool
) -> None:
    """One verdict stands for all devices of one projection."""
    second = other
    if mixed:  # differ in capacity alone, so that many pairs look the same
        second = Device(
            name=other.name, attributes=first.attributes, capacity=other.capacity
        )
    seen = footprint_of(expression)
    assume(project(seen, DRIVER, first) == project(seen, DRIVER, second))
    verdicts = sandbox.evaluate(expression, [(DRIVER, first), (DRIVER, second)])
    assert verdicts[0] == verdicts[1]


@given(conditions(), devices())
@SETTINGS
def test_a_condition_is_judged_or_fails_by_its_own_fault(
    sandbox: Sandbox, expression: str, found: Device
) -> None:
    """What the strategies draw compiles, so that the laws here are about something."""
    verdict = sandbox.evaluate(expression, [(DRIVER, found)])[0]
    own_faults = ("no such", "no matching overload", "bool")
    assert verdict.value is not None or any(
        fault in verdict.error for fault in own_faults
    ), (expression, verdict)


@given(st.text(alphabet="device.attributes[]()?'\"\\`\n/rb x1&|=,{}", max_size=60))
@SETTINGS
def test_any_text_is_read_and_judged(sandbox: Sandbox, text: str) -> None:
    """Whatever is written, reading it ends and the sandbox answers."""
    assert footprint_of(text) == footprint_of(text)
    verdict = sandbox.evaluate(text, [(DRIVER, device())])[0]
    is_derived = text.startswith(DERIVED) and verdict.attribute is not None
    assert verdict.value is not None or verdict.error or is_derived
