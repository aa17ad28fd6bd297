"""The simulated fleets: their files, and the DeviceClasses that go with one."""

from __future__ import annotations

from pathlib import Path

from contracts.claim import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from contracts.meta import ObjectMeta
from moorings.errors import LocalStackError
from nodeagent.sources.fleet import read_fleet

FLEETS = Path(__file__).parent.parent / "fleets"


def find_fleet(name: str) -> Path:
    """Find a fleet: one of ours by name, or a file.

    Raises:
        LocalStackError: there is no such fleet.
    """
    ours = FLEETS / f"{name}.yaml"
    file = ours if ours.is_file() else Path(name)
    if not file.is_file():
        names = ", ".join(sorted(path.stem for path in FLEETS.glob("*.yaml")))
        raise LocalStackError("fleet", f"no file {name!r}, and ours are: {names}")
    return file


def make_classes(fleet: Path) -> list[DeviceClass]:
    """Make a class for each driver of a fleet file, named after it.

    Raises:
        SettingsError: the file is no fleet.
    """
    shapes = read_fleet(fleet.read_text(), str(fleet)).nodes
    drivers = {spec.driver for shape in shapes for spec in shape.devices}
    return [_make_class(str(driver)) for driver in sorted(drivers)]


def count_nodes(fleet: Path) -> int:
    """Count the nodes of a fleet file.

    Raises:
        SettingsError: the file is no fleet.
    """
    return sum(shape.count for shape in read_fleet(fleet.read_text(), str(fleet)).nodes)


def _make_class(driver: str) -> DeviceClass:
    selector = CELDeviceSelector(expression=f'device.driver == "{driver}"')
    return DeviceClass(
        metadata=ObjectMeta(name=driver),
        spec=DeviceClassSpec(selectors=(DeviceSelector(cel=selector),)),
    )
