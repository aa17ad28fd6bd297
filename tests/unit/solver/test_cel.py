"""What Kubernetes' CEL library answers: every function, and what it refuses."""

from __future__ import annotations

import pytest

from solver.cel.lists import MAX_INCLUDED
from solver.cel.network import is_uri
from tests.builders.expressions import judge_expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # Numbers of any types are compared: other values with their own type alone.
        ("1 < 1.5", True),
        ("2u > 1", True),
        ("1.5 >= 2", False),
        ("1 <= 1u", True),
        ("-1 < 0u", True),
        ("'a' < 'b'", True),
        ("b'a' <= b'a'", True),
        ("timestamp('2026-01-01T00:00:00Z') > timestamp('2025-01-01T00:00:00Z')", True),
        ("duration('1m') < duration('61s')", True),
        # Addresses and networks are written as texts:
        # beside what CEL itself writes so.
        ("string(1) == '1'", True),
        ("string(true) == 'true'", True),
        ("string(ip('::0')) == '::'", True),
        ("string(cidr('10.0.0.0/8')) == '10.0.0.0/8'", True),
        # Equal types and arguments of format pass:
        # what is formatted may be of any types.
        ("[1, 2].size() == 2", True),
        ("{'a': 1, 'b': 2}.size() == 2", True),
        ("[].size() == 0", True),
        ("'%s %d'.format(['a', 1]) == 'a 1'", True),
        # Quantities are exact amounts:
        # however they are written, in whole and in parts.
        ("quantity('1Gi') == quantity('1024Mi')", True),
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("quantity('1').isLessThan(quantity('1'))", False),
        ("quantity('1').compareTo(quantity('2')) == -1", True),
        ("quantity('1').add(2).sub(quantity('500m')) == quantity('2500m')", True),
        ("quantity('3').asInteger() == 3", True),
        ("quantity('1500m').isInteger()", False),
        ("quantity('1500m').asApproximateFloat() == 1.5", True),
        ("sign(quantity('-1m')) == -1", True),
        ("isQuantity('1Gi')", True),
        ("isQuantity('x')", False),
        # Versions are ordered by their precedence:
        # build metadata does not matter; leniency is asked for.
        ("semver('1.2.3+a') == semver('1.2.3+b')", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1", True),
        ("semver('1.2.3-rc.1').patch() == 3", True),
        ("semver('v1.2', true).minor() == 2", True),
        ("isSemver('v1.2', true)", True),
        ("isSemver('v1.2')", False),
        ("isSemver('01.2.3')", False),
        # A list is asked for its order, its sum and places:
        # what is not in a list has the place -1.
        ("[1, 2, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("[1, 2].sum() == 3", True),
        ("[3, 1].min() == 1", True),
        ("[3, 1].max() == 3", True),
        ("[1, 2, 1].indexOf(1) == 0", True),
        ("[1, 2, 1].lastIndexOf(1) == 2", True),
        ("[1, 2].indexOf(3) == -1", True),
        # Texts keep their methods of the same names:
        # a search may begin at a place, and the last one ends there.
        ('"abcb".indexOf("b") == 1', True),
        ('"abcb".lastIndexOf("b") == 3', True),
        ('"abcb".indexOf("b", 2) == 3', True),
        ('"abcb".lastIndexOf("b", 2) == 1', True),
        ('"abcb".indexOf("b", 9) == -1', True),
        # Includes reads a value as a list of one:
        # values are compared as CEL does: true is not 1, but 1 is 1.0.
        ("[1, 2].includes(2)", True),
        ("[1, 2].includes(3)", False),
        ('"a".includes("a")', True),
        ("dyn([true]).includes(1)", False),
        ("dyn([1.0]).includes(1)", True),
        # What matches is found up to a limit: a negative limit is none.
        ("'abc123'.find('[0-9]+') == '123'", True),
        ("'abc'.find('[0-9]+') == ''", True),
        ("'a1b2'.findAll('[0-9]') == ['1', '2']", True),
        ("'a1b2'.findAll('[0-9]', 1) == ['1']", True),
        ("'a1b2'.findAll('[0-9]', 0).size() == 0", True),
        ("'a1b2'.findAll('[0-9]', -1).size() == 2", True),
        # A URL is read in parts: a `#` is part of the path, as in a request line.
        ("url('HTTPS://h').getScheme() == 'https'", True),
        ("url('https://u@h:80/p').getHost() == 'h:80'", True),
        ("url('https://u@[::1]:80/p').getHostname() == '::1'", True),
        ("url('https://[::1]:80/p').getPort() == '80'", True),
        ("url('https://h/a b'.replace(' ', '%20')).getEscapedPath() == '/a%20b'", True),
        ("url('https://h/p?q=1&q=').getQuery() == {'q': ['1', '']}", True),
        ("url('https://h/p#f').getEscapedPath() == '/p%23f'", True),
        # An address is plain and of a sort: no zones and no IPv4 inside IPv6.
        ("ip('::1').family() == 6", True),
        ("ip.isCanonical('::0')", False),
        ("ip('127.0.0.1').isLoopback()", True),
        ("ip('0.0.0.0').isUnspecified()", True),
        ("ip('224.0.0.1').isLinkLocalMulticast()", True),
        ("ip('ff02::1').isLinkLocalMulticast()", True),
        ("ip('ff05::1').isLinkLocalMulticast()", False),
        ("ip('fe80::1').isLinkLocalUnicast()", True),
        ("ip('8.8.8.8').isGlobalUnicast()", True),
        ("ip('10.0.0.1').isGlobalUnicast()", True),
        ("ip('255.255.255.255').isGlobalUnicast()", False),
        ("isIP('::ffff:1.2.3.4')", False),
        ("isIP('fe80::1%eth0')", False),
        # A network holds addresses and smaller networks:
        # of its own family only; its length is written without zeros before it.
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))", False),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))", False),
        ("cidr('10.0.0.0/8').containsCIDR('::/16')", False),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
        ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", True),
        ("cidr('10.1.2.3/8').prefixLength() == 8", True),
        ("isCIDR('10.0.0.0/08')", False),
        ("isCIDR('10.0.0.0')", False),
    ],
)
def test_an_expression_has_the_value_that_kubernetes_gives_it(
    expression: str, value: bool
) -> None:
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        # What is no value of the kind is an error:
        # nothing is rounded, cut or mended unasked.
        ("quantity('1500m').asInteger() == 1", "cannot convert value to integer"),
        ("quantity('10E').asInteger() == 1", "cannot convert value to integer"),
        ("semver('v1.2').minor() == 2", "'v1.2' is no semantic version"),
        ("semver('9223372036854775808.0.0').major() == 1", "integer overflow"),
        # Nor has what a list or a text does not hold.
        ("[9223372036854775807, 1].sum() == 1", "integer overflow"),
        ("[].min() == 1", "min called on empty list"),
        ("[].max() == 1", "max called on empty list"),
        ('"abcb".indexOf("b", -1) == 3', "index out of range: -1"),
        ('["a"].sum() == 1', "no such overload"),
    ],
)
def test_what_has_no_answer_is_an_error(expression: str, error: str) -> None:
    """In Kubernetes' words, never a guess."""
    assert judge_expression(expression).error == f"CEL runtime error: {error}"


