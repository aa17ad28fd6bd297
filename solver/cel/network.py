"""URLs, IP addresses and CIDRs as CEL values. Runs inside the sandbox.

Source: Kubernetes' CEL libraries `urls`, `ip` and `cidr`; Go's net/url and net/netip.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_interface,
)
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

import re2
from cel_expr_python import cel

from solver.cel.messages import (
    BOOL,
    CIDR,
    CIDR_TYPE,
    INT,
    IP,
    IP_TYPE,
    STRING,
    URL,
    URL_TYPE,
    InputError,
    call,
    function,
    method,
    text_of,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_FORBIDDEN = re2.compile(r"[\x00-\x20\x7f]|%(?:[^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)")
_SCHEME = re2.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def declare_functions() -> list[Any]:
    """Declare the functions of URLs, addresses and networks."""
    return [*_urls(), *_addresses(), *_networks()]


def _urls() -> list[Any]:
    """Declare `url`, `isURL` and the parts of a URL."""

    def part(name: str, read: Callable[[SplitResult], str]) -> Any:
        def impl(value: Any) -> str:
            return read(_split_url(text_of(value, URL)))

        return function(name, method(f"url_{name}", STRING, URL_TYPE, impl=impl))

    return [
        function("url", call("string_url", URL_TYPE, STRING, impl=_url)),
        function("isURL", call("is_url", BOOL, STRING, impl=is_uri)),
        part("getScheme", lambda url: url.scheme.lower()),
        part("getHost", _host),
        part("getHostname", _hostname),
        part("getPort", _port),
        part("getEscapedPath", lambda url: quote(url.path, safe="/%:@!$&'()*+,;=~")),
        function(
            "getQuery",
            method(
                "url_getQuery",
                cel.Type.Map(STRING, cel.Type.List(STRING)),
                URL_TYPE,
                impl=lambda value: parse_qs(
                    _split_url(text_of(value, URL)).query, keep_blank_values=True
                ),
            ),
        ),
    ]


def _addresses() -> list[Any]:
    """Declare `ip`, `isIP` and what can be asked of an address."""

    def test(name: str, predicate: Callable[[Address], bool]) -> Any:
        def impl(value: Any) -> bool:
            return predicate(ip_address(text_of(value, IP)))

        return function(name, method(f"ip_{name}", BOOL, IP_TYPE, impl=impl))

    return [
        function(
            "ip",
            call(
                "string_ip",
                IP_TYPE,
                STRING,
                impl=lambda text: IP(value=str(_parse_address(text))),
            ),
            method("cidr_ip", IP_TYPE, CIDR_TYPE, impl=_address_of),
        ),
        function(
            "isIP",
            call(
                "is_ip", BOOL, STRING, impl=lambda text: _parses(_parse_address, text)
            ),
        ),
        function(
            "ip.isCanonical",
            call(
                "ip_is_canonical",
                BOOL,
                STRING,
                impl=lambda text: str(_parse_address(text)) == text,
            ),
        ),
        function(
            "family",
            method(
                "ip_family",
                INT,
                IP_TYPE,
                impl=lambda value: ip_address(text_of(value, IP)).version,
            ),
        ),
        test("isUnspecified", lambda ip: ip.is_unspecified),
        test("isLoopback", lambda ip: ip.is_loopback),
        test("isLinkLocalMulticast", _is_link_local_multicast),
        test("isLinkLocalUnicast", lambda ip: ip.is_link_local),
        test("isGlobalUnicast", _is_global_unicast),
    ]


def _networks() -> list[Any]:
    """Declare `cidr`, `isCIDR` and what can be asked of a network."""

    def contains_text(value: Any, text: str) -> bool:
        return _parse_address(text) in _network_of(value)

    def contains(value: Any, address: Any) -> bool:
        return ip_address(text_of(address, IP)) in _network_of(value)

    def covers_text(value: Any, text: str) -> bool:
        return _is_inside(_parse_cidr(text)[1], _network_of(value))

    def covers(value: Any, other: Any) -> bool:
        return _is_inside(_network_of(other), _network_of(value))

    return [
        function("cidr", call("string_cidr", CIDR_TYPE, STRING, impl=_cidr_value)),
        function(
            "isCIDR",
            call("is_cidr", BOOL, STRING, impl=lambda text: _parses(_parse_cidr, text)),
        ),
        function(
            "containsIP",
            method(
                "cidr_contains_ip_string", BOOL, CIDR_TYPE, STRING, impl=contains_text
            ),
            method("cidr_contains_ip", BOOL, CIDR_TYPE, IP_TYPE, impl=contains),
        ),
        function(
            "containsCIDR",
            method(
                "cidr_contains_cidr_string", BOOL, CIDR_TYPE, STRING, impl=covers_text
            ),
            method("cidr_contains_cidr", BOOL, CIDR_TYPE, CIDR_TYPE, impl=covers),
        ),
        function(
            "masked",
            method(
                "cidr_masked",
                CIDR_TYPE,
                CIDR_TYPE,
                impl=lambda cidr: CIDR(value=str(_network_of(cidr))),
            ),
        ),
        function(
            "prefixLength",
            method(
                "cidr_length",
                INT,
                CIDR_TYPE,
                impl=lambda cidr: _network_of(cidr).prefixlen,
            ),
        ),
    ]


def is_uri(text: str) -> bool:
    """True if a text is an absolute URI or an absolute path, as Go reads it."""
    return _parses(_split_url, text)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except InputError:
        return False
    return True


def _url(text: str) -> Any:
    _split_url(text)
    return URL(value=text)


def _split_url(text: str) -> SplitResult:
    """Cut a URL up; a `#` is part of the path, as in a request line."""
    fault = InputError(f"URL parse error: invalid URI {text[:80]!r}")
    is_absolute = text.startswith("/") or _SCHEME.match(text) is not None
    if not is_absolute or _FORBIDDEN.search(text) is not None:
        raise fault
    try:
        url = urlsplit(text, allow_fragments=False)
        int(_port(url) or "0")
    except ValueError as error:
        raise fault from error
    if url.scheme and not (url.netloc or text[len(url.scheme) + 1 :]):
        raise fault
    return url


def _host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def _hostname(url: SplitResult) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(url: SplitResult) -> str:
    host = _host(url)
    if host.startswith("["):
        host = host.partition("]")[2]
    return host.partition(":")[2]


def _parse_address(text: str) -> Address:
    """Read an address: no zone, no IPv4 inside IPv6."""
    try:
        address = ip_address(text)
    except ValueError as error:
        raise InputError(f"IP Address {text[:80]!r} parse error") from error
    _expect_plain(address)
    return address


def _parse_cidr(text: str) -> tuple[Address, Network]:
    fault = InputError(f"CIDR {text[:80]!r} parse error: network address parse error")
    bits = text.rpartition("/")[2]
    if "/" not in text or not bits.isdecimal() or str(int(bits)) != bits:
        raise fault
    try:
        interface = ip_interface(text)
    except ValueError as error:
        raise fault from error
    _expect_plain(interface.ip)
    return interface.ip, interface.network


def _expect_plain(address: Address) -> None:
    if isinstance(address, IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise InputError("IPv4-mapped IPv6 address and zones are not allowed")


def _cidr_value(text: str) -> Any:
    address, network = _parse_cidr(text)
    return CIDR(value=f"{address}/{network.prefixlen}")


def _network_of(value: Any) -> Network:
    return ip_interface(text_of(value, CIDR)).network


def _address_of(value: Any) -> Any:
    return IP(value=str(ip_interface(text_of(value, CIDR)).ip))


def _is_inside(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network):
        return inner.subnet_of(outer)
    return False


def _is_link_local_multicast(ip: Address) -> bool:
    if isinstance(ip, IPv4Address):
        return ip in IPv4Network("224.0.0.0/24")
    return ip.is_multicast and ip.packed[1] & 0x0F == 2


def _is_global_unicast(ip: Address) -> bool:
    """As Go says it: not unspecified, loopback, multicast, link-local, broadcast."""
    special = ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local
    return not special and ip != IPv4Address("255.255.255.255")
