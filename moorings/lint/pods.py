"""Checks pods and workloads, and collects those that would wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.claim import (
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from contracts.counts import counted
from contracts.ids import object_key
from contracts.meta import OwnerReference
from contracts.names import GANG
from contracts.pods.marks import UNGATED, find_unknown_mark, list_unknown_gates
from contracts.validate.pods import (
    check_pod_spec,
    list_containers,
    list_fractions,
)
from contracts.workload import Pod, PodSpec, Workload
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.plan.asking import WaitingGang, WaitReason
from moorings.plan.extended_resources import asks_for_devices
from moorings.plan.objects import PlanObject
from moorings.plan.pods import has_gate, list_patterns
from publisher.gangs.submit.completeness import GROUPS_INVALID
from publisher.gangs.submit.plan_submission import SIZE_DIFFERS
from publisher.gangs.submit.pod_groups import PRIORITY_DIFFERS
from publisher.gangs.view import is_over

_ENDLESS = (
    "ClaimsDiffer",
    "ConstraintsInvalid",
    "GangNameInvalid",
    "GangSizeInvalid",
    "GangSizeMissing",
    "MarkUnknown",
    "PodsMissing",
    "PodsTooMany",
    GROUPS_INVALID,
    PRIORITY_DIFFERS,
    SIZE_DIFFERS,
    "TooManyUsers",
    "TopologyInvalid",
)
"""Reasons to wait, or to begin as others than expected, that an author can mend."""
_HOPELESS = (
    "ConstraintsInvalid",
    "GangNameInvalid",
    "GangSizeInvalid",
    "MarkUnknown",
    "PodsTooMany",
    GROUPS_INVALID,
    PRIORITY_DIFFERS,
    "TopologyInvalid",
)
"""Reasons that no further pod can resolve."""
_BYPASSED = (
    "schedulers ignore pods with a nodeName: nobody allocates its claims, and "
    "kubelet refuses it; use nodeSelector: {kubernetes.io/hostname: ...}"
)
_Requests = Mapping[str, frozenset[str]]
"""By `namespace/name` of a claim or template, the names of its requests."""


def check_pods(objects: list[PlanObject]) -> Iterator[Finding]:
    """Check pods and templates as the API server would, and whom they refer to."""
    claims = _list_requests(objects, ResourceClaim)
    templates = _list_requests(objects, ResourceClaimTemplate)
    for entry in objects:
        value = entry.decoded.value
        if not isinstance(value, Pod | Workload):
            continue
        if isinstance(value, Pod) and (_is_bound(value) or is_over(value)):
            continue
        for path, meta, spec in list_patterns(value):
            for violation in check_pod_spec(spec, path):
                yield _make_finding(
                    entry, violation.field, LintRule.INVALID, violation.reason
                )
            for number, message in list_unknown_gates(spec):
                place = f"{path}.schedulingGates[{number}]"
                yield _make_finding(entry, place, LintRule.NO_EFFECT, message)
            if spec.node_name and spec.resource_claims:
                place, message = f"{path}.nodeName", _BYPASSED
                yield _make_finding(entry, place, LintRule.NODE_NAME, message)
            yield from _check_references(entry, spec, path, claims, templates)
            yield from _check_fractions(entry, spec, path)
            if GANG in meta.labels and not has_gate(spec):
                place, message = f"{path}.schedulingGates", f"its pods {UNGATED}"
                found = _make_finding(entry, place, LintRule.NO_EFFECT, message)
                yield structs.replace(found, severity=Severity.WARNING)
            if not has_gate(spec) and not asks_for_devices(spec):
                # All others are of gangs, which wait for it.
                unknown = find_unknown_mark(Pod(metadata=meta, spec=spec))
                if unknown is not None:
                    place = f"{path.removesuffix('spec')}metadata"
                    yield _make_finding(entry, place, LintRule.NO_EFFECT, unknown)


def _is_bound(pod: Pod) -> bool:
    """True if a scheduler has bound the pod."""
    return bool(pod.spec.node_name and pod.metadata.uid)


def _list_requests(
    objects: list[PlanObject], kind: type[ResourceClaim | ResourceClaimTemplate]
) -> _Requests:
    found: dict[str, frozenset[str]] = {}
    for entry in objects:
        value = entry.decoded.value
        if not isinstance(value, kind):
            continue
        spec = value.spec
        devices = (
            spec.spec if isinstance(spec, ResourceClaimTemplateSpec) else spec
        ).devices
        key = object_key(value.metadata.namespace, value.metadata.name)
        found[key] = frozenset(request.name for request in devices.requests)
    return found


def _check_references(
    entry: PlanObject, spec: PodSpec, path: str, claims: _Requests, templates: _Requests
) -> Iterator[Finding]:
    """Find claims, templates, and their requests that pods name and that are not."""
    namespace = entry.decoded.value.metadata.namespace
    requests: dict[str, frozenset[str]] = {}
    for index, claim in enumerate(spec.resource_claims):
        for field, name, known, rule in (
            ("resourceClaimName", claim.resource_claim_name, claims, _CLAIM),
            (
                "resourceClaimTemplateName",
                claim.resource_claim_template_name,
                templates,
                _TEMPLATE,
            ),
        ):
            if not name:
                continue
            key = object_key(namespace, name)
            if key in known:
                requests[claim.name] = known[key]
            else:
                place = f"{path}.resourceClaims[{index}].{field}"
                yield _make_finding(entry, place, rule, f"{name!r} does not exist")
    for field, container in list_containers(spec):
        for number, reference in enumerate(container.resources.claims):
            names = requests.get(reference.name)
            if names is None or not reference.request or reference.request in names:
                continue
            place = f"{path}.{field}.resources.claims[{number}].request"
            message = (
                f"claim {reference.name} has no request {reference.request!r}: "
                f"container {container.name} gets no device from it"
            )
            yield _make_finding(entry, place, LintRule.UNKNOWN_REQUEST, message)


def _check_fractions(entry: PlanObject, spec: PodSpec, path: str) -> Iterator[Finding]:
    """Find parts of what is counted, which the API server takes and rounds up."""
    for fraction in list_fractions(spec, path):
        rule = LintRule.FRACTION
        found = _make_finding(entry, fraction.field, rule, str(fraction))
        yield structs.replace(found, severity=Severity.WARNING)


def check_gangs(gangs: Iterable[WaitingGang]) -> Iterator[Finding]:
    """Find gangs that would wait for what does not come by itself.

    As the publisher would, by its own plans. Those that are `Invalid` are told of their
    pods. Pods that one maker has and that wait for the same are one finding, of it.
    """
    pods = Counter[Finding]()
    for waiting in gangs:
        for reason in waiting.reasons:
            if _is_mendable(reason):
                pods[_report_gang(waiting, reason)] += len(waiting.pods)
    for finding, count in pods.items():
        if finding.kind != "Gang":
            message = f"{counted(count, 'pod')}: {finding.message}"
            yield structs.replace(finding, message=message)
        else:
            yield finding


def _report_gang(waiting: WaitingGang, reason: Reason | WaitReason) -> Finding:
    is_final = waiting.verdict == "error" or str(reason.rule) in _HOPELESS
    kind, name = "Gang", waiting.group.name
    if waiting.group.lone and (maker := _find_maker(waiting.pods)) is not None:
        kind, name = maker.kind, maker.name
        reason = structs.replace(reason, subject="")
    return Finding(
        severity=Severity.ERROR if is_final else Severity.WARNING,
        kind=kind,
        namespace=waiting.group.namespace,
        name=name,
        field=reason.field,
        rule=LintRule.SIZE_DIFFERS
        if str(reason.rule) == SIZE_DIFFERS
        else LintRule.GANG_WAITS,
        message=str(reason),
    )


def _find_maker(pods: Iterable[Pod]) -> OwnerReference | None:
    owners = (owner for pod in pods for owner in pod.metadata.owner_references)
    return next((owner for owner in owners if owner.controller), None)


def _is_mendable(reason: Reason | WaitReason) -> bool:
    return str(reason.rule) in (*_ENDLESS, Rule.NOT_MODELLED, Rule.UNKNOWN_CLASS)


_CLAIM = LintRule.UNKNOWN_CLAIM
_TEMPLATE = LintRule.UNKNOWN_TEMPLATE


def _make_finding(
    entry: PlanObject, field: str, rule: LintRule, message: str
) -> Finding:
    meta = entry.decoded.value.metadata
    return Finding(
        severity=Severity.ERROR,
        kind=entry.decoded.kind,
        namespace=meta.namespace,
        name=meta.name,
        field=field,
        rule=rule,
        message=message,
    )
