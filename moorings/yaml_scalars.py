"""Plain scalars of YAML as the API server and kubectl read them.

They read YAML 1.1 by Go's rules for numbers (sigs.k8s.io/yaml): `0o17` and `017` are
15, `1e3` is 1000, `y` and `on` are true, and `1:30` is a text, though YAML 1.1 says 90.
Times are texts, too. Pure.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from moorings.duplicate_keys import UniqueKeysLoader

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")
_NULL = ("~", "null")


def _spell(words: tuple[str, ...]) -> list[str]:
    """Spell words as they may be written."""
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS = frozenset(_spell(_TRUE + _FALSE + _NULL))
_SIGN = "[-+]?"
_INTEGER = re.compile(
    rf"{_SIGN}(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)"
)
_FLOAT = re.compile(rf"{_SIGN}(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(rf"{_SIGN}\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BEGINS_NUMBER = "-+.0123456789"
_TAG = "tag:yaml.org,2002:"
_NUMBER = "tag:moorings.dev,2026:number"
_INTEGERS = (-(1 << 63), (1 << 64) - 1)
"""The smallest and the largest; others are read as floats."""
_LONGEST = 80
"""Characters of an integer; in binary these have 67."""
_WRITTEN_OUT = 1e21
"""Go writes whole floats below this without an exponent, and so as integers."""


def read_number(text: str) -> int | float | str:
    """Read a plain scalar that begins as a number does; a text if it is none."""
    if _ENDLESS.fullmatch(text):
        return float(text.replace(".", ""))
    plain = text if text.startswith(".") else text.replace("_", "")
    if len(plain) <= _LONGEST and _INTEGER.fullmatch(plain):
        number = _read_integer(plain)
        if _INTEGERS[0] <= number <= _INTEGERS[1]:
            return number
    if not _FLOAT.fullmatch(plain):
        return text
    value = float(plain)
    if math.isinf(value):
        return text
    is_whole = value.is_integer() and abs(value) < _WRITTEN_OUT
    return int(value) if is_whole else value


def is_text(plain: str) -> bool:
    """True if a plain scalar is read as a text, and not as another value."""
    if plain[:1] in _BEGINS_NUMBER:
        return isinstance(read_number(plain), str)
    return plain not in _WORDS


def _read_integer(plain: str) -> int:
    """Read an integer as Go does: a leading zero makes it octal."""
    digits = plain.lstrip("+-")
    is_octal = digits.isdigit() and digits.startswith("0")
    number = int(digits, 8 if is_octal else 0)
    return -number if plain.startswith("-") else number


class KubernetesResolver(yaml.resolver.BaseResolver):
    """Says what a plain scalar is."""


class KubernetesLoader(UniqueKeysLoader):
    """Reads YAML as Kubernetes does."""

    def construct_number(self, node: yaml.ScalarNode) -> int | float | str:
        """Make a number of what looks like one, or leave it a text."""
        return read_number(self.construct_scalar(node))

    def construct_tagged(self, node: yaml.ScalarNode) -> int | float:
        """Make a number of what says `!!int` or `!!float`."""
        value = read_number(self.construct_scalar(node))
        if isinstance(value, str):
            problem = f"{value!r} is no number"
            raise yaml.constructor.ConstructorError(
                None, None, problem, node.start_mark
            )
        return value

    def construct_yaml_bool(self, node: yaml.ScalarNode) -> bool:
        """Make a boolean of one of its eight words."""
        return self.construct_scalar(node).lower() in _TRUE

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        """Make an object, whose keys are texts as in JSON."""
        values = super().construct_mapping(node, deep)
        if all(isinstance(key, str) for key in values):
            return values
        if None in values:
            problem = "a key is null"
            raise yaml.constructor.ConstructorError(
                None, None, problem, node.start_mark
            )
        return {_spell_key(key): value for key, value in values.items()}


def _spell_key(key: Any) -> str:
    """Write a key as JSON does."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _add_words(tag: str, words: list[str]) -> None:
    pattern = re.compile(rf"^(?:{'|'.join(map(re.escape, words))})$")
    first = sorted({word[0] for word in words})
    KubernetesResolver.add_implicit_resolver(f"{_TAG}{tag}", pattern, first)


_add_words("bool", _spell(_TRUE + _FALSE))
_add_words("null", _spell(_NULL))
_add_words("merge", ["<<"])
KubernetesResolver.add_implicit_resolver(f"{_TAG}null", re.compile("^$"), [""])
KubernetesResolver.add_implicit_resolver(
    _NUMBER, re.compile(r"^[-+.0-9][-+.0-9a-zA-Z_]*$"), list(_BEGINS_NUMBER)
)
KubernetesLoader.yaml_implicit_resolvers = KubernetesResolver.yaml_implicit_resolvers
KubernetesLoader.add_constructor(_NUMBER, KubernetesLoader.construct_number)
for _tag in ("int", "float"):
    KubernetesLoader.add_constructor(f"{_TAG}{_tag}", KubernetesLoader.construct_tagged)
KubernetesLoader.add_constructor(f"{_TAG}bool", KubernetesLoader.construct_yaml_bool)
