"""Regular expressions and named formats."""

from __future__ import annotations

import pytest

from tests.builders.expressions import judge_expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'abc123'.find('[0-9]+') == '123'", True),
        ("'abc'.find('[0-9]+') == ''", True),
        ("'a1b2'.findAll('[0-9]') == ['1', '2']", True),
        ("'a1b2'.findAll('[0-9]', 1) == ['1']", True),
        ("'a1b2'.findAll('[0-9]', 0).size() == 0", True),
        ("'a1b2'.findAll('[0-9]', -1).size() == 2", True),
    ],
)
def test_what_matches_is_found_up_to_a_limit(expression: str, value: bool) -> None:
    """A negative limit is none."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize("pattern", ["(a)\\\\1", "a(?=b)"])
def test_a_pattern_that_could_backtrack_is_refused(pattern: str) -> None:
    """Patterns are untrusted: RE2 knows no references back and no looking around."""
    verdict = judge_expression(f"'aa'.find('{pattern}') == ''")
    assert verdict.error.startswith("CEL runtime error: Illegal regex: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dns1123Label", "a-b"),
        ("dns1123LabelPrefix", "a-"),
        ("dns1123Subdomain", "a.b-c"),
        ("dns1035Label", "a1"),
        ("qualifiedName", "example.com/A_b"),
        ("labelValue", ""),
        ("uri", "https://a/b"),
        ("uuid", "7c1b0f8e-4a57-4f2f-9d6e-0d2f6f3f0a01"),
        ("byte", "YQ=="),
        ("date", "2028-02-29"),
        ("datetime", "2026-11-22T11:00:00.5+01:00"),
    ],
)
def test_a_format_has_nothing_to_say_of_its_own(name: str, text: str) -> None:
    """No error: the text is of the format, named or called."""
    assert judge_expression(f"!format.{name}().validate('{text}').hasValue()").value
    named = f"!format.named('{name}').value().validate('{text}').hasValue()"
    assert judge_expression(named).value


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("dns1123Label", "A", "must be a lowercase RFC 1123 label"),
        ("dns1123Label", "a-", "must be a lowercase RFC 1123 label"),
        ("dns1123Label", "a" * 64, "must be no more than 63 characters"),
        ("dns1035Label", "1a", "must be a lowercase RFC 1035 label"),
        ("qualifiedName", "A/b", "prefix part must be a lowercase RFC 1123 subdomain"),
        ("uri", "a b", "invalid uri"),
        ("byte", "Y!", "invalid byte"),
        ("date", "2026-02-29", "invalid date"),
        ("datetime", "2026-11-22", "invalid datetime"),
    ],
)
def test_a_text_of_another_format_is_told_why(name: str, text: str, fault: str) -> None:
    """With one error that names what it must be."""
    expression = f"format.{name}().validate('{text}').value() == ['{fault}']"
    assert judge_expression(expression).value


def test_an_unknown_format_is_none() -> None:
    """An absent optional, not an error."""
    assert judge_expression("format.named('nope').hasValue()").value is False
