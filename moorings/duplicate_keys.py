"""Keys that are written twice in one object: the last would win without a word. Pure.

YAML says that keys are unique, and JSON that they should be; kubectl refuses both.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from moorings.errors import BadInputError

MOST_LOOKED_AT = 1 << 20
"""Bytes: no person writes more, and what a program writes has each key once."""
MOST_KEYS = 20_000
"""Of an object in YAML; the API server stores objects of 1.5 MiB at most."""
_MAY_BE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_MERGE = "tag:yaml.org,2002:merge"


class DuplicateKeyError(yaml.MarkedYAMLError):
    """A key that a mapping of YAML has twice."""


class _DuplicateJSONKeyError(ValueError):
    """A key that an object of JSON has twice."""


def check_json(source: str, text: str | bytes) -> None:
    """Require that a JSON text says each thing once, unless it is very large.

    Raises:
        BadInputError: an object has a key twice.
    """
    if len(text) > MOST_LOOKED_AT:
        return
    try:
        _DECODER.decode(text if isinstance(text, str) else text.decode())
    except _DuplicateJSONKeyError as error:
        raise BadInputError(source, f"key {error} appears twice") from error
    except (ValueError, RecursionError):
        return  # who reads it says what is wrong


def read_sequence(source: str, text: str) -> list[Any] | None:
    """Read JSON values one after the other, as `jq -c` prints them; None: it is none.

    Raises:
        BadInputError: an object has a key twice, or a text half a character.
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
    except _DuplicateJSONKeyError as error:
        line = text.count("\n", 0, place) + 1
        reason = f"key {error} appears twice in the object at line {line}"
        raise BadInputError(source, reason) from error
    except (ValueError, RecursionError):
        return None
    _check_characters(source, text, values)
    return values


def _check_characters(source: str, text: str, values: list[Any]) -> None:
    """Require that texts can be encoded: half a pair of UTF-16 alone cannot."""
    if _MAY_BE_HALF.search(text):
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start]).strip("'")
            raise BadInputError(source, f"{half} is half a character") from error


class UniqueKeysLoader(yaml.CSafeLoader):
    """A safe loader of YAML; what `<<` merges may be written beside it as well."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge what `<<` of a mapping names.

        That changes the node. It is also done where another mapping merges this one,
        before or after this one is constructed, so a node is looked at only once.

        Raises:
            DuplicateKeyError: a key is written twice.
            ConstructorError: there are too many.
        """
        if len(node.value) > MOST_KEYS:
            problem = (
                f"an object of {len(node.value)} keys; at most {MOST_KEYS} are read"
            )
            raise yaml.constructor.ConstructorError(
                None, None, problem, node.start_mark
            )
        if not getattr(node, "has_unique_keys", False):
            _check_pairs(node.value)
            node.has_unique_keys = True  # type: ignore[attr-defined]  # our mark
        super().flatten_mapping(node)


def _check_pairs(pairs: list[tuple[yaml.Node, yaml.Node]]) -> None:
    seen: set[tuple[str, str]] = set()
    for key, _ in pairs:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            written = (key.tag, key.value)
            if written in seen:
                problem = f"key {key.value!r} appears twice"
                raise DuplicateKeyError(None, None, problem, key.start_mark)
            seen.add(written)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _DuplicateJSONKeyError(repr(next(k for k in keys if keys.count(k) > 1)))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_duplicates)
