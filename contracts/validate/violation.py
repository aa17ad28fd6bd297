"""One broken rule, in the words of the API server.

Stands apart so that every validator says the same thing the same way; knows no object.

Source: k8s.io/apimachinery/pkg/util/validation/field (error types and their text).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from contracts.codec import encode

T = TypeVar("T")


class Violation(Struct, frozen=True, kw_only=True):
    """A field, the kind of rule that it breaks, and the rule with its numbers."""

    field: str
    rule: str
    """Such as `Required value`, `Invalid value` or `Too many`."""
    message: str = ""

    @property
    def reason(self) -> str:
        """The message without the field."""
        return ": ".join(part for part in (self.rule, self.message) if part)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.field, self.reason) if part)


Violations = Iterator[Violation]
Check = Callable[[T, str], Iterable[Violation]]
"""(value, path) -> what is wrong with it."""


def required(path: str, message: str = "") -> Violation:
    """Report that something is missing."""
    return Violation(field=path, rule="Required value", message=message)


def invalid(path: str, value: Any, message: str) -> Violation:
    """Report that a value is not what it should be."""
    return Violation(
        field=path, rule="Invalid value", message=f"{_format_value(value)}: {message}"
    )


def forbidden(path: str, message: str) -> Violation:
    """Report that something must not be there."""
    return Violation(field=path, rule="Forbidden", message=message)


def duplicate(path: str, value: Any) -> Violation:
    """Report that a value is there already."""
    return Violation(field=path, rule="Duplicate value", message=_format_value(value))


def unsupported(path: str, value: str, supported: Sequence[str]) -> Violation:
    """Report that a value is not one of a closed set."""
    values = ", ".join(_format_value(one) for one in supported)
    return Violation(
        field=path,
        rule="Unsupported value",
        message=f"{_format_value(value)}: supported values: {values}",
    )


def too_many(path: str, count: int, limit: int) -> Violation:
    """Report that a list or map is too long."""
    return Violation(
        field=path,
        rule="Too many",
        message=f"{count}: must have at most {limit} items",
    )


def too_long(path: str, limit: int) -> Violation:
    """Report that a text is too long."""
    return Violation(
        field=path, rule="Too long", message=f"may not be more than {limit} bytes"
    )


def check_one_of(path: str, value: str, supported: Sequence[str]) -> Violations:
    """Require a value of a closed set."""
    if not value:
        yield required(path)
    elif value not in supported:
        yield unsupported(path, value, supported)


def check_each(
    elements: Sequence[T], limit: int | None, path: str, check: Check[T]
) -> Violations:
    """Check a list; the items of one that is too long are not checked."""
    if limit is not None and len(elements) > limit:
        yield too_many(path, len(elements), limit)
        return
    for index, element in enumerate(elements):
        yield from check(element, f"{path}[{index}]")


def check_each_unique(
    elements: Sequence[T],
    limit: int | None,
    path: str,
    check: Check[T],
    key: Callable[[T], Hashable],
) -> Violations:
    """Check a list whose items have different keys."""
    yield from check_each(elements, limit, path, check)
    if len(elements) < 2 or (limit is not None and len(elements) > limit):
        return
    keys: set[Hashable] = set()
    for index, element in enumerate(elements):
        if key(element) in keys:
            yield duplicate(f"{path}[{index}]", key(element))
        keys.add(key(element))


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
