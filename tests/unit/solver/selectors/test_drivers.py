"""Which driver a selector insists on."""

from __future__ import annotations

import pytest

from solver.selectors.drivers import driver_of


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu"',
        "'gpu' == device.driver",
        'device.driver == "gpu" && device.attributes["gpu"].x > 1',
        'has(device.attributes["gpu"].x) && device.driver == "gpu" // and a remark',
    ],
)
def test_a_term_of_a_conjunction_names_the_driver(expression: str) -> None:
    assert driver_of(expression) == "gpu"


@pytest.mark.parametrize(
    "expression",
    [
        "true",
        "",
        "(",
        'device.driver != "gpu"',
        '!(device.driver == "gpu")',
        'device.driver == "gpu" || true',
        'true ? true : device.driver == "gpu"',
        'device.driver == "gpu" == false',
        'device.driver == "g\\u0070u"',
        "device.driver == x",
        "'" + "x" * 11_000 + "'",
    ],
)
def test_whatever_is_said_otherwise_may_be_any_driver(expression: str) -> None:
    assert driver_of(expression) is None
