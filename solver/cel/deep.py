"""Writes a deeply nested expression so that the engine reads it.

The engine reads 32 levels, Kubernetes 250. What lies too deep is given a name, by
`cel.bind` around the macro's body that it is in, or around all. The engine evaluates it
when the name is used, so the meaning and its errors stay. Works on text alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from solver.cel.unbind import MACROS
from solver.selectors.tokens import Token, tokens_of

NAME = "deep__"
"""How the names begin; they cost nothing in Kubernetes, where nobody needs them."""
MAX_LEVELS = 250
"""What Kubernetes reads."""
_NAMED_FROM = 10
"""Levels from which on something is given a name before more is put on it."""
_MOST_NAMED = 8
"""Names around one part: each is a level, too."""
_PRECEDENCE = {
    **dict.fromkeys(("||",), 1),
    **dict.fromkeys(("&&",), 2),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_BALANCED = 2
"""Up to this precedence the engine makes a tree of a chain."""
_TWO_NAMES = ("transformList", "transformMap", "transformMapEntry")
_ANY_NAMES = ("all", "exists", "existsOne")


class _UnreadableError(Exception):
    """No CEL that this module reads, or more levels than Kubernetes reads."""


class _Part(Struct, frozen=True):
    """An expression as it is written, and how many levels it has."""

    text: str
    levels: int = 1
    before: int = 1
    """How many it had."""
    names: frozenset[str] = frozenset()
    """Those in it that are to be given around it; each is used once."""
    is_body: bool = False
    """A macro's, whose own names are known in there alone."""


class _Scope:
    """What is to be named in a macro's body, or in the whole expression."""

    def __init__(self) -> None:
        self._named: dict[str, _Part] = {}
        """What has names; nothing uses a name that comes later."""

    def name(self, part: _Part, name: str) -> _Part:
        """Give a part a name, and return that."""
        if len(part.names) >= _MOST_NAMED:
            part = self.close(part)
        self._named[name] = part
        return _Part(name, before=part.before, names=part.names | {name})

    def close(self, part: _Part, *, is_body: bool = False) -> _Part:
        """Write all names that a part uses around it, the first one outermost."""
        names = [name for name in self._named if name in part.names]
        named = [(name, self._named.pop(name)) for name in names]
        heads = "".join(f"cel.bind({name}, {of.text}, " for name, of in named)
        inner = [of.levels + place for place, (_, of) in enumerate(named, start=1)]
        return _Part(
            heads + part.text + ")" * len(named),
            levels=max(part.levels + len(named), *inner, 1),
            before=part.before,
            is_body=is_body,
        )


def write_shallow(expression: str) -> str | None:
    """Write an expression with fewer levels; None: it cannot be, or is no CEL."""
    tokens = tokens_of(expression)
    if tokens is None or NAME in expression:
        return None
    try:
        return _Writer(tokens).write()
    except (_UnreadableError, RecursionError):
        return None


