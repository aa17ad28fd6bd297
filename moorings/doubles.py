"""Keys that are written twice in one object: the last would win without a word. Pure.

YAML says that keys are unique, and JSON that they should be; kubectl refuses both.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from moorings.errors import BadInputError

MOST_LOOKED_AT = 1 << 20
"""Bytes: no person writes more, and what a program writes has each key once."""


class _DoubleKeyError(ValueError):
    """A key that an object has twice."""


def check_json(source: str, text: str | bytes) -> None:
    """Require that a JSON text says each thing once, unless it is very large.

    Raises:
        BadInputError: an object has a key twice.
    """
    if len(text) > MOST_LOOKED_AT:
        return
    try:
        _DECODER.decode(text if isinstance(text, str) else text.decode())
    except _DoubleKeyError as error:
        raise BadInputError(source, f"key {error} is there twice") from error
    except (ValueError, RecursionError):
        return  # who reads it says what is wrong


def read_sequence(source: str, text: str) -> list[Any] | None:
    """Read JSON values one after the other, as `jq -c` prints them; None: it is none.

    Raises:
        BadInputError: an object has a key twice.
    """
    values: list[Any] = []
    place = 0
    try:
        while place < len(text):
            if text[place].isspace():
                place += 1
                continue
            value, place = _DECODER.raw_decode(text, place)
            values.append(value)
    except _DoubleKeyError as error:
        line = text.count("\n", 0, place) + 1
        reason = f"key {error} is there twice in the object at line {line}"
        raise BadInputError(source, reason) from error
    except (ValueError, RecursionError):
        return None
    return values


def construct_mapping(loader: Any, node: yaml.MappingNode) -> Iterator[dict[Any, Any]]:
    """Construct a mapping of YAML whose keys are written once.

    What `<<` merges may have keys that are written as well.

    Raises:
        ConstructorError: a key is written twice.
    """
    data: dict[Any, Any] = {}
    yield data
    pairs = node.value
    value = loader.construct_mapping(node)
    if len(value) != len(pairs):
        _check_pairs(pairs)
    data.update(value)


def _check_pairs(pairs: list[tuple[yaml.Node, yaml.Node]]) -> None:
    seen: set[Hashable] = set()
    for key, _ in pairs:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                problem = f"key {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(
                    None, None, problem, key.start_mark
                )
            seen.add((key.tag, key.value))


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _DoubleKeyError(repr(next(k for k in keys if keys.count(k) > 1)))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_doubles)
