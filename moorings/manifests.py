"""Documents of YAML or JSON, as people write them, from a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import decode_object, flatten, flatten_items, is_list
from moorings.errors import BadInputError


class _Loader(yaml.CSafeLoader):
    """YAML without timestamps: Kubernetes keeps them as text."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in tags if not tag.endswith(":timestamp")]
    for key, tags in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


_DEEPEST = 400
"""Levels of nesting; objects of Kubernetes have some thirty."""
_DEEP_INDENT = re.compile(rf"^[ \t?:-]{{{_DEEPEST // 2}}}", re.MULTILINE)
"""Blocks are at most two levels a column: a sequence stands below its key."""
_MAY_BE_JSON = re.compile(r"\s*\{")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def parse_documents(source: str, text: str) -> Iterator[tuple[str, Any]]:
    """Go through all documents: (source, parsed object); Lists are taken apart.

    Raises:
        BadInputError: the text is no YAML or JSON.
    """
    try:
        document = _read_json(text)
        if document is not None:
            yield from ((source, value) for value in _flatten_json(document))
            return
        _refuse_depth(source, text)
        documents = yaml.load_all(text, _Loader)  # a safe loader
        for number, parsed in enumerate(documents, start=1):
            if parsed is not None:
                where = f"{source}, document {number}" if number > 1 else source
                yield from ((where, value) for value in flatten(parsed))
    except (yaml.YAMLError, msgspec.DecodeError, ContractsError) as error:
        reason = " ".join(str(error).split())
        raise BadInputError(source, reason) from error


def _refuse_depth(source: str, text: str) -> None:
    """Refuse what is nested so deeply that PyYAML would end the process.

    It composes nodes by recursion in C, without a limit; events it makes without.

    Raises:
        BadInputError: it is.
    """
    may_be_deep = text.count("[") + text.count("{") > _DEEPEST
    if not may_be_deep and not _DEEP_INDENT.search(text):
        return
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise BadInputError(source, f"nested over {_DEEPEST} deep")


def _read_json(text: str) -> dict[str, msgspec.Raw] | None:
    """Read the fields of an object; None: it is no JSON, or more than one object."""
    if not _MAY_BE_JSON.match(text):
        return None
    try:
        return _FIELDS.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _flatten_json(fields: dict[str, msgspec.Raw]) -> Iterator[Any]:
    """Yield the objects of a list; a long list is never parsed as a whole."""
    items = fields.get("items", msgspec.Raw())
    rest = {key: _parse(raw) for key, raw in fields.items() if key != "items"}
    if is_list(rest) and bytes(memoryview(items)[:1]) == b"[":
        yield from flatten_items(rest, map(_parse, _ITEMS.decode(items)))
    else:
        yield from flatten({key: _parse(raw) for key, raw in fields.items()})


def _parse(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


def read_gang(source: str, raw: Any) -> tuple[str, Gang]:
    """Read a Gang; returned with its source.

    Raises:
        BadInputError: the document is no Gang.
    """
    try:
        value = decode_object(raw).value
    except ContractsError as error:
        raise BadInputError(source, str(error)) from error
    if not isinstance(value, Gang):
        raise BadInputError(source, f"expected a Gang, got {raw.get('kind')}")
    return source, value
