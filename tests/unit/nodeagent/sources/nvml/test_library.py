"""NVML through nvidia-ml-py: its shapes, without a GPU."""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

import pytest

from nodeagent.sources.nvml.calls import NvmlError, ask
from nodeagent.sources.nvml.gpus import (
    Fabric,
    GpuMemory,
    InstanceInfo,
    MigPlacement,
    PciInfo,
)
from nodeagent.sources.nvml.health import GpuEvent
from nodeagent.sources.nvml.library import Library, open_library

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is an extra")

HANDLE = ctypes.cast(0x1000, pynvml.c_nvmlDevice_t)


def stub(**functions: Any) -> Library:
    """Return the library with some of its functions answered; the rest is its own."""
    module = ModuleType("pynvml")
    module.__dict__.update(vars(pynvml))
    module.__dict__.update(functions)
    module.__dict__["nvmlDeviceGetHandleByIndex"] = lambda _: HANDLE
    library = Library(module)
    assert library.call("nvmlDeviceGetHandleByIndex_v2", 0) == "gpu-0"
    return library


def test_structs_become_plain_values() -> None:
    """By the fields that nvidia-ml-py declares: ours are among them."""
    memory, pci = pynvml.c_nvmlMemory_t(total=7), pynvml.nvmlPciInfo_t()
    pci.busId = b"00000000:A4:00.0"
    library = stub(
        nvmlDeviceGetMemoryInfo=lambda _: memory, nvmlDeviceGetPciInfo_v3=lambda _: pci
    )
    assert ask(library, GpuMemory, "nvmlDeviceGetMemoryInfo", "gpu-0") == GpuMemory(7)
    found = ask(library, PciInfo, "nvmlDeviceGetPciInfo_v3", "gpu-0")
    assert found.bus_id == "00000000:A4:00.0"


def test_handles_in_structs_become_tokens() -> None:
    data = pynvml.c_nvmlEventData_t(device=HANDLE, eventType=8, eventData=79)
    library = stub(nvmlEventSetWait_v2=lambda *_: data)
    event = ask(library, GpuEvent, "nvmlEventSetWait_v2", "events", 5000)
    assert (event.device, event.event_type, event.event_data) == ("gpu-0", 8, 79)


def test_a_place_of_an_instance() -> None:
    info = pynvml.c_nvmlGpuInstanceInfo_t(id=3, profileId=14)
    info.placement.start, info.placement.size = 2, 2
    library = stub(nvmlGpuInstanceGetInfo=lambda _: info)
    found = ask(library, InstanceInfo, "nvmlGpuInstanceGetInfo", "gpu-0/instance-3")
    assert found == InstanceInfo(3, 14, MigPlacement(2, 2))


def test_answers_by_reference_are_taken_from_there() -> None:
    def fill(_: Any, reference: Any) -> int:
        reference._obj.state = 3
        reference._obj.cliqueId = 7
        return 0

    library = stub(nvmlDeviceGetGpuFabricInfoV=fill)
    fabric = ask(library, Fabric, "nvmlDeviceGetGpuFabricInfoV", "gpu-0")
    assert (fabric.is_joined, fabric.clique_id) == (True, 7)


def test_errors_have_their_documented_names() -> None:
    def fail(_: Any) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    library = stub(nvmlDeviceGetUUID=fail)
    with pytest.raises(NvmlError, match="NVML_ERROR_GPU_IS_LOST"):
        library.call("nvmlDeviceGetUUID", "gpu-0")


def test_what_this_version_does_not_have_is_an_error() -> None:
    with pytest.raises(NvmlError, match="nvmlDeviceGetNothing"):
        stub().call("nvmlDeviceGetNothing", "gpu-0")


def test_without_the_driver_it_cannot_be_opened() -> None:
    """The error says why; with a driver there is nothing to see here."""
    try:
        open_library()
    except NvmlError as error:
        assert error.code.startswith("NVML_ERROR_")  # noqa: PT017 # either may be
