"""Checks the label by which a claim is allocated without a pod (`Immediate`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.meta import ObjectMeta
from contracts.names import ALLOCATE, IMMEDIATE
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.plan.objects import PlanObject

_OTHERWISE = "claims without it are allocated once a pod uses them"
_MADE = (
    "each claim that it makes is allocated by itself, as soon as it is there: before "
    "its pod has a node, and before the other claims of the pod and of its gang, which "
    "may not fit beside it then"
)


def check_allocate_marks(entry: PlanObject) -> Iterator[Finding]:
    """Check where the label is, and what it says."""
    value = entry.decoded.value
    if isinstance(value, ResourceClaim):
        yield from _check_labels(entry, "metadata", value.metadata)
    elif isinstance(value, ResourceClaimTemplate):
        own, made = value.metadata, value.spec.metadata
        for field, marks in _list_marks("metadata", own):
            if ALLOCATE in marks:
                place = f"{field}[{ALLOCATE}]"
                message = "it is a label of claims: write it to spec.metadata.labels"
                yield _report(entry, place, LintRule.NO_EFFECT, message)
        yield from _check_labels(entry, "spec.metadata", made)
        if made.labels.get(ALLOCATE) == IMMEDIATE:
            place = f"spec.metadata.labels[{ALLOCATE}]"
            yield _report(entry, place, LintRule.IMMEDIATE, _MADE, Severity.WARNING)


def _check_labels(entry: PlanObject, path: str, meta: ObjectMeta) -> Iterator[Finding]:
    value = meta.labels.get(ALLOCATE, IMMEDIATE)
    if value != IMMEDIATE:
        message = f"{value!r} is unknown; it is {IMMEDIATE}, and {_OTHERWISE}"
        place = f"{path}.labels[{ALLOCATE}]"
        yield _report(entry, place, LintRule.NO_EFFECT, message)
    if ALLOCATE in meta.annotations:
        place, message = f"{path}.annotations[{ALLOCATE}]", "it is a label"
        yield _report(entry, place, LintRule.NO_EFFECT, message)


def _list_marks(path: str, meta: ObjectMeta) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield f"{path}.labels", meta.labels
    yield f"{path}.annotations", meta.annotations


def _report(
    entry: PlanObject,
    field: str,
    rule: LintRule,
    message: str,
    severity: Severity = Severity.ERROR,
) -> Finding:
    meta = entry.decoded.value.metadata
    return Finding(
        severity=severity,
        kind=entry.decoded.kind,
        namespace=meta.namespace,
        name=meta.name,
        field=field,
        rule=rule,
        message=message,
    )
