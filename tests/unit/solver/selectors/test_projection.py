"""Looks: equal for what an expression cannot tell apart, different for the rest."""

from __future__ import annotations

import pytest

from contracts.codec import Codec, encode
from contracts.device import Device, DeviceAttribute
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import Projection, find_faults, project, project_all
from solver.selectors.table import SelectorRows, SelectorTable, Verdict
from tests.builders import DRIVER, Version, attribute, device
from tests.builders.values import Value

X = f'device.attributes["{DRIVER}"].x == 1'
TEXTS = DeviceAttribute(string_values=("a",))


def seen(expression: str, found: Device, driver: str = DRIVER) -> Projection:
    return project(footprint_of(expression), driver, found)


def test_an_unread_attribute_does_not_show() -> None:
    """Devices that differ in it alone have one projection."""
    first = device("gpu-0", attributes={"x": 1, "uuid": "a"}, capacity={"m": 1})
    second = device("gpu-1", attributes={"x": 1, "uuid": "b"}, capacity={"m": 2})
    assert seen(X, first) == seen(X, second)


VALUES: list[Value] = [
    1,
    True,
    "1",
    Version("1.0.0"),
    "1.0.0",
    (1,),
    (True,),
    ("1",),
    (1, 1),
    ("1,1",),
    ("1", "1"),
    2,
    False,
    0,
    "",
    "-",
    "i1",
]


@pytest.mark.parametrize(
    "expression", [X, "device", f'size(device.attributes["{DRIVER}"]) == 1']
)
def test_values_of_different_types_look_different(expression: str) -> None:
    """In Python, True is 1 and 1 is 1.0; in CEL they are not."""
    looks = {seen(expression, device(attributes={"x": value})) for value in VALUES}
    assert len(looks | {seen(expression, device())}) == len(VALUES) + 1


def test_an_empty_list_is_not_an_absent_attribute() -> None:
    """An expression can tell them apart."""
    empty = Device(name=device().name, attributes={"x": DeviceAttribute(int_values=())})
    assert seen(X, empty) != seen(X, device())


def test_a_bare_name_belongs_to_the_drivers_domain() -> None:
    """As an expression would read it."""
    bare = device(attributes={"x": 1})
    full = device(attributes={f"{DRIVER}/x": 1})
    other = device(attributes={"other.io/x": 1})
    assert seen(X, bare) == seen(X, full) != seen(X, other)
    assert seen(X, bare, "other.io") != seen(X, bare)


def test_the_full_name_wins_over_a_bare_one() -> None:
    """As upstream has it."""
    both = device(attributes={"x": 2, f"{DRIVER}/x": 1})
    assert seen(X, both) == seen(X, device(attributes={f"{DRIVER}/x": 1}))


def test_capacity_shows_by_value_not_by_spelling() -> None:
    """Equal amounts are one projection, however they are written."""
    expression = f'device.capacity["{DRIVER}"].m.isInteger()'
    looks = {
        seen(expression, device(capacity={"m": amount}))
        for amount in ("1Gi", "1024Mi", 1073741824)
    }
    assert len(looks) == 1
    assert seen(expression, device(capacity={"m": "1G"})) not in looks


def test_sharing_shows_only_to_those_who_ask() -> None:
    """Others share one verdict."""
    shared, plain = device(allow_multiple_allocations=True), device()
    asked = "device.allowMultipleAllocations"
    assert seen(asked, shared) != seen(asked, plain)
    assert seen(X, shared) == seen(X, plain)
    assert seen(asked, device(allow_multiple_allocations=False)) == seen(asked, plain)


@pytest.mark.parametrize(
    "faulty",
    [
        DeviceAttribute(),
        attribute(Version("1.2")),
        attribute(Version("01.2.3")),
        DeviceAttribute(version_values=("1.0.0", "x")),
        DeviceAttribute(int_value=2**63),
        DeviceAttribute(int_value=2**63, string_value="x"),
        DeviceAttribute(int_values=(-(2**63) - 1,)),
    ],
)
def test_an_invalid_attribute_shows_to_every_expression(
    faulty: DeviceAttribute,
) -> None:
    """The device fails whoever looks at it."""
    broken = Device(name=device().name, attributes={"zzz": faulty})
    assert "attribute zzz: unsupported attribute value" in seen("true", broken)
    assert seen("true", broken) == seen(X, broken)
    assert seen("true", broken) != seen("true", device())
    assert list(find_faults([device(), broken])) == [1]


@pytest.mark.parametrize("expression", ["true", X, f"{X} && {X}", "device"])
def test_a_pool_is_projected_as_its_devices_are(expression: str) -> None:
    """One by one or all at once, faulty ones and repetitions among them."""
    sound = [device(f"gpu-{x}", attributes={"x": x}) for x in (1, "1", True, 1)]
    odd = Device(name=device().name, attributes={"x": DeviceAttribute(), "y": TEXTS})
    pool = (*sound, odd, Device(name=device().name, attributes={"y": TEXTS}), *sound)
    faults = find_faults(pool)
    assert list(faults) == [4]
    projected = project_all(footprint_of(expression), DRIVER, pool, faults)
    assert projected == tuple(seen(expression, item) for item in pool)
    assert projected == project_all(footprint_of(expression), DRIVER, pool, faults)


def test_a_table_survives_recording() -> None:
    """What is read back has the same verdicts."""
    rows = [(X, DRIVER, device(attributes={"x": value})) for value in (1, 2, "a")]
    verdicts = [Verdict(value=True), Verdict(value=False), Verdict(error="no")]
    table = SelectorTable().with_verdicts(rows, verdicts)
    codec: Codec[tuple[SelectorRows, ...]] = Codec(tuple[SelectorRows, ...], "rows")
    data = encode(table.rows())
    restored = SelectorTable.of_rows(codec.decode(data))
    assert encode(restored.rows()) == data
    for (expression, driver, found), verdict in zip(rows, verdicts, strict=True):
        assert restored.get(expression, seen(expression, found, driver)) == verdict
    assert restored.get(X, seen(X, device())) is None


def test_a_table_of_rows_holds_these_rows_alone() -> None:
    """Nothing is added on the way."""
    kept = (X, seen(X, device(attributes={"x": 1})))
    table = SelectorTable.of([(*kept, Verdict(value=True))])
    assert len(table) == 1
    assert table.get(*kept) == Verdict(value=True)
