"""Names of vendors and models, by the file pci.ids where the node has one.

Format: https://pci-ids.ucw.cz, as Debian (`pci.ids`) and Fedora (`hwdata`) install it.
Read line by line, for the ids that are there: all of it would be 20 MiB of memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from nodeagent.sources.sysfs.parse import clean_text

MAX_LINES = 200_000
_VENDOR = re.compile(r"([0-9a-f]{4})  (.+)", re.ASCII)
_DEVICE = re.compile(r"\t([0-9a-f]{4})  (.+)", re.ASCII)

PciNames = Mapping[tuple[int, int | None], str]
"""By vendor and device; the vendor's own name by None."""


def find_names(lines: Iterable[str], ids: Collection[tuple[int, int]]) -> PciNames:
    """Find the names of some vendors and their devices."""
    vendors = {vendor for vendor, _ in ids}
    names: dict[tuple[int, int | None], str] = {}
    vendor: int | None = None
    for line in islice(lines, MAX_LINES):
        if match := _VENDOR.match(line):
            number = int(match[1], 16)
            vendor = number if number in vendors else None
            if vendor is not None:
                names[vendor, None] = clean_text(match[2])
        elif vendor is not None and (match := _DEVICE.match(line)):
            device = int(match[1], 16)
            if (vendor, device) in ids:
                names[vendor, device] = clean_text(match[2])
        elif line.startswith("C "):
            break  # classes follow, in the same shape
    return names
