"""The part of CEL that the drawn worlds use: comparisons, `&&`, `||`, parentheses."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

Value = bool | int | str
Predicate = Callable[[Mapping[str, Value]], bool]
"""Says whether a device with these attributes is selected."""
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<symbol>&&|\|\||[()])
      | device\.driver\s*(?P<driver>==)\s*"(?P<name>[^"]*)"
      | device\.attributes\["(?P<domain>[^"]*)"\]\.(?P<key>\w+)
        \s*(?P<compare>==|!=|>=|<=|>|<)\s*(?:"(?P<text>[^"]*)"|(?P<number>\d+))
    )""",
    re.VERBOSE,
)
_COMPARE: Mapping[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class UnknownExpressionError(ValueError):
    """The text is not of the part of CEL that is read here."""


def read_expression(text: str, driver: str) -> Predicate:
    """Read a selector of devices that all have one driver.

    Raises:
        UnknownExpressionError: the text has something else in it.
    """
    reader = _Reader(text, driver)
    predicate = reader.either()
    reader.end()
    return predicate


class _Reader:
    """A text, read from left to right."""

    def __init__(self, text: str, driver: str) -> None:
        self._text = text
        self._driver = driver
        self._at = 0

    def either(self) -> Predicate:
        """Read what stands between `||`."""
        parts = [self._all()]
        while self._skip("||"):
            parts.append(self._all())
        return lambda attributes: any(part(attributes) for part in parts)

    def end(self) -> None:
        """Check that nothing is left."""
        if self._text[self._at :].strip():
            raise UnknownExpressionError(self._text)

    def _all(self) -> Predicate:
        parts = [self._one()]
        while self._skip("&&"):
            parts.append(self._one())
        return lambda attributes: all(part(attributes) for part in parts)

    def _one(self) -> Predicate:
        if self._skip("("):
            inner = self.either()
            if not self._skip(")"):
                raise UnknownExpressionError(self._text)
            return inner
        found = _TOKEN.match(self._text, self._at)
        if found is None or found["symbol"]:
            raise UnknownExpressionError(self._text)
        self._at = found.end()
        if found["driver"]:
            is_ours = found["name"] == self._driver
            return lambda _: is_ours
        if found["domain"] != self._driver:
            raise UnknownExpressionError(self._text)
        number = found["number"]
        wanted = found["text"] if number is None else int(number)
        return _comparison(found["key"], _COMPARE[found["compare"]], wanted)

    def _skip(self, symbol: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found["symbol"] != symbol:
            return False
        self._at = found.end()
        return True


def _comparison(
    key: str, compare: Callable[[Value, Value], bool], wanted: Value
) -> Predicate:
    def holds(attributes: Mapping[str, Value]) -> bool:
        value = attributes.get(key)
        return type(value) is type(wanted) and compare(value, wanted)

    return holds
