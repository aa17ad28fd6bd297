"""Rules across a gang that its pods declare in annotations.

Each annotation has the list of the Gang's field of that name, as JSON. What is not
understood to the letter is never taken for less: it is named. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct

from contracts.codec import Codec
from contracts.errors import DecodeError
from contracts.gang_rules import (
    MAX_CONSTRAINTS,
    MAX_TOPOLOGY,
    GangConstraint,
    GangTopology,
)
from contracts.names import CONSTRAINTS, TOPOLOGY
from contracts.pods.marks import find_unknown_mark
from contracts.shapes import read
from contracts.workload import Pod

T = TypeVar("T", GangConstraint, GangTopology)
MAX_RULES = {CONSTRAINTS: MAX_CONSTRAINTS, TOPOLOGY: MAX_TOPOLOGY}
"""Entries of an annotation, by its name."""
MOST_SHOWN = 300
"""Characters of a fault that are worth reading."""


class DeclaredRules(Struct, frozen=True, kw_only=True):
    """The rules that pods declare for their gang."""

    constraints: tuple[GangConstraint, ...] = ()
    topology: tuple[GangTopology, ...] = ()


class InvalidRules(Struct, frozen=True, kw_only=True):
    """An annotation that cannot be used."""

    reason: str
    """`ConstraintsInvalid`, `TopologyInvalid` or `MarkUnknown`."""
    message: str
    """Pod, annotation, field and rule."""


def read_declared_rules(pods: Sequence[Pod]) -> DeclaredRules | InvalidRules:
    """Read what the pods of one gang ask; all of them must say the same.

    A mark of ours that is not known may be such a rule, misspelt.
    """
    for pod in pods:
        if unknown := find_unknown_mark(pod):
            message = f"pod {pod.metadata.name}: {unknown}"
            return InvalidRules(reason="MarkUnknown", message=message)
    constraints = _read_rules(pods, CONSTRAINTS, GangConstraint, "ConstraintsInvalid")
    if isinstance(constraints, InvalidRules):
        return constraints
    topology = _read_rules(pods, TOPOLOGY, GangTopology, "TopologyInvalid")
    if isinstance(topology, InvalidRules):
        return topology
    return DeclaredRules(constraints=constraints, topology=topology)


def _read_rules(
    pods: Sequence[Pod], name: str, kind: type[T], reason: str
) -> tuple[T, ...] | InvalidRules:
    texts = {pod.metadata.annotations.get(name, "") for pod in pods}
    if len(texts) > 1:
        message = f"the pods disagree on the annotation {name}"
        return InvalidRules(reason=reason, message=message)
    what = f"pod {pods[0].metadata.name}: annotation {name}"
    try:
        return _decode_annotation(texts.pop(), kind, what, MAX_RULES[name])
    except DecodeError as error:
        return InvalidRules(reason=reason, message=str(error)[:MOST_SHOWN])


def _decode_annotation(
    text: str, kind: type[T], what: str, limit: int
) -> tuple[T, ...]:
    """Read the entries of an annotation; none: it is not there.

    Raises:
        DecodeError: it is no list of these, or has fields that we do not know.
    """
    if not text:
        return ()
    entries = Codec[list[Any]](list[Any], what).decode(text.encode(errors="replace"))
    if len(entries) > limit:
        raise DecodeError(what, "$", f"must have at most {limit} items")
    rules = []
    for index, entry in enumerate(entries):
        field = f"[{index}]"
        if not isinstance(entry, dict):
            raise DecodeError(what, field, "Expected `object`")
        unknown: list[str] = []
        try:
            rules.append(read(entry, kind, what, unknown))
        except DecodeError as error:
            place = field + error.field.removeprefix("$")
            raise DecodeError(what, place, error.reason) from error
        if unknown:
            raise DecodeError(what, f"{field}.{unknown[0]}", "unknown field")
    return tuple(rules)
