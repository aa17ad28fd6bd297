"""Valid JSON, broken in a way or a few: the bytes of somebody who means harm, or errs.

Values of wrong types and sizes, fields that are missing, unknown or there twice, levels
without end, characters that are none, other encodings, torn and foreign bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

import zstandard

Json = Any
_MARK = "@broken-{}@"
RAW: tuple[bytes, ...] = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999999",
    b"-1e999999",
    b"1e-999999",
    b"9" * 5_000,
    b"-" + b"9" * 5_000,
    b"0." + b"9" * 5_000,
    b"18446744073709551616",
    b"-9223372036854775809",
    b"-0",
    b"01",
    b"0x10",
    b"+1",
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"[" * 10_000,
    b"[" * 900 + b"]" * 900,
    b'{"items":[' * 600 + b"]}" * 600,
    b'"\\u0000"',
    b'"a\x00b"',
    b'"\x1b]0;owned\x07\x1b[2J"',
    b'"\xe2\x80\xae"',
    b'"\\ud800"',
    b'"\\udfff\\ud800"',
    b'"\xed\xa0\x80"',
    b'"\xff\xfe"',
    b'"\xc0\xaf"',
    b'"\\u202e[bold red]:smile:\\nerror: forged"',
    b'"' + b"x" * 300_000 + b'"',
    b'"' + b"9" * 5_000 + b'"',
    b'"1e999999"',
    b'"-1"',
    b'"../../etc/passwd"',
    b'"*"',
    b'">"',
    b'""',
    b'" "',
    b'{"a":1,"a":2}',
    b'{"":""}',
    b'{"__class__":"x","$ref":"#/"}',
    b"[null]",
    b"[[]]",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"-1",
    b"1.5",
    b"2147483648",
    b"// a\n1",
    b"!!python/object/apply:os.system [true]",
    b"&a [*a]",
    b"*a",
    b"<<",
    b"2026-01-01",
    b"{{ .Values.a }}",
)
"""What may stand in the place of a value; some are no JSON, some no YAML either."""


def break_json(value: Json, draw: Random, others: Callable[[], Json]) -> bytes:
    """Break what would be taken; `others` draws what belongs elsewhere."""
    raws: list[bytes] = []
    value = deepcopy(value)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        value = _change(value, draw, others, raws)
    data = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode(
        errors="surrogatepass"
    )
    for number, raw in enumerate(raws):
        data = data.replace(json.dumps(_MARK.format(number)).encode(), raw)
    return _break_bytes(data, draw) if draw.random() < 0.25 else data


def _places(value: Json) -> Iterator[tuple[Any, Any]]:
    """Go through all places of a value, each as what holds it and its key there."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _change(
    value: Json, draw: Random, others: Callable[[], Json], raws: list[bytes]
) -> Json:
    """Change one place; what JSON has no value for is put in `raws`, and marked."""

    def raw(text: bytes) -> str:
        raws.append(text)
        return _MARK.format(len(raws) - 1)

    holder = [value]
    at, key = draw.choice(list(_places(holder)))
    match draw.choice(("raw", "raw", "raw", "drop", "add", "twice", "swap", "many")):
        case "raw":
            at[key] = raw(draw.choice(RAW))
        case "drop":
            del at[key]
        case "add" if isinstance(at[key], dict):
            name = draw.choice(("extra", "", "\0", "type", "é" * 300, "a.b/c"))
            at[key][name] = raw(draw.choice(RAW))
        case "twice" if isinstance(at, dict):
            same = json.dumps(at[key]).encode()
            at[key] = raw(b"%b,%b:%b" % (same, json.dumps(key).encode(), b"null"))
        case "many" if isinstance(at[key], list) and at[key]:
            at[key] = [at[key][0]] * draw.choice((2, 129, 300))
        case _:
            at[key] = deepcopy(others())
    return holder[0] if holder else None


def _break_bytes(data: bytes, draw: Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    to = min(len(data), at + draw.choice((1, 2, 40)))
    return draw.choice(
        (
            lambda: data[:at],
            lambda: data[at:],
            lambda: data[:at] + data[to:],
            lambda: data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :],
            lambda: data[:at] + data[at:to] * 50 + data[to:],
            lambda: data + data,
            lambda: data + b"\0",
            lambda: data + b"\n---\n" + data,
            lambda: b"",
            lambda: b"\xef\xbb\xbf" + data,
            lambda: data.decode(errors="replace").encode("utf-16"),
            lambda: data.decode(errors="replace").encode("latin-1", "replace"),
            lambda: zstandard.ZstdCompressor().compress(data),
            lambda: draw.randbytes(200),
        )
    )()
