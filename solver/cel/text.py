"""Regular expressions and named formats. Runs inside the sandbox.

Patterns go to RE2, never to `re`: that one backtracks, and patterns are untrusted.

Source: Kubernetes' CEL libraries `regex` and `format`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import re2
from cel_expr_python import cel

from solver.cel.messages import (
    INT,
    NAMED_FORMAT,
    NAMED_FORMAT_TYPE,
    STRING,
    InputError,
    call,
    function,
    method,
    text_of,
)
from solver.cel.network import is_uri

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"
_DATE_TIME = r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})"


def declare_functions() -> list[Any]:
    """Declare `find`, `findAll` and the named formats."""
    texts = cel.Type.List(STRING)
    return [
        function("find", method("string_find", STRING, STRING, STRING, impl=_find)),
        function(
            "findAll",
            method("string_find_all", texts, STRING, STRING, impl=_find_all),
            method("string_find_all_int", texts, STRING, STRING, INT, impl=_find_all),
        ),
        # Both give an optional in Kubernetes; see rewrite.OPTIONAL_RESULTS.
        function(
            "format.named__",
            call(
                "format_named",
                cel.Type.Map(STRING, NAMED_FORMAT_TYPE),
                STRING,
                impl=_find_format,
            ),
        ),
        function(
            "validate__",
            method(
                "format_validate",
                cel.Type.Map(STRING, texts),
                NAMED_FORMAT_TYPE,
                STRING,
                impl=_validate,
            ),
        ),
        *(
            function(
                f"format.{name}",
                call(f"format_{name}", NAMED_FORMAT_TYPE, impl=_make_format(name)),
            )
            for name in _FORMATS
        ),
    ]


def _compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise InputError(f"Illegal regex: {pattern[:80]!r}") from error


def _find(text: str, pattern: str) -> str:
    match = _compile(pattern).search(text)
    return "" if match is None else str(match.group())


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    texts: list[str] = []
    for match in _compile(pattern).finditer(text):
        if 0 <= limit <= len(texts):
            break
        texts.append(match.group())
    return texts


def _find_format(name: str) -> dict[str, Any]:
    return {"format": NAMED_FORMAT(value=name)} if name in _FORMATS else {}


def _make_format(name: str) -> Callable[[], Any]:
    return lambda: NAMED_FORMAT(value=name)


def _validate(named: Any, text: str) -> dict[str, list[str]]:
    fault = _FORMATS[text_of(named, NAMED_FORMAT)](text)
    return {"errors": [fault]} if fault else {}


def _make_shape_check(pattern: str, limit: int, what: str) -> Callable[[str], str]:
    compiled = re2.compile(pattern)

    def fault(text: str) -> str:
        if len(text) > limit:
            return f"must be no more than {limit} characters"
        return "" if compiled.fullmatch(text) is not None else f"must be {what}"

    return fault


def _make_prefix_check(check: Callable[[str], str]) -> Callable[[str], str]:
    """Let a name end in a dash: something will be appended."""
    return lambda text: check(text[:-1] + "a" if text.endswith("-") else text)


def _check_qualified_name(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    if slash and (fault := _SUBDOMAIN(prefix)):
        return f"prefix part {fault}"
    return _NAME_PART(name)


def _make_parse_check(
    what: str, parse: Callable[[str], object]
) -> Callable[[str], str]:
    def fault(text: str) -> str:
        try:
            parse(text)
        except ValueError:
            return f"invalid {what}"
        return ""

    return fault


def _parse_date(text: str) -> date:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is None:
        raise InputError("invalid date")
    return date.fromisoformat(text)


def _parse_date_time(text: str) -> datetime:
    if re2.fullmatch(_DATE_TIME, text) is None:
        raise InputError("invalid datetime")
    return datetime.fromisoformat(text[:19] + "+00:00")


def _parse_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InputError("invalid byte") from error


def _check_uri(text: str) -> str:
    return "" if is_uri(text) else "invalid uri"


_LABEL_VALUE = _make_shape_check(f"({_NAME})?", 63, "a label value")
_NAME_PART = _make_shape_check(_NAME, 63, "a qualified name")
_DNS_LABEL = _make_shape_check(_LABEL, 63, "a lowercase RFC 1123 label")
_SUBDOMAIN = _make_shape_check(
    rf"{_LABEL}(\.{_LABEL})*", 253, "a lowercase RFC 1123 subdomain"
)
_DNS_LABEL_1035 = _make_shape_check(_LABEL_1035, 63, "a lowercase RFC 1035 label")
_FORMATS: dict[str, Callable[[str], str]] = {
    "dns1123Label": _DNS_LABEL,
    "dns1123Subdomain": _SUBDOMAIN,
    "dns1035Label": _DNS_LABEL_1035,
    "qualifiedName": _check_qualified_name,
    "dns1123LabelPrefix": _make_prefix_check(_DNS_LABEL),
    "dns1123SubdomainPrefix": _make_prefix_check(_SUBDOMAIN),
    "dns1035LabelPrefix": _make_prefix_check(_DNS_LABEL_1035),
    "labelValue": _LABEL_VALUE,
    "uri": _check_uri,
    "uuid": _make_shape_check(_UUID, 36, "a uuid"),
    "byte": _make_parse_check("byte", _parse_bytes),
    "date": _make_parse_check("date", _parse_date),
    "datetime": _make_parse_check("datetime", _parse_date_time),
}
