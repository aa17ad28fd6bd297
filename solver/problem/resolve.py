"""From a submitted gang to what is decided: references, defaults, and named refusals.

Looks up classes, templates and claims, fills in what the API server would, and says
by name what is invalid or cannot be decided by this version. A refusal that cannot
change while the gang stays as written is a rejection; a missing class is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from contracts.allocation import Reason, Rule
from contracts.claim import (
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from contracts.defaults import default_claim_spec, default_gang
from contracts.gang import Gang, Member, MemberClaim, MemberNode, NodeToleration
from contracts.ids import DeviceClassName, GangUID, Namespace, object_key
from contracts.meta import ObjectMeta
from contracts.validate import validate
from solver.problem.problem import ClaimPart, GangPart, MemberPart, RequestPart
from solver.snapshot.parts import ClassPart

MAX_DEVICES = 32
"""Devices of one claim (DRA: AllocationResultsMaxSize)."""


class Lookup(Protocol):
    """Where references lead."""

    def device_class(self, name: DeviceClassName) -> ClassPart | None:
        """Look up a class."""

    def template(self, key: str) -> ResourceClaimTemplate | None:
        """Look up a template by `namespace/name`."""

    def claim(self, key: str) -> ResourceClaim | None:
        """Look up a claim by `namespace/name`."""


class RefusedError(Exception):
    """Why a gang is not tried, and whether that can change."""

    def __init__(self, reason: Reason, *, rejected: bool) -> None:
        self.reason = reason
        self.rejected = rejected
        super().__init__(str(reason))


def resolve(
    uid: GangUID, gang: Gang, lookup: Lookup, *, lenient: bool = False
) -> GangPart:
    """Make a gang ready to be decided, or say why it is not tried.

    `lenient` neither fills in defaults nor validates, as kube-scheduler's allocator
    does not; what it cannot work with is refused in its words.
    """
    members: tuple[MemberPart, ...] = ()
    refused: tuple[Reason, ...] = ()
    rejected = False
    try:
        if not lenient:
            gang = default_gang(gang)
            _validate(gang.metadata.name, gang)
        _check(gang)
        members = tuple(
            _member(gang, member, lookup, lenient=lenient)
            for member in gang.spec.members
        )
    except RefusedError as error:
        refused, rejected = (error.reason,), error.rejected
    return GangPart(
        uid=uid,
        namespace=Namespace(gang.metadata.namespace),
        name=gang.metadata.name,
        priority=gang.spec.priority,
        weight=_weight(gang, members),
        members=members,
        rejected=rejected,
        refused=refused,
    )


def _weight(gang: Gang, members: Iterable[MemberPart]) -> int:
    """Count the devices asked for; a request for all counts as one."""
    if gang.spec.weight is not None:
        return gang.spec.weight
    asked = sum(
        member.count * (1 if request.all_devices else request.count)
        for member in members
        for claim in member.claims
        for request in claim.requests
    )
    return max(asked, 1)


def _validate(subject: str, value: Gang | ResourceClaim) -> None:
    for violation in validate(value):
        message = f"{violation.rule}: {violation.message}".rstrip(": ")
        raise _invalid(subject, violation.field, message)


def _check(gang: Gang) -> None:
    spec = gang.spec
    if spec.constraints:
        raise _not_modelled("", "spec.constraints")
    if spec.topology:
        raise _not_modelled("", "spec.topology")
    for member in spec.members:
        node = member.node
        for field, value in (
            ("resources", node.resources),
            ("nodeSelector", node.node_selector),
            ("affinity", node.affinity),
            ("tolerations", _tolerations(node)),
        ):
            if value:
                raise _not_modelled(member.name, f"spec.members[].node.{field}")


def _tolerations(node: MemberNode) -> list[NodeToleration]:
    """List the tolerations that change which nodes will do.

    Kubernetes gives every pod two that matter only once it runs.
    """
    return [t for t in node.tolerations if t.effect != "NoExecute" or not t.key]


def _member(gang: Gang, member: Member, lookup: Lookup, *, lenient: bool) -> MemberPart:
    return MemberPart(
        name=member.name,
        count=member.count,
        claims=tuple(
            _claim(gang, member, claim, lookup, lenient=lenient)
            for claim in member.claims
        ),
    )


def _claim(
    gang: Gang, member: Member, claim: MemberClaim, lookup: Lookup, *, lenient: bool
) -> ClaimPart:
    subject = f"{member.name}/{claim.name}"
    if claim.claim_name and member.count > 1:
        raise _not_modelled(subject, "spec.members[].claims[].claimName of many pods")
    spec, claim_uid = _claim_spec(gang, claim, subject, lookup)
    if lenient:
        _refuse_as_upstream(spec, subject)
    else:
        spec = default_claim_spec(spec)
        claim_object = ResourceClaim(metadata=ObjectMeta(name="claim"), spec=spec)
        _validate(subject, claim_object)
    for constraint in spec.devices.constraints:
        if any("/" in name for name in constraint.requests):
            raise _not_modelled(subject, "constraints[].requests of subrequests")
    requests = tuple(_requests(spec, subject, lookup))
    asked = sum(1 if request.all_devices else request.count for request in requests)
    if asked > MAX_DEVICES:
        message = f"asks for {asked} devices; a claim has at most {MAX_DEVICES}"
        reason = Reason(
            rule=Rule.TOO_MANY_DEVICES,
            subject=subject,
            message=message,
            facts={"asked": asked, "limit": MAX_DEVICES},
        )
        raise RefusedError(reason, rejected=True)
    return ClaimPart(
        name=claim.name,
        claim_name=claim.claim_name or "",
        claim_uid=claim_uid,
        requests=requests,
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )


def _claim_spec(
    gang: Gang, claim: MemberClaim, subject: str, lookup: Lookup
) -> tuple[ResourceClaimSpec, str]:
    namespace = gang.metadata.namespace
    uid = ""
    if claim.claim_name:
        known = lookup.claim(object_key(namespace, claim.claim_name))
        uid = known.metadata.uid if known is not None else ""
        if known is not None and known.status and known.status.allocation:
            raise _not_modelled(subject, "claimName of an allocated claim")
        if claim.spec is None:
            if known is None:
                raise _unknown(Rule.UNKNOWN_CLAIM, subject, claim.claim_name)
            return known.spec, uid
    if claim.spec is not None:
        return claim.spec, uid
    name = claim.template_name or ""
    template = lookup.template(object_key(namespace, name))
    if template is None:
        raise _unknown(Rule.UNKNOWN_TEMPLATE, subject, name)
    return template.spec.spec, ""


def _refuse_as_upstream(spec: ResourceClaimSpec, subject: str) -> None:
    """Refuse what kube-scheduler's allocator cannot work with, in its words."""
    for request in spec.devices.requests:
        path = f"{subject}/{request.name}"
        if request.exactly is None:
            continue
        mode = request.exactly.allocation_mode
        if mode not in ("ExactCount", "All"):
            raise _invalid(path, "allocationMode", f"unsupported count mode {mode}")
        if any(selector.cel is None for selector in request.exactly.selectors):
            message = "CEL expression empty (unsupported selector type?)"
            raise _invalid(path, "selectors", message)
    for constraint in spec.devices.constraints:
        if not constraint.match_attribute and not constraint.distinct_attribute:
            message = "empty constraint (unsupported constraint type?)"
            raise _invalid(subject, "constraints", message)


