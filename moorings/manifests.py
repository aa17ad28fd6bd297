"""Documents of YAML or JSON, as people write them, from a text. Pure."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import yaml

from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import (
    decode_object,
    flatten,
    flatten_items,
    inherited_kind,
    is_list,
)
from contracts.kubernetes.exact import ExactDecoder
from moorings.duplicate_keys import (
    DuplicateKeyError,
    check_json,
    read_sequence,
)
from moorings.errors import BadInputError
from moorings.nesting import MAX_LEVELS, TOO_DEEP, check_events, check_levels
from moorings.yaml_scalars import KubernetesLoader

MAX_YAML = 32 << 20
"""Characters of YAML, which takes about a second for each million to read."""
_DEEP_INDENT = re.compile(rf"^[ \t?:-]{{{MAX_LEVELS // 2}}}", re.MULTILINE)
"""Blocks are at most two levels a column: a sequence stands below its key."""
_ODD_SEPARATOR = re.compile(
    "^(?=.*[\u2010-\u2015\u2212])[-\u2010-\u2015\u2212]{2,4}[ \t]*$", re.MULTILINE
)
"""What word processors and web pages make of `---`."""
_MAY_BE_ANCHOR = re.compile(r"&[\w-]")
_MAY_BE_ALIAS = re.compile(r"\*[\w-]")
_MAY_BE_JSON = re.compile(r"\s*\{")
_MAY_BE_JSON_BYTES = re.compile(_MAY_BE_JSON.pattern.encode())
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])

_OTHER_FORMATS = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"\xfe\xff": "is UTF-16, not UTF-8",
    b"\xff\xfe": "is UTF-16, not UTF-8",
}
"""By their first bytes, what people hand over instead of text."""


class _List(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """A list as kubectl prints it: one look finds its fields and its items.

    What is no list, or has more fields, is looked at field by field.
    """

    kind: msgspec.Raw
    items: list[msgspec.Raw]
    api_version: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def others(self) -> dict[str, msgspec.Raw]:
        """The fields besides the items."""
        named = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": self.metadata,
        }
        return {key: raw for key, raw in named.items() if raw is not msgspec.UNSET}


_LIST = msgspec.json.Decoder(_List)


def parse_documents(
    source: str, text: str | bytes, exact: ExactDecoder | None = None
) -> Iterator[tuple[str, Any]]:
    """Go through all documents: (source, parsed object); Lists are taken apart.

    Items of a list in JSON that `exact` can read come as Decoded. Bytes are ASCII.

    Raises:
        BadInputError: the text is not YAML or JSON, or is nested too deeply, or its
            aliases stand for too much, or a key is there twice, or a number is endless,
            or it is YAML and too long.
    """
    try:
        document = _read_json(text)
        if document is not None:
            check_json(source, text)
            values = _flatten_json(source, document, exact)
            yield from ((source, value) for value in values)
            return
        text = text if isinstance(text, str) else to_text(text)
        values_in_turn = (
            read_sequence(source, text) if _MAY_BE_JSON.match(text) else None
        )
        if values_in_turn is not None:
            check_levels(source, values_in_turn)
            yield from _number_documents(source, values_in_turn)
            return
        if len(text) > MAX_YAML:
            reason = f"is YAML of over {MAX_YAML >> 20} MiB; JSON may be larger"
            raise BadInputError(source, reason)
        _check_yaml(source, text)
        yield from _number_documents(
            source, yaml.load_all(text, KubernetesLoader)
        )  # a safe loader
    except yaml.YAMLError as error:
        reason = describe_yaml_error(error)
        written = text if isinstance(text, str) else to_text(text)
        odd = _ODD_SEPARATOR.search(written)
        if odd is not None:
            line = written.count("\n", 0, odd.start()) + 1
            hint = f"`{odd[0].rstrip()}` has a dash that is not ASCII"
            reason = f"{reason}; line {line}: {hint}: documents are parted by `---`"
        raise BadInputError(source, reason) from error
    except (msgspec.DecodeError, ContractsError) as error:
        reason = " ".join(str(error).split())
        raise BadInputError(source, reason) from error
    except RecursionError as error:  # msgspec's limit is what is left of Python's stack
        raise BadInputError(source, TOO_DEEP) from error
    except ValueError as error:  # of int(): so many digits are never meant
        raise BadInputError(source, "has a number of too many digits") from error


def _number_documents(
    source: str, documents: Iterable[Any]
) -> Iterator[tuple[str, Any]]:
    for number, parsed in enumerate(documents, start=1):
        if parsed is not None:
            where = f"{source}, document {number}" if number > 1 else source
            yield from ((where, value) for value in flatten(parsed))


def to_text_or_json(data: bytes) -> str | bytes:
    """Read the text of a file; what looks like JSON in ASCII stays as it is.

    The text of a large cluster would be a second gigabyte.

    Raises:
        UnicodeDecodeError: it is no text.
    """
    if _MAY_BE_JSON_BYTES.match(data) and data.isascii():
        return data
    return to_text(data)


def to_text(data: bytes) -> str:
    """Read the text of a file, as `open` does.

    Raises:
        UnicodeDecodeError: it is no text.
    """
    return io.TextIOWrapper(io.BytesIO(data)).read()


def read_source(source: str, data: bytes) -> str | bytes:
    """Read a text; what is none says what it looks like.

    Raises:
        BadInputError: it is none.
    """
    for start, reason in _OTHER_FORMATS.items():
        if data.startswith(start):
            raise BadInputError(source, reason)
    try:
        return to_text_or_json(data)
    except UnicodeDecodeError as error:
        raise BadInputError(source, f"is not UTF-8 text: {error}") from error


def describe_yaml_error(error: yaml.YAMLError) -> str:
    """Describe what is wrong with a YAML text, and where."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"is not YAML: {' '.join(str(error).split())}"
    mark, context = error.problem_mark, f" {error.context}" if error.context else ""
    where = f"line {mark.line + 1}, column {mark.column + 1}"
    what = "" if isinstance(error, DuplicateKeyError) else "is not YAML: "
    return f"{what}{where}: {error.problem}{context}"


