r"""JSONPath templates, as kubectl's `-o jsonpath` writes them. Pure.

Text with expressions in braces: `{.name}`, `{.items[*].name}`, `{.items[0]['name']}`,
`{"\n"}`, and `{range .items[*]}...{end}`. Filters and `..` are not supported. Source:
kubernetes.io/docs/reference/kubectl/jsonpath.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from moorings.errors import UsageError

_PARTS = re.compile(r"\{((?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^}'\"])*)\}")
_STEP = re.compile(r"\.?([\w/-]+)|\[(\*|-?\d+)\]|\['([^']*)'\]|(\.)(?=$|\[)")


class _Piece(Struct, frozen=True):
    """A part of a template: text, the values of a path, or a block for each value."""

    text: str = ""
    path: tuple[str | int, ...] | None = None
    block: tuple[_Piece, ...] | None = None


class Template:
    """A template that can be filled."""

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            UsageError: it cannot be read.
        """
        self._source = text
        parts = iter(_split(text))
        self._nodes = self._parse(parts, ends=False)

    def render(self, root: Any) -> str:
        """Fill it with what a value has; several values stand beside each other."""
        return "".join(_render(self._nodes, root))

    def _parse(
        self, parts: Iterator[tuple[str, bool]], *, ends: bool
    ) -> tuple[_Piece, ...]:
        nodes: list[_Piece] = []
        for text, is_expression in parts:
            word = text.strip()
            if not is_expression and "{" in text:
                raise self._refuse(f"{text[text.index('{') :]} has no closing brace")
            if not is_expression:
                nodes.append(_Piece(text=text))
            elif word == "end" and ends:
                return tuple(nodes)
            elif word.startswith("range "):
                path = self._parse_path(word.removeprefix("range ").strip())
                block = self._parse(parts, ends=True)
                nodes.append(_Piece(path=path, block=block))
            elif word[:1] in ('"', "'"):
                nodes.append(_Piece(text=self._parse_text(word)))
            else:
                nodes.append(_Piece(path=self._parse_path(word)))
        if ends:
            raise self._refuse("{range} has no {end}")
        return tuple(nodes)

    def _parse_text(self, word: str) -> str:
        try:
            return str(json.loads(f'"{word[1:-1]}"'))
        except ValueError:
            raise self._refuse(f"{word} is no text") from None

    def _parse_path(self, word: str) -> tuple[str | int, ...]:
        steps: list[str | int] = []
        place = 1 if word[:1] in ("$", "@") else 0
        while place < len(word):
            found = _STEP.match(word, place)
            if found is None:
                raise self._refuse(f"{word[place:]} is not supported")
            name, number, quoted, _ = found.groups()
            if number is not None:
                steps.append(number if number == "*" else int(number))
            elif name is not None or quoted is not None:
                steps.append(quoted if name is None else name)
            place = found.end()
        return tuple(steps)

    def _refuse(self, reason: str) -> UsageError:
        return UsageError(f"jsonpath {self._source!r}: {reason}")


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Split a template; yields text and, with True, what is in braces."""
    place = 0
    for found in _PARTS.finditer(text):
        if found.start() > place:
            yield text[place : found.start()], False
        yield found[1], True
        place = found.end()
    if place < len(text):
        yield text[place:], False


def _render(nodes: tuple[_Piece, ...], root: Any) -> Iterator[str]:
    for node in nodes:
        if node.path is None:
            yield node.text
        elif node.block is None:
            yield " ".join(map(_to_text, _find(root, node.path)))
        else:
            for value in _find(root, node.path):
                yield from _render(node.block, value)


def _find(value: Any, path: tuple[str | int, ...]) -> Iterator[Any]:
    """Go through the values that a path leads to; none where it leads nowhere."""
    if not path:
        yield value
        return
    step, *rest = path
    if step == "*":
        inner = value.values() if isinstance(value, dict) else value
        for each in inner if isinstance(value, dict | list) else ():
            yield from _find(each, tuple(rest))
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield from _find(value[step], tuple(rest))
    elif isinstance(value, dict) and step in value:
        yield from _find(value[step], tuple(rest))


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
