"""Checks that nats-server keeps what it acknowledged, and has room. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from contracts.counts import counted
from contracts.streams import SETTINGS_VERSION, STREAMS
from moorings.doctor.facts import LOCAL_STACK, BusFacts, Reading, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.views.names import name_some
from runtime.bus.monitor import FULL_DISK
from runtime.bus.streams import StreamHealth

OLDEST = (2, 12)
"""The first nats-server with atomic batches, which decisions are."""
TESTED = (2, 15)
ENOUGH_PAYLOAD = 8 << 20
"""Bytes of the largest message; more is refused where it is read."""
FULL, FILLING = 0.95, 0.70
_ALWAYS = "always"
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
_GIB = 1 << 30


def check_bus(facts: BusFacts) -> Iterator[CheckLine]:
    """Check the server, its disk, and each stream."""
    yield _check_version(facts)
    streams = {
        name: health
        for name, health in facts.streams.items()
        if not isinstance(health, Unread)
    }
    yield from _check_there(facts.streams)
    if streams:
        yield _check_replicas(streams, is_local=facts.server == LOCAL_STACK)
        yield from _check_copies(streams)
        yield _check_settings(streams)
        yield _check_room(streams)
    yield from _check_monitor(facts)


def _check_version(facts: BusFacts) -> CheckLine:
    name = "nats.version"
    found = _NUMBERS.match(facts.version)
    said = f"nats-server {facts.version or 'of no known version'} at {facts.server}"
    if found is None:
        return warn(name, said, "ask whoever runs it")
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        return fail(name, f"{said} has no atomic batches", "upgrade to 2.15")
    if version < TESTED:
        return warn(name, f"{said}; Moorings is tested with 2.15", "upgrade to 2.15")
    return ok(name, said)


def _check_there(streams: Mapping[str, Reading[StreamHealth]]) -> Iterator[CheckLine]:
    """Report which streams could not be read, by reason."""
    reasons: dict[Unread, list[str]] = {}
    for name, health in streams.items():
        if isinstance(health, Unread):
            reasons.setdefault(health, []).append(name)
    for reading, names in reasons.items():
        said = f"{name_some(names)}: {reading.why}"
        if reading.remedy:
            yield fail("nats.streams", said, reading.remedy)
        else:
            yield warn(
                "nats.streams",
                f"unknown: {said}",
                "use the bus user `viewer`, which may read it",
            )


def _check_replicas(
    streams: Mapping[str, StreamHealth], *, is_local: bool
) -> CheckLine:
    name = "nats.replicas"
    counts = {health.replicas for health in streams.values()}
    if counts == {1} and is_local:
        return ok(name, "one copy of each stream, as `moorings up` has one server")
    if counts == {1}:
        return warn(
            name,
            "each stream is on one server: losing its disk loses all messages",
            "three servers, and SOLVER_REPLICAS=3, PUBLISHER_REPLICAS=3 (k8s/base)",
        )
    few = [stream for stream, health in streams.items() if health.replicas < 3]
    if few:
        return warn(
            name,
            f"fewer than three copies of {name_some(few)}: they stop when one "
            "server is down",
            "SOLVER_REPLICAS=3 and PUBLISHER_REPLICAS=3, then restart one of them",
        )
    return ok(name, f"{', '.join(map(str, sorted(counts)))} copies of each stream")


def _check_copies(streams: Mapping[str, StreamHealth]) -> Iterator[CheckLine]:
    name = "nats.copies"
    unled = [stream for stream, health in streams.items() if not health.led]
    lagging = {
        stream: ", ".join(health.lagging)
        for stream, health in streams.items()
        if health.lagging
    }
    if unled:
        yield fail(
            name,
            f"{name_some(unled)} without a leader: nothing is stored there",
            "bring back the servers that are down: a majority is needed",
        )
    if lagging:
        listed = [f"{stream} on {servers}" for stream, servers in lagging.items()]
        yield warn(
            name,
            f"copies offline or behind: {name_some(listed)}",
            "wait; if it lasts, check these servers (docs/operate.md, NATS)",
        )
    if not unled and not lagging:
        yield ok(name, "all copies are up to date")


def _check_settings(streams: Mapping[str, StreamHealth]) -> CheckLine:
    name = "nats.settings"
    versions = {health.version for health in streams.values()}
    if newer := [v for v in versions if v > SETTINGS_VERSION]:
        return warn(
            name,
            f"streams have settings version {max(newer)}; this command knows "
            f"version {SETTINGS_VERSION}",
            "use the command of the installed version",
        )
    different = [
        f"{stream} ({', '.join(health.different)})"
        for stream, health in streams.items()
        if health.different
    ]
    if different or versions != {SETTINGS_VERSION}:
        said = name_some(different) or f"version {min(versions)}"
        return warn(
            name,
            f"differ from what this version needs: {said}",
            "restart a solver or publisher: it updates older settings",
        )
    where = counted(len(streams), "stream")
    return ok(name, f"settings of version {SETTINGS_VERSION} in {where}")


def _check_room(streams: Mapping[str, StreamHealth]) -> CheckLine:
    name = "nats.room"
    disposable = {stream.name for stream in STREAMS if stream.disposable}
    shares = {s: h.share for s, h in streams.items() if s not in disposable}
    listed = [f"{s} {share:.0%}" for s, share in shares.items() if share >= FILLING]
    remedy = "end unneeded gangs, or raise max_bytes and the volume"
    if any(share >= FULL for share in shares.values()):
        return fail(
            name, f"full: {name_some(listed)}; new messages are refused", remedy
        )
    if listed:
        return warn(name, f"filling: {name_some(listed)}", remedy)
    most = max(shares.values(), default=0.0)
    return ok(name, f"the fullest stream that must lose nothing is {most:.0%} full")


def _check_health(failure: str) -> CheckLine:
    name = "nats.health"
    if not failure:
        return ok(name, "the server stores messages")
    if any(words in failure for words in FULL_DISK):
        return fail(
            name,
            f"disk full: {failure}",
            "make room; kubelet or `moorings up` then starts the server again, as it "
            "stores nothing before (elsewhere: restart it)",
        )
    return fail(name, failure, "look at the log of nats-server")


def _check_monitor(facts: BusFacts) -> Iterator[CheckLine]:
    name, monitor = "nats.sync", facts.monitor
    if isinstance(monitor, Unread):
        yield unread(name, monitor)
        return
    yield _check_health(monitor.failure)
    if monitor.sync == _ALWAYS:
        yield ok(name, "acknowledged messages are on disk")
    else:
        yield warn(
            name,
            f"synced every {monitor.sync or 'few minutes'}: a power failure loses "
            "what was acknowledged since the last sync",
            "set jetstream { sync_interval: always }, unless copies are on "
            "servers with separate power",
        )
    if monitor.max_payload < ENOUGH_PAYLOAD:
        yield fail(
            "nats.payload",
            f"messages are limited to {monitor.max_payload} bytes; an inventory "
            "or a decision may take 8 MiB",
            "set max_payload: 8MB",
        )
    wanted = sum(s.max_bytes for s in STREAMS if s.storage == "file")
    if 0 < monitor.room_bytes < wanted:
        yield fail(
            "nats.disk",
            f"streams are limited to {monitor.room_bytes / _GIB:.1f} GiB and need "
            f"{wanted / _GIB:.1f}",
            "raise max_file and the volume",
        )
