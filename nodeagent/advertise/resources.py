"""Extended resources as people write them: `example.com/dongle=4`. Pure.

Integers only, as Kubernetes counts extended resources: `3`, `3000m` and `3Ki` are,
`0.5` and `1500m` are not, and nothing is rounded. Opaque integer resources, their
forerunners, are offered by their own names.

Source: Kubernetes' tasks/administer-cluster/extended-resource-node.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.quantity import INTEGER_RULE, Quantity, QuantityError
from contracts.validate.names import (
    check_extended_resource_name,
    is_opaque_integer,
)
from nodeagent.errors import ExtendedResourceError

MAX_COUNT = 2**63 - 1
"""Kubernetes counts in int64, and stops there."""
_FORM = "must be NAME=COUNT, such as example.com/dongle=4"
_NAME = "must be a name with a domain other than Kubernetes' own: example.com/dongle"


def read_resources(texts: Iterable[str]) -> dict[str, int]:
    """Read extended resources, each `NAME=COUNT`, by name.

    Raises:
        ExtendedResourceError: a text breaks a rule, or a name is there twice.
    """
    counts: dict[str, int] = {}
    for text in texts:
        name, equals, amount = text.partition("=")
        if not equals:
            raise ExtendedResourceError(text, _FORM)
        check_name(name)
        if name in counts:
            raise ExtendedResourceError(text, f"{name} appears twice")
        counts[name] = _read_count(text, amount)
    return counts


def check_name(name: str) -> None:
    """Require the name of an extended resource.

    Raises:
        ExtendedResourceError: it is none.
    """
    if is_opaque_integer(name):
        return
    if any(check_extended_resource_name(name, "")):
        raise ExtendedResourceError(name, _NAME)


def _read_count(text: str, amount: str) -> int:
    try:
        count = Quantity.parse(amount).whole
    except QuantityError as error:
        raise ExtendedResourceError(text, f"{INTEGER_RULE}: {error}") from error
    if count is None:
        raise ExtendedResourceError(text, INTEGER_RULE)
    if not 0 <= count <= MAX_COUNT:
        raise ExtendedResourceError(text, f"must be from 0 to {MAX_COUNT}")
    return count
