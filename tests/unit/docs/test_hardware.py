"""What docs/hardware.md says of settings is so."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from contracts.ids import NodeName
from nodeagent.sources.nvml.health import APPLICATION_XIDS
from nodeagent.sources.nvml.spec import NvmlSpec
from nodeagent.sources.source_file import read_sources
from nodeagent.sources.source_spec import DeviceSourceSpec
from nodeagent.sources.sysfs.spec import SysfsSpec

DOCUMENT = Path(__file__).parents[3] / "docs" / "hardware.md"


def test_the_example_is_a_sources_file() -> None:
    found = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    sources = read_sources(found[1], "hardware.md", NodeName("n1"))
    assert [type(source) for source in sources] == [SysfsSpec, SysfsSpec, NvmlSpec]


def test_every_setting_of_its_own_has_its_place() -> None:
    """A field that is added is described, or this fails."""
    common = set(DeviceSourceSpec.__struct_encode_fields__)
    sections = DOCUMENT.read_text().split("\n## ")
    for spec, name in ((SysfsSpec, "sysfs"), (NvmlSpec, "nvml")):
        (section,) = [text for text in sections if text.startswith(f"{name}\n")]
        missing = [
            field
            for field in msgspec.structs.fields(spec)
            if field.encode_name not in common
            and f"`{field.encode_name}`" not in section
        ]
        assert missing == []


def test_the_xids_of_applications_are_those() -> None:
    found = re.search(r"fault of the\s+GPU: ([0-9, and]+)\.", DOCUMENT.read_text())
    assert found is not None
    assert set(map(int, re.findall(r"\d+", found[1]))) == APPLICATION_XIDS
