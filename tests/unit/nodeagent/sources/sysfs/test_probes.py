"""How files say that a device is not well."""

from __future__ import annotations

import pytest

from nodeagent.sources.rises import Rise
from nodeagent.sources.sysfs.functions import (
    Controller,
    Functions,
    Interface,
    RdmaDevice,
    RdmaPort,
)
from nodeagent.sources.sysfs.probes import (
    CounterProbe,
    ErrorCounter,
    Fault,
    StateKind,
    StateProbe,
    count,
    judge_counter,
    judge_state,
    list_counter_probes,
    list_state_probes,
)
from nodeagent.sources.sysfs.selection import LinkPolicy

FUNCTIONS = Functions(
    interfaces=(Interface(name="eth0", path="i"),),
    rdma=(RdmaDevice(name="mlx5_0", ports=(RdmaPort(path="p", number=1),)),),
    controllers=(Controller(name="nvme0", path="c"),),
)
FATAL = CounterProbe(ErrorCounter.AER_FATAL, "d", "aer_dev_fatal")
HOLD_S = 60.0


@pytest.mark.parametrize(
    ("state", "text", "reason"),
    [
        (StateKind.INTERFACE, "up", ""),
        (
            StateKind.INTERFACE,
            "unknown",
            "",
        ),  # drivers that do not know, such as virtio
        (StateKind.INTERFACE, "down", "LinkDown"),
        (StateKind.INTERFACE, "lowerlayerdown", "LinkDown"),
        (StateKind.PORT, "4: ACTIVE", ""),
        (StateKind.PORT, "5: ACTIVE_DEFER", ""),
        (StateKind.PORT, "1: DOWN", "LinkDown"),
        (StateKind.PORT, "2: INIT", "PortNotActive"),
        (StateKind.PORT, "garbage", ""),
        (StateKind.CONTROLLER, "live", ""),
        (StateKind.CONTROLLER, "dead", "NvmeNotLive"),
        (StateKind.CONTROLLER, "resetting", "NvmeNotLive"),
    ],
)
def test_states(state: StateKind, text: str, reason: str) -> None:
    fault = judge_state(StateProbe(state, "folder", "file", "subject"), text)
    assert (fault.reason if fault else "") == reason


def test_links_may_be_ignored() -> None:
    """A port without a cable is no fault then; the controller still is looked at."""
    every = list(list_state_probes(FUNCTIONS, LinkPolicy.BAD))
    assert [probe.subject for probe in every] == ["eth0", "mlx5_0 port 1", "nvme0"]
    others = list(list_state_probes(FUNCTIONS, LinkPolicy.IGNORED))
    assert [probe.subject for probe in others] == ["nvme0"]


def test_memory_errors_are_counted_where_amdgpu_counts_them() -> None:
    probes = list_counter_probes("d", ("features", "umc_err_count"))
    assert [(probe.folder, probe.file) for probe in probes] == [
        ("d", "aer_dev_fatal"),
        ("d", "aer_dev_nonfatal"),
        ("d/ras", "umc_err_count"),
    ]


def judged(*texts: str) -> Fault | None:
    """Return the fault after readings a second apart."""
    counted: Rise | None = None
    for moment, text in enumerate(texts):
        counted = count(FATAL, counted, text, float(moment))
    if counted is None:
        return None
    return judge_counter(FATAL, counted, HOLD_S, float(len(texts)))


def test_errors_from_before_are_no_fault() -> None:
    """Nobody knows how old they are: counting begins with the first reading."""
    assert judged("TOTAL_ERR_FATAL 7", "TOTAL_ERR_FATAL 7") is None


def test_a_rise_is_a_fault_that_says_how_many() -> None:
    fault = judged("TOTAL_ERR_FATAL 7", "TOTAL_ERR_FATAL 8", "TOTAL_ERR_FATAL 10")
    assert fault == Fault("AerFatal", "3 more fatal PCIe errors (aer_dev_fatal is 10)")


def test_a_rise_is_held_for_a_while() -> None:
    """The error is over when it is seen."""
    first = count(FATAL, None, "TOTAL_ERR_FATAL 0", 0.0)
    risen = count(FATAL, first, "TOTAL_ERR_FATAL 1", 10.0)
    assert risen is not None
    assert judge_counter(FATAL, risen, HOLD_S, 10.0 + HOLD_S - 0.1)
    assert judge_counter(FATAL, risen, HOLD_S, 10.0 + HOLD_S) is None


def test_a_counter_that_falls_begins_anew() -> None:
    """The device was reset, or its driver loaded again."""
    assert judged("TOTAL_ERR_FATAL 7", "TOTAL_ERR_FATAL 8", "TOTAL_ERR_FATAL 0") is None


def test_what_is_no_counter_changes_nothing() -> None:
    assert judged("garbage") is None
    assert judged("TOTAL_ERR_FATAL 1", "garbage", "TOTAL_ERR_FATAL 2") is not None