@pytest.mark.parametrize("expression", ["1 < 'a'", "string(quantity('1')) == '1'"])
def test_what_has_no_overload_is_no_selector(expression: str) -> None:
    """It is refused before any device is looked at."""
    error = judge_expression(expression).error
    assert error.startswith("CEL compile error: found no matching overload")


MIXED = "CEL compile error: expected type 'int' but found 'string'"


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 'a'].size() == 2",
        "{'a': 1, 'b': 'x'}.size() == 2",
        "{1: 1, 'b': 2}.size() == 2",
        "[1].exists(x, [x, 'a'].size() == 2)",
        "size([[1, 'a']]) == 1",
        "{'a': [1, 'a']}.size() == 1",
    ],
)
def test_a_literal_that_mixes_types_is_no_selector(expression: str) -> None:
    """Wherever it stands: elements, keys and values, in what it is part of."""
    assert judge_expression(expression).error == MIXED


def test_an_attribute_is_of_no_type_that_a_literal_shares() -> None:
    """A dynamic value beside a number is a mix, too."""
    verdict = judge_expression('[device.attributes["d"].x, 7].size() == 2')
    assert verdict.error == "CEL compile error: expected type 'dyn' but found 'int'"


def test_includes_looks_at_so_many_elements_and_no_more() -> None:
    """What comes later is neither found nor denied."""
    elements = ", ".join(map(str, range(MAX_INCLUDED + 1)))
    assert judge_expression(f"[{elements}].includes({MAX_INCLUDED - 1})").value
    verdict = judge_expression(f"[{elements}].includes({MAX_INCLUDED})")
    assert (
        verdict.error
        == f"CEL runtime error: includes: more than {MAX_INCLUDED} " + ("elements")
    )


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h", True),
        ("/path", True),
        ("urn:a:b", True),
        ("path", False),
        ("https:", False),
        ("/a b", False),
        ("/%zz", False),
        ("https://h:port", False),
    ],
)
def test_a_uri_is_absolute_or_an_absolute_path(text: str, expected: bool) -> None:
    """Without blanks, broken escapes or ports that are no numbers."""
    assert is_uri(text) is expected
