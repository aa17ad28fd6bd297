"""How long a gang runs at most: as its author says, or as somebody ends it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.durations import parse_duration
from contracts.gang import Gang
from contracts.names import DURATION
from contracts.pods.gang_owners import GangOwner
from contracts.workload import Pod
from publisher.gangs.submit.readiness import NotReady


def find_duration(
    pods: Sequence[Pod], gang: Gang | None, owner: GangOwner | None
) -> str | NotReady:
    """Return how long a gang runs at most, such as `2h30m`; empty: nobody knows.

    As its Gang object or the annotation of its pods says; else after how long its owner
    or kubelet ends the pods.
    """
    if gang is not None and gang.spec.duration:
        return gang.spec.duration
    values = {pod.metadata.annotations.get(DURATION, "") for pod in pods}
    if values != {""}:
        return _read_annotation(values)
    if owner is not None and owner.lasts_s:
        return f"{owner.lasts_s}s"
    deadlines = [pod.spec.active_deadline_seconds for pod in pods]
    known = [each for each in deadlines if each]
    return f"{max(known)}s" if known and len(known) == len(pods) else ""


def _read_annotation(values: set[str]) -> str | NotReady:
    value, *others = sorted(values, reverse=True)
    text = f"the pods disagree: {', '.join(sorted(filter(None, values)))[:100]}"
    if not others:
        try:
            parse_duration(value)
        except ValueError as error:
            text = f"{value[:40]!r} {error}"
        else:
            return value
    return NotReady(reason="DurationInvalid", message=f"annotation {DURATION}: {text}")
