"""Reads files of settings strictly: YAML without surprises, made into one Struct.

Refused besides what the Struct refuses: a key that is there twice, of which YAML would
take the last, and aliases, by which a small file can mean a huge one.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from msgspec import Struct

from contracts.codec import convert
from contracts.errors import DecodeError
from nodeagent.errors import SettingsError

T = TypeVar("T")

MAX_CHARACTERS = 1 << 20
"""Of a file; the largest fleet that we ship has 6,000."""


class SettingsPart(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A part of a file of settings: an unknown key is a mistake."""


def read_text(file: Path) -> str:
    """Read a file, or as much of it as is refused for its length.

    Raises:
        SettingsError: it cannot be read, or is not UTF-8.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(str(file), "", f"cannot be read: {error}") from error


def read_settings(text: str, file: str, kind: type[T]) -> T:
    """Read the text of a file; `file` names it in errors.

    Raises:
        SettingsError: too long, no YAML, an unknown key, or a value of a wrong type.
    """
    if len(text) > MAX_CHARACTERS:
        raise SettingsError(file, "", f"has more than {MAX_CHARACTERS} characters")
    try:
        value: Any = yaml.load(text, _StrictLoader)  # noqa: S506  # a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark else ""
        raise SettingsError(file, line, f"is not YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SettingsError(file, "", f"is not YAML: {error}") from error
    try:
        return convert(value, kind, file)
    except DecodeError as error:
        field = error.field.removeprefix("$").removeprefix(".")
        raise SettingsError(file, field, error.reason) from error


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, stricter."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has aliases (&, *), which are refused")
        return super().compose_node(parent, index)

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        """Refuse a key that is there twice."""
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    problem = f"the key {key.value[:64]!r} appears twice"
                    raise yaml.MarkedYAMLError(
                        problem=problem, problem_mark=key.start_mark
                    )
                keys.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)
