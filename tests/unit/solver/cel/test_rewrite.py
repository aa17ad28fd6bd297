"""How an expression is written for the engine."""

from __future__ import annotations

import pytest

from solver.cel.rewrite import rewrite

A = "device.attributes"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (f'{A}["d"].x', f'{A}[?"d"].orValue({{}}).x'),
        (f"{A} [ d ]", f"{A} [? d ].orValue({{}})"),
        (f"{A}.d.x", f'{A}[?"d"].orValue({{}}).x'),
        (f'{A}[?"d"].?x', f'optional.of({A}[?"d"].orValue({{}})).?x'),
        (f'.{A}[?"d"]', f'optional.of(.{A}[?"d"].orValue({{}}))'),
        (f'{A}[{A}["a"].b].c', f'{A}[?{A}[?"a"].orValue({{}}).b].orValue({{}}).c'),
        (
            f'{A}[{A}[?"a"].b]',
            f'{A}[?optional.of({A}[?"a"].orValue({{}})).b].orValue({{}})',
        ),
        (f"{A}.?d.?x", f'optional.of({A}[?"d"].orValue({{}})).?x'),
        ("has(device.driver)", "true"),
        (f"has({A}.d) && has({A}.d.x)", f'true && has({A}[?"d"].orValue({{}}).x)'),
        ("[device, device.driver]", "[device__, device.driver]"),
        ("device.?driver", "device__.?driver"),
        (f'cel.bind(m, {A}, m["d"].x)', f'({A}[?"d"].orValue({{}}).x)'),
        (r'''r"a\" == br'\' + r"""\"""''', r'''"a\\" == b'\\' + """\\"""'''),
        ('"a".indexOf("b")', '"a".indexOf__("b")'),
        ("f.validate(x)", 'f.validate__(x)[?"errors"]'),
        ('format.named("a")', 'format.named__("a")[?"format"]'),
    ],
)
def test_what_the_engine_lacks_is_written_another_way(
    written: str, expected: str
) -> None:
    """The meaning is the same, only the engine can read it."""
    assert rewrite(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        f'"d" in {A}',
        f"{A}.exists(d, true)",
        f"{A}.size()",
        "device.driver == 'a'",
        "device.nope",
        "device.?nope",
        "x.device + x.?device",
        "device(1)",
        "[1].all(device, device > 0)",
        r'''r"\d" + r"" + "\\"''',
        "indexOf(1)",
        "validate(1)",
        "x.validate",
        f"'{A}[0].indexOf(1)' // {A}[0]",
        f"{A}[",
        "'unterminated",
        f"{A}[(]",
    ],
)
def test_the_rest_stays_as_it_is(written: str) -> None:
    """Texts, comments and other names are not touched."""
    assert rewrite(written) == written
