"""Selectors are held against all devices of the input, and faults are counted."""

from __future__ import annotations

from contracts.claim import DeviceRequest
from contracts.ids import NodeName
from moorings.lint.matches import Matches
from solver.problem.gangs import SubrequestPart
from tests import builders
from tests.builders.lint import lint_claim

DEVICES = (
    builders.device("a", attributes={"model": "x"}, capacity={"memory": "8Gi"}),
    builders.device("b", attributes={"model": "y"}, capacity={"memory": "4Gi"}),
    builders.device("c", capacity={"memory": "4Gi"}),
)
MODEL = f'device.attributes["{builders.DRIVER}"].model == "y"'
PREFIX = f"{builders.DRIVER}/{builders.NODE}"


def held(request: DeviceRequest) -> tuple[SubrequestPart, Matches]:
    """Hold a request against the devices."""
    claim, matches = lint_claim(request, devices=DEVICES)
    return claim.part.requests[0].alternatives[0], matches


def test_devices_that_pass_are_named() -> None:
    """And counted are all there are."""
    subrequest, matches = held(builders.request())
    passing = matches.of(subrequest.selectors)
    assert passing.devices == (f"{PREFIX}/a", f"{PREFIX}/b", f"{PREFIX}/c")
    assert (passing.faults, matches.total) == ({}, 3)


def test_a_selector_that_fails_on_some_says_on_which() -> None:
    """By its place in the list, behind those of the class."""
    subrequest, matches = held(builders.request(select=[MODEL]))
    passing = matches.of(subrequest.selectors)
    assert passing.devices == (f"{PREFIX}/b",)
    assert list(passing.faults) == [1]
    assert passing.faults[1].startswith(
        f"fails on 1 of 3 devices, such as {PREFIX}/c: "
    )


def test_a_selector_that_does_not_compile_fails_on_no_device_in_particular() -> None:
    """The compiler's words are enough."""
    subrequest, matches = held(builders.request(select=["device."]))
    fault = matches.of(subrequest.selectors).faults[1]
    assert fault == "CEL compile error: device."


def test_capacity_is_of_devices_that_pass() -> None:
    """The largest may be another."""
    assert MODEL in held(builders.request(select=[MODEL]))[0].selectors
    for amount, select, can_be_had in (
        ("8Gi", (), True),
        ("9Gi", (), False),
        ("4Gi", (MODEL,), True),
        ("8Gi", (MODEL,), False),
    ):
        request = builders.request(select=select, capacity={"memory": amount})
        subrequest, matches = held(request)
        assert matches.has_capacity(subrequest) is can_be_had


def test_devices_of_a_node_come_with_their_driver_and_values() -> None:
    """A device without the attribute has no value."""
    subrequest, matches = held(builders.request())
    devices = matches.list_devices(NodeName(builders.NODE), subrequest)
    assert [(driver, device.name) for driver, device in devices] == [
        (builders.DRIVER, name) for name in ("a", "b", "c")
    ]
    name = f"{builders.DRIVER}/model"
    values = [matches.read_values(subrequest, name, *device) for device in devices]
    assert [len(of_device) for of_device in values] == [1, 1, 0]
    assert values[0] != values[1]
