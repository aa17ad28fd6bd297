"""What the API server drops or refuses of new objects because a gate is off.

A claim that it stored while the gate was on keeps the field, so objects with a uid stay
as they are. Source: resourceclaim/strategy.go; DRA's CEL environment for new
expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.claim import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from contracts.features import Features
from contracts.gang import Gang
from contracts.kubernetes.claim_specs import change_claim_specs, list_claim_specs
from moorings.plan.objects import PlanObject
from solver.problem.gangs import GangPart
from solver.selectors.tokens import tokens_of

_WITH_CLAIMS = (ResourceClaim, ResourceClaimTemplate, Gang)
_INCLUDES = ("includes", "DRAListTypeAttributes")
_SHAREABLE = ("allowMultipleAllocations", "DRAConsumableCapacity")


def drop_disabled(
    objects: Iterable[PlanObject], features: Features
) -> tuple[list[PlanObject], list[str]]:
    """Drop from new claims the fields of gates that are off; with a note for each."""
    if features.admin_access and features.prioritized_list:
        return list(objects), []
    kept, notes = [], dict[str, None]()
    for entry in objects:
        value = entry.decoded.value
        texts = list(_name_dropped(list_claim_specs(value), features))
        if not isinstance(value, _WITH_CLAIMS) or value.metadata.uid or not texts:
            kept.append(entry)
            continue
        where = f"{entry.decoded.kind} {value.metadata.name}"
        notes |= {f"{where}: {text}": None for text in texts}
        dropped = change_claim_specs(value, lambda spec: _drop(spec, features))
        decoded = structs.replace(entry.decoded, value=dropped)
        kept.append(structs.replace(entry, decoded=decoded))
    return kept, list(notes)


def refuse_disabled_selectors(
    gangs: Iterable[GangPart], objects: Iterable[PlanObject], features: Features
) -> tuple[GangPart, ...]:
    """Refuse gangs with new selectors that use what a gate switches off."""
    faults = find_disabled_selectors(objects, features)
    return tuple(_refuse(gang, faults) for gang in gangs) if faults else tuple(gangs)


def find_disabled_selectors(
    objects: Iterable[PlanObject], features: Features
) -> dict[str, str]:
    """Find the new selectors that the API server would not compile, and why."""
    off = [
        *([] if features.list_type_attributes else [_INCLUDES]),
        *([] if features.consumable_capacity else [_SHAREABLE]),
    ]
    return {
        text: (
            f"CEL compile error: undeclared reference to {name!r}: the gate {gate} is "
            "off"
        )
        for entry in objects
        if off and not entry.decoded.value.metadata.uid
        for text in _list_expressions(entry)
        for name, gate in off
        if _uses(text, name)
    }


def _drop(spec: ResourceClaimSpec, features: Features) -> ResourceClaimSpec:
    requests = tuple(_drop_of(each, features) for each in spec.devices.requests)
    devices = structs.replace(spec.devices, requests=requests)
    return structs.replace(spec, devices=devices)


def _drop_of(request: DeviceRequest, features: Features) -> DeviceRequest:
    exactly, first_available = request.exactly, request.first_available
    if exactly is not None and not features.admin_access:
        exactly = structs.replace(exactly, admin_access=None)
    if not features.prioritized_list:
        first_available = ()
    return structs.replace(request, exactly=exactly, first_available=first_available)


def _name_dropped(
    specs: Iterable[ResourceClaimSpec], features: Features
) -> Iterator[str]:
    for spec in specs:
        for request in spec.devices.requests:
            has_admin = request.exactly and request.exactly.admin_access is not None
            if has_admin and not features.admin_access:
                yield _explain(request, "exactly.adminAccess", "DRAAdminAccess")
            if request.first_available and not features.prioritized_list:
                yield _explain(request, "firstAvailable", "DRAPrioritizedList")


def _explain(request: DeviceRequest, field: str, gate: str) -> str:
    return (
        f"request {request.name}: the API server drops {field} while the gate "
        f"{gate} is off; answered without it"
    )


def _list_expressions(entry: PlanObject) -> Iterator[str]:
    selectors: list[DeviceSelector] = []
    value = entry.decoded.value
    if isinstance(value, DeviceClass):
        selectors += value.spec.selectors
    for spec in list_claim_specs(value):
        for request in spec.devices.requests:
            if request.exactly is not None:
                selectors += request.exactly.selectors
            for asked in request.first_available:
                selectors += asked.selectors
    for selector in selectors:
        if selector.cel is not None:
            yield selector.cel.expression


def _uses(expression: str, name: str) -> bool:
    """Return True if an expression calls a method or reads a field of a device.

    An attribute of the same name, `device.attributes[...].includes`, is neither.
    """
    texts = [token.text for token in tokens_of(expression) or ()]
    return any(
        text == name and (before == ["device", "."] or after == "(")
        for before, text, after in (
            (texts[i - 2 : i], texts[i], (texts[i + 1 :] or [""])[0])
            for i in range(2, len(texts))
        )
    )


def _refuse(gang: GangPart, faults: dict[str, str]) -> GangPart:
    reason = next(_find_faults(gang, faults), None)
    if reason is None or gang.refused:
        return gang
    return structs.replace(gang, refused=(reason,), rejected=True)


def _find_faults(gang: GangPart, faults: dict[str, str]) -> Iterator[Reason]:
    requests = (
        (f"{member.name}/{claim.name}/{request.name}", request)
        for member in gang.members
        for claim in member.claims
        for request in claim.requests
    )
    for subject, request in requests:
        for alternative in request.alternatives:
            for number, text in enumerate(alternative.selectors):
                if text in faults:
                    yield Reason(
                        rule=Rule.INVALID,
                        subject=subject,
                        field=alternative.selector_name(number),
                        message=faults[text],
                    )