def _check_yaml(source: str, text: str) -> None:
    """Refuse what PyYAML would end the process by, or make endless work of.

    It composes nodes by recursion in C, without a limit; events it makes without. They
    are looked at only where the text may be like that: they cost as much as reading it.

    Raises:
        BadInputError: it is.
    """
    may_be_deep = text.count("[") + text.count("{") > MAX_LEVELS
    has_aliases = _MAY_BE_ALIAS.search(text) and _MAY_BE_ANCHOR.search(text)
    if may_be_deep or has_aliases or _DEEP_INDENT.search(text):
        check_events(source, yaml.parse(text, KubernetesLoader))


def _read_json(text: str | bytes) -> _List | dict[str, msgspec.Raw] | None:
    """Read a list or an object; None: it is no JSON, or more than one object."""
    if isinstance(text, str) and not _MAY_BE_JSON.match(text):
        return None
    with suppress(msgspec.DecodeError, RecursionError):
        return _LIST.decode(text)
    try:
        return _FIELDS.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _flatten_json(
    source: str,
    document: _List | dict[str, msgspec.Raw],
    exact: ExactDecoder | None,
) -> Iterator[Any]:
    """Yield the objects of a list; a long list is never parsed as a whole.

    Raises:
        BadInputError: an object is nested too deeply.
    """
    items: list[msgspec.Raw] | None = None
    if isinstance(document, _List):
        fields, items = document.others, document.items
    else:
        fields, written = dict(document), document.get("items", msgspec.Raw())
        if bytes(memoryview(written)[:1]) == b"[":
            del fields["items"]
            items = _ITEMS.decode(written)
    rest = {key: _parse_raw(raw) for key, raw in fields.items()}
    if items is not None and is_list(rest):
        check_levels(source, rest)
        inherited = inherited_kind(rest)
        listed = (_read_item(source, raw, exact, inherited) for raw in items)
        yield from flatten_items(rest, listed)
    else:
        whole = (
            rest if items is None else {**rest, "items": list(map(_parse_raw, items))}
        )
        check_levels(source, whole)
        yield from flatten(whole)


def _read_item(
    source: str,
    raw: msgspec.Raw,
    exact: ExactDecoder | None,
    inherited: Mapping[str, str],
) -> Any:
    data, value = bytes(raw), None
    if data.count(b"[") + data.count(b"{") > MAX_LEVELS:  # else it cannot be
        value = _parse_raw(raw)
        check_levels(source, value)
    decoded = exact.decode(raw, inherited) if exact is not None else None
    if decoded is not None:
        return decoded
    return _parse_raw(raw) if value is None else value


def _parse_raw(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


def read_gang(source: str, raw: Any) -> tuple[str, Gang]:
    """Read a Gang from a manifest that a person submits; returned with its source.

    A field that is unknown or misspelled is refused rather than dropped.

    Raises:
        BadInputError: the document is no Gang, has no name, or a field that is not
            known.
    """
    try:
        decoded = decode_object(raw)
    except ContractsError as error:
        raise BadInputError(source, str(error)) from error
    gang = decoded.value
    if not isinstance(gang, Gang):
        raise BadInputError(source, f"expected a Gang, got {raw.get('kind')}")
    if not gang.metadata.name:
        # Who makes names of generateName is the API server, and this goes by the bus.
        raise BadInputError(source, "Gang: metadata.name: required")
    for path in decoded.unknown:
        reason = f"Gang {gang.metadata.name}: {path}: unknown field"
        raise BadInputError(source, reason)
    return source, gang
