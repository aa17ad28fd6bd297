"""When a GPU is bad, and when its application is."""

from __future__ import annotations

import pytest

from nodeagent.sources.nvml.calls import NvmlError
from nodeagent.sources.nvml.gpus import read_gpus
from nodeagent.sources.nvml.health import (
    APPLICATION_XIDS,
    XID_EVENT,
    GpuEvent,
    GpuHealth,
    judge_event,
    read_health,
)
from nodeagent.sources.nvml.recording import Answered, Player
from tests.builders.nvml import play

NOTHING: frozenset[int] = frozenset()
ECC = ("nvmlDeviceGetTotalEccErrors", ("gpu-0", 1, 0))
ROWS = ("nvmlDeviceGetRemappedRows", ("gpu-0",))


def event(xid: int, kind: int = XID_EVENT) -> GpuEvent:
    return GpuEvent("gpu-0", kind, xid)


@pytest.mark.parametrize("xid", [48, 63, 74, 79, 94, 95, 119, 999])
def test_an_xid_is_a_fault_with_its_number(xid: int) -> None:
    """Also one that nobody knows yet."""
    fault = judge_event(event(xid), NOTHING, 60.0, 1.0)
    assert fault is not None
    assert (fault.reason, fault.until_s) == (f"Xid{xid}", 61.0)


@pytest.mark.parametrize("xid", sorted(APPLICATION_XIDS))
def test_what_applications_bring_about_is_no_fault_of_the_gpu(xid: int) -> None:
    assert judge_event(event(xid), NOTHING, 60.0, 1.0) is None


def test_further_xids_may_be_ignored() -> None:
    assert judge_event(event(79), frozenset({79}), 60.0, 1.0) is None


def test_other_events_say_nothing() -> None:
    assert judge_event(event(79, kind=0x4), NOTHING, 60.0, 1.0) is None


def reasons(player: Player, before: GpuHealth | None = None) -> list[str]:
    gpu = read_gpus(play("hgx-h100"))[0][0]
    health = read_health(player, gpu, before or GpuHealth(), 60.0, 1.0)
    return [fault.reason for fault in health.faults]


def test_a_gpu_that_is_well() -> None:
    assert reasons(play("hgx-h100")) == []


def test_uncorrectable_errors_that_rise_are_held() -> None:
    gpu = read_gpus(play("hgx-h100"))[0][0]
    player = play("hgx-h100")
    player.answer(*ECC, Answered(result=5), Answered(result=7))
    first = read_health(player, gpu, GpuHealth(), 60.0, 0.0)
    assert first.faults == (), "errors from before: nobody knows how old they are"
    risen = read_health(player, gpu, first, 60.0, 5.0)
    assert [fault.reason for fault in risen.faults] == ["EccUncorrectable"]
    assert read_health(player, gpu, risen, 60.0, 65.0).faults == ()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([3, 1, 0, 0], []),  # remapped already
        ([0, 1, 1, 0], ["RowRemapPending"]),
        ([0, 9, 0, 1], ["RowRemapFailed"]),
        ([0, 9, 1, 1], ["RowRemapPending", "RowRemapFailed"]),
        ([1], []),
    ],
)
def test_rows_that_wait_for_a_reset(rows: list[int], expected: list[str]) -> None:
    player = play("hgx-h100")
    player.answer(*ROWS, Answered(result=rows))
    assert reasons(player) == expected


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("NVML_ERROR_GPU_IS_LOST", "GpuLost"),
        ("NVML_ERROR_RESET_REQUIRED", "ResetRequired"),
    ],
)
def test_a_gpu_that_is_gone_is_a_fault_of_its_own(code: str, reason: str) -> None:
    player = play("hgx-h100")
    player.answer(*ECC, Answered(error=code))
    assert reasons(player) == [reason]


def test_a_library_that_is_gone_is_no_fault_of_any_gpu() -> None:
    player = play("hgx-h100")
    player.answer(*ECC, Answered(error="NVML_ERROR_DRIVER_NOT_LOADED"))
    with pytest.raises(NvmlError):
        reasons(player)