def _requests(
    spec: ResourceClaimSpec, subject: str, lookup: Lookup
) -> Iterator[RequestPart]:
    for request in spec.devices.requests:
        path = f"{subject}/{request.name}"
        exactly = _exactly(request, path)
        found = lookup.device_class(exactly.device_class_name)
        if found is None:
            raise _unknown(Rule.UNKNOWN_CLASS, path, exactly.device_class_name)
        own = tuple(
            selector.cel.expression if selector.cel else ""
            for selector in exactly.selectors
        )
        yield RequestPart(
            name=request.name,
            device_class=exactly.device_class_name,
            selectors=(*found.selectors, *own),
            class_selectors=len(found.selectors),
            all_devices=exactly.allocation_mode == "All",
            count=exactly.count,
            tolerations=exactly.tolerations,
        )


def _exactly(request: DeviceRequest, path: str) -> ExactDeviceRequest:
    if request.exactly is None:
        raise _not_modelled(path, "firstAvailable")
    exactly = request.exactly
    fields: Mapping[str, object] = {
        "exactly.adminAccess": exactly.admin_access,
        "exactly.capacity": exactly.capacity,
        "exactly.derivedAttributes": exactly.derived_attributes,
    }
    for field, value in fields.items():
        if value:
            raise _not_modelled(path, field)
    return exactly


def _not_modelled(subject: str, field: str) -> RefusedError:
    reason = Reason(
        rule=Rule.NOT_MODELLED,
        subject=subject,
        field=field,
        message="this version cannot decide it yet",
    )
    return RefusedError(reason, rejected=True)


def _invalid(subject: str, field: str, message: str) -> RefusedError:
    reason = Reason(rule=Rule.INVALID, subject=subject, field=field, message=message)
    return RefusedError(reason, rejected=True)


def _unknown(rule: Rule, subject: str, name: str) -> RefusedError:
    reason = Reason(rule=rule, subject=subject, message=f"{name!r} does not exist")
    return RefusedError(reason, rejected=False)
