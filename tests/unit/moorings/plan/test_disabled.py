"""What a gate that is off takes from new objects, and what stays of stored ones."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.claim import DeviceRequest
from contracts.features import Features
from contracts.kubernetes.claim_specs import list_claim_specs
from contracts.kubernetes.decode import WritableObject
from moorings.plan.disabled import drop_disabled, find_disabled_selectors
from tests.builders import (
    claim,
    claim_template,
    device_class,
    gang,
    member,
    member_claim,
    request,
    sub_request,
)
from tests.builders.inputs import entries

NO_ADMIN, NO_LIST = Features(admin_access=False), Features(prioritized_list=False)
ADMIN = request(admin_access=True)
EITHER = request(first_available=[sub_request("a"), sub_request("b")])
DROPPED = "the API server drops {} while the gate {} is off; answered without it"


def made_of(asked: DeviceRequest) -> tuple[WritableObject, ...]:
    """Ask for a claim in every way in which one is written."""
    of_gang = gang(member(member_claim(asked), member_claim(asked, name="more")))
    return claim(asked), claim_template(asked), with_uid(of_gang, "")


def with_uid(value: WritableObject, uid: str) -> WritableObject:
    metadata = structs.replace(value.metadata, uid=uid)
    return structs.replace(value, metadata=metadata)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(
    ("asked", "features", "field", "gate"),
    [
        (ADMIN, NO_ADMIN, "exactly.adminAccess", "DRAAdminAccess"),
        (EITHER, NO_LIST, "firstAvailable", "DRAPrioritizedList"),
    ],
)
def test_fields_of_gates_that_are_off_are_dropped(
    asked: DeviceRequest, features: Features, field: str, gate: str, number: int
) -> None:
    """In claims, templates and Gangs alike, with one note for each request."""
    objects = entries(made_of(asked)[number])
    kept, (note,) = drop_disabled(objects, features)
    assert note.endswith(DROPPED.format(field, gate))
    for spec in (
        spec for entry in kept for spec in list_claim_specs(entry.decoded.value)
    ):
        (left,) = spec.devices.requests
        assert left.first_available == ()
        assert left.exactly is None or left.exactly.admin_access is None
    assert drop_disabled(objects, Features()) == (objects, [])


def test_a_stored_claim_keeps_what_it_was_stored_with() -> None:
    """It may be from before the gate was switched off."""
    objects = entries(claim(ADMIN, uid="u"), claim(request()))
    assert drop_disabled(objects, NO_ADMIN) == (objects, [])


INCLUDES = "device.attributes['x'].model.includes('a')"
SHAREABLE = "device.allowMultipleAllocations"


@pytest.mark.parametrize(
    ("expression", "features", "gate"),
    [
        (INCLUDES, Features(), "DRAListTypeAttributes"),
        (INCLUDES, Features(list_type_attributes=True), None),
        (SHAREABLE, Features(), None),
        (SHAREABLE, Features(consumable_capacity=False), "DRAConsumableCapacity"),
        ("device.attributes['x'].includes == 'a'", Features(), None),
        ("device.driver == 'a.includes(b)'", Features(), None),
    ],
)
def test_a_new_selector_may_use_only_what_is_on(
    expression: str, features: Features, gate: str | None
) -> None:
    """The API server does not compile it; one that is stored goes on to count."""
    new = [*made_of(request(select=[expression])), device_class("c", expression)]
    for value in new:
        faults = find_disabled_selectors(entries(value), features)
        assert faults.keys() == ({expression} if gate else set())
        assert all(text.endswith(f"the gate {gate} is off") for text in faults.values())
        stored = entries(with_uid(value, "u"))
        assert find_disabled_selectors(stored, features) == {}
