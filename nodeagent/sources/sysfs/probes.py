"""How a device's files say that it is not well.

A probe is one file that is read over and over. States are looked at with every reading
and say how it is now; counters, which may cost the device some work, are read now and
then, and a rise counts as bad for a while: the error is over when it is seen. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from msgspec import Struct

from nodeagent.sources.rises import Rise, follow, is_recent
from nodeagent.sources.sysfs import parse
from nodeagent.sources.sysfs.functions import Functions
from nodeagent.sources.sysfs.selection import LinkPolicy


class Fault(Struct, frozen=True):
    """A fault of a device."""

    reason: str
    """A code, such as `LinkDown`."""
    message: str


class ErrorCounter(Enum):
    """Errors that are counted; any rise is bad."""

    AER_FATAL = "AerFatal"
    AER_NONFATAL = "AerNonFatal"
    ECC_UNCORRECTABLE = "EccUncorrectable"


_COUNTS: Mapping[ErrorCounter, Callable[[str], int | None]] = {
    ErrorCounter.AER_FATAL: lambda text: parse.parse_aer_total(text, "FATAL"),
    ErrorCounter.AER_NONFATAL: lambda text: parse.parse_aer_total(text, "NONFATAL"),
    ErrorCounter.ECC_UNCORRECTABLE: parse.parse_uncorrectable,
}
_WORDS = {
    ErrorCounter.AER_FATAL: "fatal PCIe errors",
    ErrorCounter.AER_NONFATAL: "uncorrectable PCIe errors",
    ErrorCounter.ECC_UNCORRECTABLE: "uncorrectable memory errors",
}


class StateKind(Enum):
    """The kind of state in a file."""

    INTERFACE = "operstate"
    PORT = "port"
    CONTROLLER = "controller"


class StateProbe(Struct, frozen=True):
    """A file that says how something is now."""

    state: StateKind
    folder: str
    file: str
    subject: str
    """Its name for people, such as `eth0` or `mlx5_0 port 1`."""


class CounterProbe(Struct, frozen=True):
    """A file that counts errors."""

    counter: ErrorCounter
    folder: str
    file: str


def list_state_probes(
    functions: Functions, link_down: LinkPolicy
) -> Iterator[StateProbe]:
    """List which files say how a device is."""
    if link_down is LinkPolicy.BAD:
        for interface in functions.interfaces:
            yield StateProbe(
                StateKind.INTERFACE, interface.path, "operstate", interface.name
            )
        for rdma in functions.rdma:
            for port in rdma.ports:
                subject = f"{rdma.name} port {port.number}"
                yield StateProbe(StateKind.PORT, port.path, "state", subject)
    for controller in functions.controllers:
        yield StateProbe(
            StateKind.CONTROLLER, controller.path, "state", controller.name
        )


def list_counter_probes(
    path: str, ras_files: tuple[str, ...]
) -> Iterator[CounterProbe]:
    """List which files count a device's errors; `ras_files` are those in `ras/`."""
    yield CounterProbe(ErrorCounter.AER_FATAL, path, "aer_dev_fatal")
    yield CounterProbe(ErrorCounter.AER_NONFATAL, path, "aer_dev_nonfatal")
    for file in ras_files:
        if file.endswith("_err_count"):
            yield CounterProbe(ErrorCounter.ECC_UNCORRECTABLE, f"{path}/ras", file)


def judge_state(probe: StateProbe, text: str) -> Fault | None:
    """Return the fault that a state shows; an unknown state is no fault."""
    if probe.state is StateKind.INTERFACE:
        if text in {"down", "lowerlayerdown", "notpresent"}:
            return Fault("LinkDown", f"{probe.subject} is {text}")
        return None
    if probe.state is StateKind.PORT:
        return _judge_port(probe, text)
    if text == "live":
        return None
    return Fault("NvmeNotLive", f"{probe.subject} is {parse.clean_text(text)}")


def _judge_port(probe: StateProbe, text: str) -> Fault | None:
    state = parse.parse_port_state(text)
    # 0 NOP, 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER (include/rdma/ib_verbs.h)
    if state is None or state[0] in {0, 4, 5}:
        return None
    number, word = state
    reason = "LinkDown" if number == 1 else "PortNotActive"
    return Fault(reason, f"{probe.subject} is {word}")


def count(
    probe: CounterProbe, before: Rise | None, text: str, now_s: float
) -> Rise | None:
    """Take one reading of a counter into account; what is no number changes nothing."""
    number = _COUNTS[probe.counter](text)
    return before if number is None else follow(before, number, now_s)


def judge_counter(
    probe: CounterProbe, rise: Rise, hold_s: float, now_s: float
) -> Fault | None:
    """Return the fault of a counter that rose less than `hold_s` ago."""
    if not is_recent(rise, hold_s, now_s):
        return None
    more = f"{rise.rise} more {_WORDS[probe.counter]}"
    return Fault(probe.counter.value, f"{more} ({probe.file} is {rise.count})")
