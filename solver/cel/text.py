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
    NAMED_FORMAT,
    NAMED_FORMAT_TYPE,
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


def functions() -> list[Any]:
    """Declare them all."""
    t, named = cel.Type, NAMED_FORMAT_TYPE
    texts = t.List(t.STRING)
    return [
        function(
            "find", method("string_find", t.STRING, t.STRING, t.STRING, impl=_find)
        ),
        function(
            "findAll",
            method("string_find_all", texts, t.STRING, t.STRING, impl=_find_all),
            method(
                "string_find_all_int", texts, t.STRING, t.STRING, t.INT, impl=_find_all
            ),
        ),
        # Both give an optional in Kubernetes; see rewrite.OPTIONAL_RESULTS.
        function(
            "format.named__",
            call("format_named", t.Map(t.STRING, named), t.STRING, impl=_named),
        ),
        function(
            "validate__",
            method(
                "format_validate",
                t.Map(t.STRING, texts),
                named,
                t.STRING,
                impl=_validate,
            ),
        ),
        *(
            function(
                f"format.{name}", call(f"format_{name}", named, impl=_format(name))
            )
            for name in _FORMATS
        ),
    ]


def _pattern(pattern: str) -> Any:
    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise InputError(f"Illegal regex: {pattern[:80]!r}") from error


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return "" if found is None else str(found.group())


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for match in _pattern(pattern).finditer(text):
        if 0 <= limit <= len(found):
            break
        found.append(match.group())
    return found


def _named(name: str) -> dict[str, Any]:
    return {"format": NAMED_FORMAT(value=name)} if name in _FORMATS else {}


def _format(name: str) -> Callable[[], Any]:
    return lambda: NAMED_FORMAT(value=name)


def _validate(named: Any, text: str) -> dict[str, list[str]]:
    fault = _FORMATS[text_of(named, NAMED_FORMAT)](text)
    return {"errors": [fault]} if fault else {}


def _shaped(pattern: str, limit: int, what: str) -> Callable[[str], str]:
    compiled = re2.compile(pattern)

    def fault(text: str) -> str:
        if len(text) > limit:
            return f"must be no more than {limit} characters"
        return "" if compiled.fullmatch(text) is not None else f"must be {what}"

    return fault


def _prefix(check: Callable[[str], str]) -> Callable[[str], str]:
    """Let a name end in a dash: something will be appended."""
    return lambda text: check(text[:-1] + "a" if text.endswith("-") else text)


def _qualified(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    if slash and (fault := _SUBDOMAIN(prefix)):
        return f"prefix part {fault}"
    return _NAME_PART(name)


def _parsed(what: str, parse: Callable[[str], object]) -> Callable[[str], str]:
    def fault(text: str) -> str:
        try:
            parse(text)
        except ValueError:
            return f"invalid {what}"
        return ""

    return fault


def _date(text: str) -> date:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is None:
        raise InputError("invalid date")
    return date.fromisoformat(text)


def _date_time(text: str) -> datetime:
    if re2.fullmatch(_DATE_TIME, text) is None:
        raise InputError("invalid datetime")
    return datetime.fromisoformat(text[:19] + "+00:00")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InputError("invalid byte") from error


def _uri(text: str) -> str:
    return "" if is_uri(text) else "invalid uri"


_LABEL_VALUE = _shaped(f"({_NAME})?", 63, "a label value")
_NAME_PART = _shaped(_NAME, 63, "a qualified name")
_DNS_LABEL = _shaped(_LABEL, 63, "a lowercase RFC 1123 label")
_SUBDOMAIN = _shaped(rf"{_LABEL}(\.{_LABEL})*", 253, "a lowercase RFC 1123 subdomain")
_DNS_LABEL_1035 = _shaped(_LABEL_1035, 63, "a lowercase RFC 1035 label")
_FORMATS: dict[str, Callable[[str], str]] = {
    "dns1123Label": _DNS_LABEL,
    "dns1123Subdomain": _SUBDOMAIN,
    "dns1035Label": _DNS_LABEL_1035,
    "qualifiedName": _qualified,
    "dns1123LabelPrefix": _prefix(_DNS_LABEL),
    "dns1123SubdomainPrefix": _prefix(_SUBDOMAIN),
    "dns1035LabelPrefix": _prefix(_DNS_LABEL_1035),
    "labelValue": _LABEL_VALUE,
    "uri": _uri,
    "uuid": _shaped(_UUID, 36, "a uuid"),
    "byte": _parsed("byte", _bytes),
    "date": _parsed("date", _date),
    "datetime": _parsed("datetime", _date_time),
}
