"""From a submitted gang to what is decided: references, defaults, and named refusals.

Looks up classes, templates and claims, fills in what the API server would, and says
by name what is invalid or cannot be decided by this version. A refusal that cannot
change while the gang stays as written is a rejection; a missing class is not.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct, structs

from contracts.allocation import MAX_DEVICES, Reason, Rule
from contracts.claim import (
    IMPLICIT_RESOURCE,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from contracts.counts import counted
from contracts.features import Features
from contracts.gang import Gang, Member, MemberClaim
from contracts.ids import (
    DeviceClassName,
    GangKey,
    GangUID,
    Namespace,
    object_key,
)
from contracts.kubernetes.defaults import default_claim_spec, default_gang
from contracts.lifecycle import GangRecord
from contracts.meta import ObjectMeta
from contracts.quantity import NANO
from contracts.validate import validate
from solver.errors import RefusedError
from solver.problem.gang_refusals import (
    invalid,
    not_before_binding,
    not_modelled,
    shared,
    unknown,
)
from solver.problem.gangs import ClaimPart, GangPart, MemberPart
from solver.problem.node_needs import (
    count_node_resources,
    read_required_affinity,
    read_rules_between_pods,
)
from solver.problem.requests import find_constraint_fault, resolve_requests
from solver.problem.sharing import (
    check_shared_claims,
    count_claims,
    find_shared_claims,
)
from solver.problem.topology import check_paths
from solver.snapshot.parts import ClassPart

EXTENDED_RESOURCES = "extended-resources"
"""The claim of a pod that asks for devices as extended resources."""


class Lookup(Protocol):
    """Looks up what a gang refers to."""

    def device_class(self, name: DeviceClassName) -> ClassPart | None:
        """Look up a class."""

    def template(self, key: str) -> ResourceClaimTemplate | None:
        """Look up a template by `namespace/name`."""

    def claim(self, key: str) -> ResourceClaim | None:
        """Look up a claim by `namespace/name`."""

    def claim_holder(self, key: str) -> GangRecord | None:
        """Find the gang that was given a claim by `namespace/name`, if any was."""

    def class_serving(self, resource: str) -> DeviceClassName | None:
        """Find the class that serves an extended resource (KEP-5004)."""


class ResolveOptions(Struct, frozen=True, kw_only=True):
    """How to resolve."""

    lookup: Lookup
    features: Features = Features()
    lenient: bool = False
    """Neither fill in defaults nor validate, as kube-scheduler's allocator does not;
    what is wrong stays in the parts as a fault."""
    of_pods: bool = False
    """The gang is of pods that wait for their claims, and kube-scheduler is to bind
    them: it makes the claims of extended resources itself, and only then."""


def resolve(uid: GangUID, gang: Gang, how: ResolveOptions) -> GangPart:
    """Make a gang ready to be decided, or refuse it with a reason."""
    members: tuple[MemberPart, ...] = ()
    refused: tuple[Reason, ...] = ()
    rejected = False
    try:
        if not how.lenient:
            gang = default_gang(gang)
            _validate_object(gang.metadata.name, gang)
            _refuse_held(GangKey(Namespace(gang.metadata.namespace), uid), gang, how)
        members = tuple(
            _resolve_member(gang, member, how) for member in gang.spec.members
        )
        check_paths(gang.spec.constraints, members)
        if not how.lenient:
            check_shared_claims(members)
        _refuse_unmodelled(members)
    except RefusedError as error:
        refused, rejected = (error.reason,), error.rejected
    return GangPart(
        uid=uid,
        namespace=Namespace(gang.metadata.namespace),
        name=gang.metadata.name,
        priority=gang.spec.priority,
        weight=_weigh_gang(gang, members),
        members=members,
        constraints=gang.spec.constraints,
        topology=gang.spec.topology,
        rejected=rejected,
        refused=refused,
    )


def _refuse_held(asking: GangKey, gang: Gang, how: ResolveOptions) -> None:
    """Require that no other gang was given a ResourceClaim that this one names."""
    for key in sorted(gang.named_claims):
        holder = how.lookup.claim_holder(key)
        if holder is not None and holder.key != asking:
            raise shared(key, f"gang {holder.uid} has it")


def _weigh_gang(gang: Gang, members: tuple[MemberPart, ...]) -> int:
    """Count the devices asked for by the pods without which the gang is not in."""
    if gang.spec.weight is not None:
        return gang.spec.weight
    core = (structs.replace(member, count=member.least) for member in members)
    return max(sum(pods * claim.asked for pods, claim in count_claims(core)), 1)


def _refuse_unmodelled(members: tuple[MemberPart, ...]) -> None:
    """Refuse pods that may be left out where pods share a claim."""
    growing = next((m.name for m in members if m.least < m.count), "")
    if growing and find_shared_claims(members):
        field = "spec.members[].minCount beside a claim that pods share"
        raise not_modelled(growing, field)


def _validate_object(subject: str, value: Gang | ResourceClaim) -> None:
    for violation in validate(value):
        raise invalid(subject, violation.field, violation.reason)


def _resolve_member(gang: Gang, member: Member, how: ResolveOptions) -> MemberPart:
    extended = _find_extended(member, how)
    claims = [_resolve_claim(gang, member, claim, how) for claim in member.claims]
    if extended:
        claims.append(_make_extended_claim(extended, how))
    return MemberPart(
        name=member.name,
        count=member.count,
        min_count=None if member.min_count == member.count else member.min_count,
        claims=tuple(claims),
        node_name=member.node.node_name,
        extended_resources=tuple(extended),
        resources=count_node_resources(member, extended),
        node_selector=member.node.node_selector,
        affinity=read_required_affinity(member),
        tolerations=member.node.tolerations,
        features=member.node.features if how.features.node_declared_features else (),
        labels=member.node.labels,
        varying_labels=member.node.varying_labels,
        pod_rules=read_rules_between_pods(gang.metadata.namespace, member),
    )


def _find_extended(
    member: Member, how: ResolveOptions
) -> dict[str, ExactDeviceRequest]:
    """Find the resources of a member that classes serve, by name, sorted.

    Raises:
        RefusedError: a resource is named after a class that does not exist, or its
            devices cannot be allocated ahead.
    """
    requests_by_resource: dict[str, ExactDeviceRequest] = {}
    if not how.features.extended_resource:
        return requests_by_resource
    for name in sorted(name for name in member.node.resources if "/" in name):
        device_class = how.lookup.class_serving(name)
        count = -(-member.node.resources[name].nano // NANO)
        if device_class is None and name.startswith(IMPLICIT_RESOURCE):
            missing = name.removeprefix(IMPLICIT_RESOURCE)
            raise unknown(Rule.UNKNOWN_CLASS, member.name, missing)
        if device_class is None or count <= 0:
            continue
        if how.of_pods:
            raise not_before_binding(member.name, name, device_class)
        requests_by_resource[name] = ExactDeviceRequest(
            device_class_name=device_class, allocation_mode="ExactCount", count=count
        )
    return requests_by_resource


def _make_extended_claim(
    extended: dict[str, ExactDeviceRequest], how: ResolveOptions
) -> ClaimPart:
    """Make the claim that kube-scheduler makes for extended resources (KEP-5004)."""
    requests = tuple(
        DeviceRequest(name=f"container-0-request-{index}", exactly=exactly)
        for index, exactly in enumerate(extended.values())
    )
    spec = DeviceClaim(requests=requests)
    subject = f"claim {EXTENDED_RESOURCES}"
    parts = tuple(resolve_requests(spec, subject, how.lookup, how.features))
    return ClaimPart(name=EXTENDED_RESOURCES, requests=parts)


def _resolve_claim(
    gang: Gang, member: Member, claim: MemberClaim, how: ResolveOptions
) -> ClaimPart:
    subject = f"{member.name}/{claim.name}"
    spec, claim_uid = _find_claim_spec(gang, claim, subject, how.lookup)
    if not how.lenient and claim.spec is None:  # else it was validated with the gang
        spec = default_claim_spec(spec)
        claim_object = ResourceClaim(metadata=ObjectMeta(name="claim"), spec=spec)
        _validate_object(subject, claim_object)
    name = claim.claim_name or claim.name
    namespace = gang.metadata.namespace
    place = f"claim {namespace}/{name}" if namespace else f"claim {name}"
    part = ClaimPart(
        name=claim.name,
        claim_name=claim.claim_name or "",
        claim_uid=claim_uid,
        requests=tuple(resolve_requests(spec.devices, place, how.lookup, how.features)),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
        fault=find_constraint_fault(spec.devices, place),
    )
    if not how.lenient:
        _refuse_faults(part, subject)
        _refuse_many(part, subject)
    return part


def _refuse_faults(claim: ClaimPart, subject: str) -> None:
    for request in claim.requests:
        path = f"{subject}/{request.name}"
        faults = [
            request.fault,
            *(alternative.fault for alternative in request.alternatives),
        ]
        fault = next(filter(None, faults), "")
        for alternative in request.alternatives:
            if "could not retrieve device class" in alternative.fault == fault:
                raise unknown(Rule.UNKNOWN_CLASS, path, alternative.device_class)
        if fault:
            raise invalid(path, "", fault.partition(": ")[2])


def _refuse_many(claim: ClaimPart, subject: str) -> None:
    devices = sum(
        min(
            1 if alternative.all_devices else alternative.count
            for alternative in request.alternatives
        )
        for request in claim.requests
    )
    if devices > MAX_DEVICES:
        asked = counted(devices, "device")
        message = f"asks for {asked}; a claim has at most {MAX_DEVICES}"
        reason = Reason(
            rule=Rule.TOO_MANY_DEVICES,
            subject=subject,
            message=message,
            facts={"asked": devices, "limit": MAX_DEVICES},
        )
        raise RefusedError(reason, rejected=True)


def _find_claim_spec(
    gang: Gang, claim: MemberClaim, subject: str, lookup: Lookup
) -> tuple[ResourceClaimSpec, str]:
    namespace = gang.metadata.namespace
    uid = ""
    if claim.claim_name:
        key = object_key(namespace, claim.claim_name)
        existing = lookup.claim(key)
        uid = existing.metadata.uid if existing is not None else ""
        if claim.spec is None:
            if existing is None:
                raise unknown(Rule.UNKNOWN_CLAIM, subject, claim.claim_name)
            if existing.allocation:
                raise shared(key, "it is allocated already")
            return existing.spec, uid
    if claim.spec is not None:
        return claim.spec, uid
    name = claim.template_name or ""
    template = lookup.template(object_key(namespace, name))
    if template is None:
        raise unknown(Rule.UNKNOWN_TEMPLATE, subject, name)
    return template.spec.spec, ""
