"""The settings of a source `nvml` in the source file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class NvmlSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """What a source `nvml` offers, and when a GPU is bad."""

    driver: Annotated[str, Meta(min_length=1, max_length=63)]
    """The DRA driver of its devices."""
    recording: str = ""
    """Play this record of NVML's answers in place of the library: for tests."""
    root: str = "/sys"
    """The tree that says on which PCIe root and NUMA node a GPU is."""
    proc: str = "/proc"
    """Where NVIDIA's driver says which device node is which MIG partition's."""
    mounts: tuple[str, ...] = ()
    """Files and folders of the node that containers see, read-only, at the same place:
    the driver's libraries, where no NVIDIA container runtime adds them."""
    ignore_xids: tuple[int, ...] = ()
    """Further XIDs that say nothing about the GPU."""
    health_s: Annotated[float, Meta(gt=0)] = 5.0
    """How often ECC counters and remapped rows are read; XIDs are heard at once."""
    rescan_s: Annotated[float, Meta(gt=0)] = 30.0
    """How often all GPUs and partitions are looked at again."""
    hold_s: Annotated[float, Meta(ge=0)] = 3600.0
    """How long a GPU counts as bad after an XID or an uncorrectable error."""
