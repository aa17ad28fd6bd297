"""Templates are filled as kubectl fills them."""

from __future__ import annotations

import pytest

from moorings.cli.jsonpath import Template
from moorings.errors import UsageError

ROOT = {
    "items": [
        {"name": "a", "pods": 1, "labels": {"a/b": "x"}},
        {"name": "b", "pods": 2, "labels": {}},
    ]
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[*].name}", "a b"),
        ("{.items[0].name}: {.items[-1].pods}", "a: 2"),
        ("{$.items[0]['name']}", "a"),
        ("{.items[0].labels['a/b']}", "x"),
        ('{range .items[*]}{.name}{"\\t"}{.pods}{"\\n"}{end}', "a\t1\nb\t2\n"),
        ("{.items[0].labels}", '{"a/b": "x"}'),
        ("{.items[7].name}{.nothing}{.items.name}", ""),
        ("{range .items[*]}{@.name};{end}", "a;b;"),
        ("{'}'}plain", "}plain"),
        ("{.items[0].labels[*]}", "x"),
    ],
)
def test_a_template_is_filled(template: str, text: str) -> None:
    assert Template(template).render(ROOT) == text


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{range .items[*]}{.name}", "has no {end}"),
        ("{.items[*", "has no closing brace"),
        ("{.name} {", "has no closing brace"),
        ("{.items[?(@.pods>1)].name}", "not supported"),
        ("{..name}", "not supported"),
        (r'{"\q"}', "is no text"),
    ],
)
def test_what_is_not_supported_is_refused(template: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Template(template)
