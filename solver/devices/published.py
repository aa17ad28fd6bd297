"""The names under which devices publish an attribute.

A bare name is of the driver's own domain, so what is asked for by its full name may
be published under either; the full name wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from contracts.device import Device, DeviceAttribute


def names_of(driver: str, attribute: str) -> tuple[str, ...]:
    """List the names that an attribute may have on a driver's devices, first one first.

    Source: k8s.io/dynamic-resource-allocation/structured, lookupAttribute.
    """
    domain, slash, identifier = attribute.partition("/")
    return (attribute, identifier) if slash and domain == driver else (attribute,)


def find_published(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """Look an attribute of a device up; None: it has none of that name."""
    for each in names_of(driver, name):
        attribute = device.attributes.get(each)
        if attribute is not None:
            return attribute
    return None


def list_published(
    devices: Sequence[Device], driver: str, name: str
) -> list[DeviceAttribute | None]:
    """Look up an attribute of several devices, each as `find_published` does."""
    first, *others = names_of(driver, name)
    found = [device.attributes.get(first) for device in devices]
    for other in others:
        found = [
            device.attributes.get(other) if known is None else known
            for known, device in zip(found, devices, strict=True)
        ]
    return found
