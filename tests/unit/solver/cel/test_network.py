"""URLs, addresses and networks, as Go reads them."""

from __future__ import annotations

import pytest

from solver.cel.network import is_uri
from tests.builders.expressions import judge_expression


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


@pytest.mark.parametrize(
    "expression",
    [
        "url('HTTPS://h').getScheme() == 'https'",
        "url('https://u@h:80/p').getHost() == 'h:80'",
        "url('https://u@[::1]:80/p').getHostname() == '::1'",
        "url('https://[::1]:80/p').getPort() == '80'",
        "url('https://h/a b'.replace(' ', '%20')).getEscapedPath() == '/a%20b'",
        "url('https://h/p?q=1&q=').getQuery() == {'q': ['1', '']}",
        "url('https://h/p#f').getEscapedPath() == '/p%23f'",
    ],
)
def test_a_url_is_read_in_parts(expression: str) -> None:
    """A `#` is part of the path, as in a request line."""
    assert judge_expression(expression).value is True


@pytest.mark.parametrize(
    ("expression", "value"),
    [
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
    ],
)
def test_an_address_is_plain_and_of_a_sort(expression: str, value: bool) -> None:
    """No zones and no IPv4 inside IPv6."""
    assert judge_expression(expression).value is value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
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
def test_a_network_holds_addresses_and_smaller_networks(
    expression: str, value: bool
) -> None:
    """Of its own family only; its length is written without zeros before it."""
    assert judge_expression(expression).value is value
