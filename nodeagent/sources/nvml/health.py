"""When a GPU is bad: XIDs, uncorrectable errors, and memory that waits for a reset."""

from __future__ import annotations

from msgspec import Struct

from nodeagent.sources.nvml.calls import (
    GPU_IS_LOST,
    LIBRARY_GONE,
    RESET_REQUIRED,
    Nvml,
    NvmlError,
    find,
)
from nodeagent.sources.nvml.gpus import WHOLE, Gpu
from nodeagent.sources.rises import Rise, follow, is_recent

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""Xids that a faulty program causes on a healthy GPU: graphics engine exception,
page fault, reset channel, preemptive clean-up, video processor exception, context
switch time-out. Source: docs.nvidia.com/deploy/xid-errors; NVIDIA's own plugins ignore
the same."""
XID_EVENT = 0x8
"""nvmlEventTypeXidCriticalError."""
_UNCORRECTED = 1
_VOLATILE = 0
"""Since the driver was loaded (nvmlEccCounterType_t)."""


class GpuEvent(Struct, frozen=True, rename="camel"):
    """nvmlEventData_t."""

    device: str
    event_type: int
    event_data: int
    gpu_instance_id: int = WHOLE
    compute_instance_id: int = WHOLE


class GpuFault(Struct, frozen=True, kw_only=True):
    """A fault of a GPU, or of one of its partitions."""

    reason: str
    """A code, such as `Xid79`."""
    message: str
    gpu_instance: int = WHOLE
    until_s: float | None = None
    """When it is forgotten; None: it is read again each time."""


def judge_event(
    event: GpuEvent, ignored: frozenset[int], hold_s: float, now_s: float
) -> GpuFault | None:
    """Return the fault that an event means; None if it is not about the GPU."""
    xid = event.event_data
    if event.event_type != XID_EVENT or xid in APPLICATION_XIDS or xid in ignored:
        return None
    return GpuFault(
        reason=f"Xid{xid}",
        message=f"the driver reported XID {xid}",
        gpu_instance=event.gpu_instance_id,
        until_s=now_s + hold_s,
    )


class GpuHealth(Struct, frozen=True, kw_only=True):
    """The last reading of a GPU's health."""

    errors: Rise | None = None
    """Uncorrectable errors of its memory since the driver was loaded."""
    faults: tuple[GpuFault, ...] = ()


def read_health(
    nvml: Nvml, gpu: Gpu, before: GpuHealth, hold_s: float, now_s: float
) -> GpuHealth:
    """Read how a GPU is; one that is gone is a fault of that GPU alone.

    Raises:
        NvmlError: the library is gone.
    """
    try:
        count = find(
            nvml,
            int,
            "nvmlDeviceGetTotalEccErrors",
            gpu.token,
            _UNCORRECTED,
            _VOLATILE,
        )
        rows = find(nvml, tuple[int, ...], "nvmlDeviceGetRemappedRows", gpu.token)
        pages = find(nvml, int, "nvmlDeviceGetRetiredPagesPendingStatus", gpu.token)
    except NvmlError as error:
        if error.code in LIBRARY_GONE:
            raise
        return GpuHealth(errors=before.errors, faults=(_judge_loss(error),))
    errors = before.errors if count is None else follow(before.errors, count, now_s)
    faults: list[GpuFault] = []
    if errors is not None and is_recent(errors, hold_s, now_s):
        more = f"{errors.rise} more uncorrectable memory errors"
        faults.append(GpuFault(reason="EccUncorrectable", message=more))
    if rows is not None and len(rows) == 4:
        faults.extend(_judge_rows(is_pending=bool(rows[2]), has_failed=bool(rows[3])))
    if pages:
        message = "pages of memory are retired at the next reset"
        faults.append(GpuFault(reason="PageRetirementPending", message=message))
    return GpuHealth(errors=errors, faults=tuple(faults))


def _judge_rows(*, is_pending: bool, has_failed: bool) -> list[GpuFault]:
    """Judge the last two of: corrected, uncorrected, pending, failed."""
    faults: list[GpuFault] = []
    if is_pending:
        message = "rows of memory are remapped at the next reset"
        faults.append(GpuFault(reason="RowRemapPending", message=message))
    if has_failed:
        message = "rows of memory could not be remapped"
        faults.append(GpuFault(reason="RowRemapFailed", message=message))
    return faults


def _judge_loss(error: NvmlError) -> GpuFault:
    reasons = {GPU_IS_LOST: "GpuLost", RESET_REQUIRED: "ResetRequired"}
    return GpuFault(reason=reasons.get(error.code, "GpuLost"), message=str(error))
