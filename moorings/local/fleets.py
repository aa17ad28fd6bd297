"""The simulated fleets: their files, and the DeviceClasses that go with one."""

from __future__ import annotations

import re
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
_KIND = re.compile(r"^kind: *([A-Za-z]+) *$", re.MULTILINE)


def find_fleet(name: str) -> Path:
    """Find a fleet: one of ours by name, or a file.

    Raises:
        LocalStackError: there is no such fleet, or the file is of another kind.
    """
    ours = FLEETS / f"{name}.yaml"
    file = ours if ours.is_file() else Path(name)
    if not file.is_file():
        names = ", ".join(list_fleets())
        raise LocalStackError(
            "fleet", f"no file {name!r}; the shipped fleets are {names}"
        )
    kind = _KIND.search(file.read_text(encoding="utf-8", errors="replace"))
    if kind is not None and kind[1] != "Fleet":
        raise LocalStackError("fleet", f"{name}: must be a Fleet, and is a {kind[1]}")
    return file


def list_fleets() -> list[str]:
    """List the names of our fleets."""
    return sorted(path.stem for path in FLEETS.glob("*.yaml"))


def make_classes(fleet: Path) -> list[DeviceClass]:
    """Make a class for each driver of a fleet file, named after it.

    Raises:
        SettingsError: the file is no fleet.
    """
    return [make_class(driver) for driver in list_drivers(fleet)]


def list_drivers(fleet: Path) -> list[str]:
    """List the drivers of the devices of a fleet file.

    Raises:
        SettingsError: the file is no fleet.
    """
    shapes = read_fleet(fleet.read_text(), str(fleet)).nodes
    return sorted({str(spec.driver) for shape in shapes for spec in shape.devices})


def count_nodes(fleet: Path) -> int:
    """Count the nodes of a fleet file.

    Raises:
        SettingsError: the file is no fleet.
    """
    return sum(shape.count for shape in read_fleet(fleet.read_text(), str(fleet)).nodes)


def make_class(driver: str) -> DeviceClass:
    """Make a class for all devices of a driver, named after it."""
    selector = CELDeviceSelector(expression=f'device.driver == "{driver}"')
    return DeviceClass(
        metadata=ObjectMeta(name=driver),
        spec=DeviceClassSpec(selectors=(DeviceSelector(cel=selector),)),
    )
