"""Which PCI devices a source `sysfs` offers.

Nothing is offered that no selection names: an agent that hands out whatever it finds
would hand out the disk that the node runs from. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from nodeagent.sources.settings import SettingsPart
from nodeagent.sources.sysfs.pci import PciDevice


class PciKind(StrEnum):
    """The kind of a PCI device, by its class code."""

    ACCELERATOR = "accelerator"
    NIC = "nic"
    NVME = "nvme"
    OTHER = "other"


_KINDS = {
    0x0108: PciKind.NVME,
    0x0302: PciKind.ACCELERATOR,  # 3D controller
    0x0380: PciKind.ACCELERATOR,  # other display controller: AMD Instinct to MI250
    0x0B40: PciKind.ACCELERATOR,  # co-processor
    0x1200: PciKind.ACCELERATOR,  # processing accelerator
}
_NETWORK = 0x02

HexID = Annotated[str, Meta(pattern="^0x[0-9a-f]{4}$")]
ClassPrefix = Annotated[str, Meta(pattern="^0x[0-9a-f]{2}([0-9a-f]{2}){0,2}$")]


class LinkPolicy(StrEnum):
    """How to treat a link that is down."""

    BAD = "Bad"
    IGNORED = "Ignored"


class PciSelection(SettingsPart, frozen=True, kw_only=True):
    """Devices that are offered: all that is given must hold.

    An empty list holds for every device.
    """

    kind: PciKind | None = None
    class_prefix: ClassPrefix | None = None
    """Of the class code: `0x02` is every network controller, `0x010802` NVMe."""
    vendors: tuple[HexID, ...] = ()
    devices: tuple[HexID, ...] = ()
    kernel_drivers: tuple[str, ...] = ()
    virtual_functions: bool | None = None
    """Only functions that SR-IOV made, or none of them."""


def kind_of(device: PciDevice) -> PciKind:
    """Return the kind of a device."""
    if device.class_code >> 16 == _NETWORK:
        return PciKind.NIC
    return _KINDS.get(device.class_code >> 8, PciKind.OTHER)


def is_selected(device: PciDevice, selections: Sequence[PciSelection]) -> bool:
    """True if any of the selections matches the device."""
    return any(_is_match(device, selection) for selection in selections)


def _is_match(device: PciDevice, selection: PciSelection) -> bool:
    class_code = f"0x{device.class_code:06x}"
    return (
        (selection.kind is None or selection.kind is kind_of(device))
        and class_code.startswith(selection.class_prefix or "")
        and _is_one_of(f"0x{device.vendor:04x}", selection.vendors)
        and _is_one_of(f"0x{device.device:04x}", selection.devices)
        and _is_one_of(device.kernel_driver, selection.kernel_drivers)
        and selection.virtual_functions in {None, device.is_virtual_function}
    )


def _is_one_of(value: str, allowed: tuple[str, ...]) -> bool:
    return not allowed or value in allowed
