"""What a selection names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeagent.sources.sysfs.pci import PciDevice
from nodeagent.sources.sysfs.selection import (
    PciKind,
    PciSelection,
    is_selected,
    kind_of,
)
from nodeagent.sources.sysfs.spec import SysfsSpec

COMMON = {"kind": "sysfs", "name": "pci", "driver": "pci.example.com"}
NVME = PciDevice(
    address="0000:00:02.0",
    vendor=0x8086,
    device=0x0953,
    class_code=0x010802,
    kernel_driver="nvme",
)


@pytest.mark.parametrize(
    ("class_code", "kind"),
    [
        (0x010802, PciKind.NVME),
        (0x020000, PciKind.NIC),
        (0x020700, PciKind.NIC),
        (0x030200, PciKind.ACCELERATOR),
        (0x038000, PciKind.ACCELERATOR),
        (0x120000, PciKind.ACCELERATOR),
        (0x030000, PciKind.OTHER),  # the VGA of a board's management
        (0x060400, PciKind.OTHER),
    ],
)
def test_kinds_follow_from_class_codes(class_code: int, kind: PciKind) -> None:
    assert kind_of(msgspec.structs.replace(NVME, class_code=class_code)) is kind


@pytest.mark.parametrize(
    ("selection", "matches"),
    [
        ({}, True),
        ({"kind": "nvme"}, True),
        ({"kind": "nic"}, False),
        ({"classPrefix": "0x0108"}, True),
        ({"classPrefix": "0x02"}, False),
        ({"vendors": ["0x144d", "0x8086"]}, True),
        ({"vendors": ["0x144d"]}, False),
        ({"kind": "nvme", "devices": ["0x0a54"]}, False),
        ({"kernelDrivers": ["vfio-pci"]}, False),
        ({"virtualFunctions": True}, False),
        ({"virtualFunctions": False}, True),
    ],
)
def test_all_that_is_given_must_hold(selection: dict[str, Any], matches: bool) -> None:
    assert is_selected(NVME, [msgspec.convert(selection, PciSelection)]) is matches


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"select": []}, r"\$\.select"),
        ({}, "select"),
        ({"select": [{"vendor": "0x8086"}]}, "vendor"),
        ({"select": [{"vendors": ["8086"]}]}, r"vendors\[0\]"),
        ({"select": [{}], "countersSeconds": 0}, "countersSeconds"),
    ],
)
def test_settings_that_break_a_rule_name_the_field(
    settings: dict[str, Any], field: str
) -> None:
    """Nothing is offered by default: what is offered is written down."""
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert({**COMMON, **settings}, SysfsSpec)
