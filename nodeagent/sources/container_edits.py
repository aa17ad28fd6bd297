"""Edits of containers for the devices that they hold."""

from __future__ import annotations

from contracts.ids import DeviceID
from nodeagent.cdi import ContainerEdits, name_variable


def name_device(device: DeviceID) -> ContainerEdits:
    """Name the device in a variable of the container's environment."""
    return ContainerEdits(env=(name_variable("DEVICE", device, str(device)),))


def join_edits(first: ContainerEdits, second: ContainerEdits) -> ContainerEdits:
    """Return what either says, the first before the second."""
    return ContainerEdits(
        **{
            field: (*getattr(first, field), *getattr(second, field))
            for field in ContainerEdits.__struct_fields__
        }
    )
