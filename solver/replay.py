"""Replay: a recorded Problem solved again, and what differs if anything does.

Bytes repeat for the same versions and platform; elsewhere the objective is compared,
and it says so.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from solver.allocate import allocate
from solver.decision import DECISION, Decision
from solver.record import Recorded, sha_of
from solver.versions import VERSION, dependency_versions, platform_tag


class ReplayResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a new answer compares to the recorded one."""

    solve: str
    same_bytes: bool | None
    """None: nothing was recorded to compare with."""
    same_versions: bool
    same_platform: bool
    differences: tuple[str, ...] = ()
    """In words; empty when the bytes are the same."""
    recorded_decision: str
    replayed_decision: str
    """Hashes."""


def replay(recorded: Recorded) -> tuple[ReplayResult, Decision]:
    """Solve a recorded Problem again and compare.

    Raises:
        RecordError: the record is incomplete or was changed.
    """
    decision = allocate(recorded.problem())
    return compare_replay(recorded, DECISION.encode(decision)), decision


def compare_replay(recorded: Recorded, data: bytes) -> ReplayResult:
    """Compare the bytes of a new answer with those that were recorded."""
    opened = recorded.opened
    same_bytes = None if recorded.decided is None else data == recorded.decision
    differences: tuple[str, ...] = ()
    if same_bytes is False:
        differences = _list_differences(recorded, DECISION.decode(data))
    return ReplayResult(
        solve=opened.solve,
        same_bytes=same_bytes,
        same_versions=(
            opened.version == VERSION and opened.dependencies == dependency_versions()
        ),
        same_platform=opened.platform == platform_tag(),
        differences=differences,
        recorded_decision=recorded.decided.decision if recorded.decided else "",
        replayed_decision=sha_of(data),
    )


def _list_differences(recorded: Recorded, decision: Decision) -> tuple[str, ...]:
    original = DECISION.decode(recorded.decision)
    differences = []
    if original.status != decision.status:
        differences.append(f"status: {original.status} -> {decision.status}")
    if original.objective != decision.objective:
        differences.append(
            f"objective: {msgspec.json.encode(original.objective).decode()} -> "
            f"{msgspec.json.encode(decision.objective).decode()}"
        )
    differences.extend(
        f"gang {old.namespace}/{old.name}: {old.verdict} -> {new.verdict}"
        if old.verdict != new.verdict
        else f"gang {old.namespace}/{old.name}: other nodes, devices or reasons"
        for old, new in zip(original.gangs, decision.gangs, strict=False)
        if old != new
    )
    return tuple(differences) or ("statistics only",)
