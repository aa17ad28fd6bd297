"""Makes all calls that the source makes once, and records them."""

from __future__ import annotations

from contextlib import suppress

from nodeagent.sources.nvml.calls import Nvml, NvmlError, find
from nodeagent.sources.nvml.gpus import read_driver, read_gpus
from nodeagent.sources.nvml.health import XID_EVENT, GpuHealth, read_health
from nodeagent.sources.nvml.recording import Recorder, write_recording

_NO_WAIT_MS = 100


def record(nvml: Nvml, origin: str) -> bytes:
    """Record a machine's GPUs, their health, and a wait for events.

    Raises:
        NvmlError: the library is gone.
    """
    recorder = Recorder(nvml)
    read_driver(recorder)
    gpus, _ = read_gpus(recorder)
    events = find(recorder, str, "nvmlEventSetCreate")
    for gpu in gpus:
        read_health(recorder, gpu, GpuHealth(), 0.0, 0.0)
        find(recorder, int, "nvmlDeviceGetSupportedEventTypes", gpu.token)
        if events is not None:
            with suppress(NvmlError):
                recorder.call("nvmlDeviceRegisterEvents", gpu.token, XID_EVENT, events)
    if events is not None:
        with suppress(NvmlError):
            recorder.call("nvmlEventSetWait_v2", events, _NO_WAIT_MS)
    return write_recording(recorder.finish(origin or "a machine with GPUs"))
