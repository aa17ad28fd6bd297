"""Attributes of devices as people write them: text, integers, booleans, versions.

`{version: 1.2.3}` is a semantic version; text alone is a string.
"""

from __future__ import annotations

from functools import lru_cache

from contracts.device import DeviceAttribute
from nodeagent.sources.settings import SettingsPart


class VersionValue(SettingsPart, frozen=True, kw_only=True):
    """An attribute that is a semantic version."""

    version: str


AttributeValue = bool | int | str | VersionValue


def make_attribute(value: AttributeValue) -> DeviceAttribute:
    """Return the attribute as slices have it."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int):
        return _make_int(value)
    if isinstance(value, str):
        return _make_string(value)
    return DeviceAttribute(version_value=value.version)


_TRUE, _FALSE = DeviceAttribute(bool_value=True), DeviceAttribute(bool_value=False)


@lru_cache(maxsize=4096)
def _make_int(value: int) -> DeviceAttribute:
    return DeviceAttribute(int_value=value)


@lru_cache(maxsize=4096)
def _make_string(value: str) -> DeviceAttribute:
    return DeviceAttribute(string_value=value)
