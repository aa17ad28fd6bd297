"""Documents with objects of `resource.k8s.io` v1alpha2 and v1alpha3 -> those of v1.

Objects of v1alpha2 refer to each other, so they wait for the end of the input; all
others go through in order. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from contracts.alpha.claims import (
    CLAIM_PARAMETERS,
    CLASS_PARAMETERS,
    Known,
    claim_to_v1,
    class_to_v1,
    template_to_v1,
)
from contracts.alpha.pods import lift_sources
from contracts.alpha.said import Json, Remark, Remarks
from contracts.alpha.slices import count_pools, pool_of, slice_to_v1
from contracts.alpha.v1alpha3 import CONVERSIONS
from contracts.kubernetes import versions
from contracts.kubernetes.decode import NAME_OUTSIDE, RESOURCE_GROUP, V1, V1ALPHA3

V1ALPHA2 = f"{RESOURCE_GROUP}/v1alpha2"
CONTEXT = "PodSchedulingContext"
"""What kube-scheduler and controllers of classic DRA tell each other; none is kept."""
KINDS = (
    "ResourceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    CLAIM_PARAMETERS,
    CLASS_PARAMETERS,
    CONTEXT,
)
"""The kinds of v1alpha2."""


class Converted(Struct, frozen=True, kw_only=True):
    """A document, in v1 if it was of an old version."""

    source: str
    value: Any
    """None: nothing is left of it in v1, or it cannot be said."""
    remarks: tuple[Remark, ...] = ()

    @property
    def is_refused(self) -> bool:
        """True if it cannot be said in v1."""
        return any(remark.is_error for remark in self.remarks)

    def list_notices(self) -> Iterator[str]:
        """Write what is lost or wrong, a line for each remark."""
        for remark in self.remarks:
            word = "error" if remark.is_error else "note"
            yield f"{word}: {self.source}: {remark}"


def convert(documents: Iterable[tuple[str, Any]]) -> Iterator[Converted]:
    """Say in v1 what is of an old version; `documents` are (source, parsed object)."""
    old: list[tuple[str, Json]] = []
    for source, raw in documents:
        if not isinstance(raw, dict):
            yield Converted(source=source, value=raw)
        elif raw.get("apiVersion") == V1ALPHA2 and raw.get("kind") in KINDS:
            old.append((source, raw))
        elif raw.get("apiVersion") == V1ALPHA3 and raw.get("kind") in CONVERSIONS:
            yield _convert_v1alpha3(source, raw)
        elif raw.get("apiVersion") == V1ALPHA3 and raw.get("kind") == CONTEXT:
            yield Converted(source=source, value=None)
        else:
            yield Converted(source=source, value=lift_sources(raw))
    yield from _convert_v1alpha2(old)


def _convert_v1alpha3(source: str, raw: Json) -> Converted:
    kind, remarks = raw["kind"], Remarks(raw)
    misplaced: list[str] = []
    value = versions.to_v1(kind, "v1beta1", CONVERSIONS[kind](raw, remarks), misplaced)
    for field in misplaced:
        remarks.refuse(field, "unknown field")
    return _finish(source, {**value, "apiVersion": V1}, remarks)


def _convert_v1alpha2(old: list[tuple[str, Json]]) -> Iterator[Converted]:
    known = Known(raw for _, raw in old)
    slices = count_pools(raw for _, raw in old if raw["kind"] == "ResourceSlice")
    for source, raw in old:
        remarks = Remarks(raw)
        if "metadata" not in raw and "name" in raw:
            remarks.refuse("name", NAME_OUTSIDE)
        match raw["kind"]:
            case "ResourceClass":
                value = class_to_v1(raw, known, remarks)
            case "ResourceClaim":
                value = claim_to_v1(raw, known, remarks)
            case "ResourceClaimTemplate":
                value = template_to_v1(raw, known, remarks)
            case "ResourceSlice":
                value = slice_to_v1(raw, slices[pool_of(raw)], remarks)
            case _:  # what refers to it has read it
                yield Converted(source=source, value=None)
                continue
        yield _finish(source, value, remarks)


def _finish(source: str, value: Json, remarks: Remarks) -> Converted:
    return Converted(
        source=source,
        value=None if remarks.has_errors else value,
        remarks=tuple(remarks.found),
    )
