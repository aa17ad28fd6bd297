"""A class or request that no device of the input can serve is found by its rule."""

from __future__ import annotations

import pytest

from contracts.allocation import MAX_DEVICES
from contracts.claim import DeviceRequest
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.requests import check_claim, check_class
from tests import builders
from tests.builders.lint import lint_claim

DEVICES = builders.devices(2, attributes={"model": "a"}, capacity={"memory": "8Gi"})
MODEL_B = f'device.attributes["{builders.DRIVER}"].model == "b"'
NO_KEY = f'device.attributes["{builders.DRIVER}"].colour == "b"'


def findings(*requests: DeviceRequest, with_devices: bool = True) -> list[Finding]:
    """Check a claim of these requests."""
    claim, matches = lint_claim(*requests, devices=DEVICES if with_devices else ())
    return list(check_claim(claim, matches))


def test_a_request_that_can_be_served_is_right() -> None:
    """Also one that uses all that a device has."""
    assert findings(builders.request(capacity={"memory": "8Gi"})) == []


@pytest.mark.parametrize(
    ("request_", "rule", "field"),
    [
        (builders.request(device_class="none"), LintRule.UNKNOWN_CLASS, "exactly"),
        (
            builders.request(select=[NO_KEY]),
            LintRule.SELECTOR_ERROR,
            "exactly.selectors[0]",
        ),
        (builders.request(select=[MODEL_B]), LintRule.REQUEST_EMPTY, "exactly"),
        (
            builders.request(capacity={"memory": "9Gi"}),
            LintRule.CAPACITY,
            "exactly.capacity",
        ),
        (
            builders.request(
                first_available=[
                    builders.sub_request("one"),
                    builders.sub_request("two"),
                ]
            ),
            LintRule.ALTERNATIVE_UNREACHABLE,
            "firstAvailable[1]",
        ),
    ],
)
def test_a_mistake_is_found_by_its_rule(
    request_: DeviceRequest, rule: LintRule, field: str
) -> None:
    """In the field that is to be changed."""
    (finding,) = findings(request_)
    path = f"spec.devices.requests[0].{field}"
    assert (finding.rule, finding.field) == (rule, path)


def test_alternatives_of_classes_that_are_missing_are_not_called_equal() -> None:
    """What they would select is not known; each class is named once."""
    found = findings(
        builders.request(
            first_available=[
                builders.sub_request("one", device_class="new"),
                builders.sub_request("two", device_class="old"),
            ]
        )
    )
    assert [(each.rule, each.message) for each in found] == [
        (LintRule.UNKNOWN_CLASS, "'new' does not exist"),
        (LintRule.UNKNOWN_CLASS, "'old' does not exist"),
    ]


def test_without_devices_nothing_is_said_of_matches() -> None:
    """Files of claims alone are as good as they can be."""
    assert findings(builders.request(select=[MODEL_B]), with_devices=False) == []


def test_a_claim_asks_for_so_many_devices_at_most() -> None:
    """Of alternatives the smallest counts: it may be had."""
    request = builders.request(count=MAX_DEVICES)
    assert findings(request) == []
    (finding,) = findings(request, builders.request("more"))
    assert finding.rule is LintRule.DEVICE_LIMIT


def test_a_class_that_matches_nothing_is_named() -> None:
    """A selector that fails is an error, one that matches nothing a warning."""
    empty = builders.device_class("empty", MODEL_B)
    failing = builders.device_class("failing", NO_KEY)
    _, matches = lint_claim(devices=DEVICES, classes=[empty, failing])
    (finding,) = check_class(empty, matches)
    assert (finding.rule, finding.severity) == (LintRule.CLASS_EMPTY, Severity.WARNING)
    (finding,) = check_class(failing, matches)
    assert (finding.rule, finding.field) == (
        LintRule.SELECTOR_ERROR,
        "spec.selectors[0]",
    )
