"""The DeviceClasses of a simulated fleet: one for each driver, named after it."""

from __future__ import annotations

from pathlib import Path

from contracts.claim import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from contracts.meta import ObjectMeta
from nodeagent.sources.fleet import read_fleet


def classes_of(fleet: Path) -> list[DeviceClass]:
    """Make a class for each driver of a fleet file.

    Raises:
        FleetError: the file is no fleet.
    """
    shapes = read_fleet(fleet.read_text(), str(fleet)).nodes
    drivers = {spec.driver for shape in shapes for spec in shape.devices}
    return [device_class(str(driver)) for driver in sorted(drivers)]


def device_class(driver: str) -> DeviceClass:
    """Make a class of all devices of a driver."""
    selector = CELDeviceSelector(expression=f'device.driver == "{driver}"')
    return DeviceClass(
        metadata=ObjectMeta(name=driver),
        spec=DeviceClassSpec(selectors=(DeviceSelector(cel=selector),)),
    )
