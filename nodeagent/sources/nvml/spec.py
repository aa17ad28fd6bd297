"""The settings of a source `nvml` in the sources file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nodeagent.sources.source_spec import DeviceSourceSpec, Seconds


class NvmlSpec(DeviceSourceSpec, frozen=True, kw_only=True, tag="nvml"):
    """Settings of a source `nvml`: paths, and when a GPU is bad.

    A node without NVIDIA's driver has no devices of it.
    """

    recording: str = ""
    """A record of NVML's answers that is played in place of the library."""
    root: str = "/sys"
    """The tree that says on which PCIe root and NUMA node a GPU is."""
    proc: str = "/proc"
    """Where NVIDIA's driver says which device node is which MIG partition's."""
    ignore_xids: Annotated[tuple[int, ...], Meta(max_length=256)] = ()
    """Further XIDs that say nothing about the GPU."""
    health_seconds: Seconds = 5.0
    """How often ECC counters and remapped rows are read; XIDs are heard at once."""
    rescan_seconds: Seconds = 30.0
    """How often all GPUs and partitions are read again."""
    hold_seconds: Annotated[float, Meta(ge=0)] = 3600.0
    """How long a GPU counts as bad after an XID or an uncorrectable error."""