class _Writer:
    """Reads tokens from left to right, and writes them."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._count = 0

    def write(self) -> str:
        part = self._write_body()
        if self._place != len(self._tokens):
            raise _UnreadableError
        return part.text

    def _write_body(self) -> _Part:
        scope = _Scope()
        return scope.close(self._read_expression(scope), is_body=True)

    def _look(self, ahead: int = 0) -> str:
        place = self._place + ahead
        return self._tokens[place].text if place < len(self._tokens) else ""

    def _take(self, *expected: str) -> Token:
        if self._place >= len(self._tokens):
            raise _UnreadableError
        token = self._tokens[self._place]
        if expected and token.text not in expected:
            raise _UnreadableError
        self._place += 1
        return token

    def _fit(self, part: _Part, scope: _Scope) -> _Part:
        """Give a part a name if it has many levels already."""
        if part.is_body or part.levels < _NAMED_FROM:
            return part
        self._count += 1
        return scope.name(part, f"{NAME}{self._count}")

    def _join(self, scope: _Scope, text: str, *parts: _Part) -> _Part:
        """Write parts into a text, in place of its zeros, one level above them."""
        before = 1 + max((part.before for part in parts), default=0)
        if before > MAX_LEVELS:
            raise _UnreadableError
        fitted = [self._fit(part, scope) for part in parts]
        if sum(len(part.names) for part in fitted) > _MOST_NAMED:
            fitted = [
                scope.close(part, is_body=part.is_body) if part.names else part
                for part in fitted
            ]
        pieces = text.split("\0")
        written = pieces[0] + "".join(
            part.text + piece for part, piece in zip(fitted, pieces[1:], strict=True)
        )
        levels = 1 + max((part.levels for part in fitted), default=0)
        names = frozenset[str]().union(*(part.names for part in fitted))
        return _Part(written, levels, before, names)

    def _read_expression(self, scope: _Scope) -> _Part:
        condition = self._read_binary(scope, 1)
        if self._look() != "?":
            return condition
        self._take("?")
        first = self._read_binary(scope, 1)
        self._take(":")
        other = self._read_expression(scope)
        return self._join(scope, "\0 ? \0 : \0", condition, first, other)

    def _read_binary(self, scope: _Scope, least: int) -> _Part:
        left = self._read_unary(scope)
        while (found := _PRECEDENCE.get(self._look(), 0)) >= least:
            operator = self._take().text
            right = self._read_binary(scope, found + 1)
            if found > _BALANCED:
                left = self._join(scope, f"\0 {operator} \0", left, right)
                continue
            parts = [left, right]
            while self._look() == operator:
                self._take()
                parts.append(self._read_binary(scope, found + 1))
            whole = self._join(scope, f" {operator} ".join("\0" * len(parts)), *parts)
            more = (len(parts) - 1).bit_length() - 1
            levels, before = whole.levels + more, whole.before - 1
            left = _Part(whole.text, levels, before, whole.names)
        return left

    def _read_unary(self, scope: _Scope) -> _Part:
        marks = ""
        while self._look() in ("!", "-"):
            marks += self._take().text
        part = self._read_member(scope)
        return self._join(scope, f"{marks}\0", part) if marks else part

    def _read_member(self, scope: _Scope) -> _Part:
        part = self._read_primary(scope)
        while self._look() in (".", "["):
            if self._take().text == "[":
                mark = self._take_optional()
                index = self._read_expression(scope)
                self._take("]")
                part = self._join(scope, f"\0[{mark}\0]", part, index)
                continue
            mark = self._take_optional()
            field = self._take()
            if field.kind not in ("name", "escaped"):
                raise _UnreadableError
            if self._look() != "(" or mark:
                part = self._join(scope, f"\0.{mark}{field.text}", part)
                continue
            text, arguments = self._read_call(scope, field.text)
            part = self._join(scope, f"\0.{text}", part, *arguments)
        return part

    def _take_optional(self) -> str:
        return self._take().text if self._look() == "?" else ""

    def _read_primary(self, scope: _Scope) -> _Part:
        lead = self._take().text if self._look() == "." else ""
        token = self._take()
        match token.text:
            case "(" if not lead:
                inner = self._read_expression(scope)
                self._take(")")
                return self._join(scope, "(\0)", inner)
            case "[" if not lead:
                return self._read_list(scope)
            case "{" if not lead:
                return self._read_map(scope)
        if token.kind == "mark" or (lead and token.kind != "name"):
            raise _UnreadableError
        if token.kind == "name" and self._look() == "(":
            text, arguments = self._read_call(scope, token.text)
            return self._join(scope, lead + text, *arguments)
        return _Part(lead + token.text)

    def _read_list(self, scope: _Scope) -> _Part:
        texts, parts = [], []
        while self._look() != "]":
            texts.append(f"{self._take_optional()}\0")
            parts.append(self._read_expression(scope))
            if self._look() != "]":
                self._take(",")
        self._take("]")
        return self._join(scope, f"[{', '.join(texts)}]", *parts)

    def _read_map(self, scope: _Scope) -> _Part:
        texts, parts = [], []
        while self._look() != "}":
            texts.append(f"{self._take_optional()}\0: \0")
            parts.append(self._read_expression(scope))
            self._take(":")
            parts.append(self._read_expression(scope))
            if self._look() != "}":
                self._take(",")
        self._take("}")
        return self._join(scope, f"{{{', '.join(texts)}}}", *parts)

    def _read_call(self, scope: _Scope, name: str) -> tuple[str, list[_Part]]:
        """Read a call; what a macro names is in scope in its last arguments alone."""
        count = self._count_arguments()
        bodies = count - _count_names(name, count) if name in MACROS else 0
        if name == "bind":
            bodies = 1
        self._take("(")
        texts, parts = [], []
        for index in range(count):
            if name in MACROS and index < _count_names(name, count):
                texts.append(self._take().text)
            else:
                texts.append("\0")
                is_body = index >= count - bodies
                parts.append(
                    self._write_body() if is_body else self._read_expression(scope)
                )
            self._take(",", ")")
        if count == 0:
            self._take(")")
        return f"{name}({', '.join(texts)})", parts

    def _count_arguments(self) -> int:
        """Count the arguments of the call whose bracket comes next."""
        depth = commas = 0
        for place in range(self._place, len(self._tokens)):
            token = self._tokens[place]
            if token.kind != "mark":
                continue
            if token.text in "([{":
                depth += 1
            elif token.text in ")]}":
                depth -= 1
                if depth == 0:
                    return commas + 1 if place > self._place + 1 else 0
            elif token.text == "," and depth == 1:
                commas += 1
        raise _UnreadableError


def _count_names(macro: str, arguments: int) -> int:
    """Count the leading arguments of a macro that are names."""
    if macro in _TWO_NAMES:
        return 2
    return arguments - 1 if macro in _ANY_NAMES else 1
