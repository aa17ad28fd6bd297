"""Names by the file pci.ids."""

from __future__ import annotations

from nodeagent.sources.sysfs.pci_ids import find_names

LINES = """\
# comment
10de  NVIDIA Corporation
\t2330  GH100 [H100 SXM5 80GB]
\t\t10de 16c1  a subsystem
\t2331  GH100 [H100 PCIe]
15b3  Mellanox Technologies
\t2330  not NVIDIA's
C 10  Encryption controller
\t2330  a class
""".splitlines(keepends=True)


def test_only_what_is_asked_for_is_kept() -> None:
    """A name counts for the vendor above it; classes and subsystems are others."""
    assert find_names(LINES, {(0x10DE, 0x2330), (0x8086, 0x1)}) == {
        (0x10DE, None): "NVIDIA Corporation",
        (0x10DE, 0x2330): "GH100 [H100 SXM5 80GB]",
    }
