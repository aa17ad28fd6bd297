"""Events are written when they are due, and missed without harm."""

from __future__ import annotations

from typing import Any, cast

import pytest

from publisher.cluster.event_writer import EventWriter
from publisher.gangs.notes import Note, Subject
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, NotFoundError, UnavailableError
from runtime.kube.kinds import Kind

POD = Subject(api_version="v1", kind="Pod", namespace="ns", name="pod", uid="u")
NOTE = Note(regarding=POD, type="Warning", reason="DevicesTaken", message="1 is free")


class _Events:
    """An API server that takes events, or raises first."""

    def __init__(self, *fails: ApiError) -> None:
        self._fails = list(fails)
        self.written: list[dict[str, Any]] = []

    async def create(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        assert kind.name == "Event"
        if self._fails:
            raise self._fails.pop(0)
        self.written.append(body)
        return body


def writer(events: _Events) -> EventWriter:
    return EventWriter(cast("KubernetesApi", events), "one")


async def test_a_note_is_written_once() -> None:
    """Whoever asks is told when it is due again."""
    events = _Events()
    told = writer(events)
    (wait_s,) = await told.write_due([NOTE])
    assert wait_s > 60
    await told.write_due([NOTE])
    (event,) = events.written
    assert event["regarding"]["name"] == "pod"
    assert (event["reason"], event["note"]) == ("DevicesTaken", "1 is free")


async def test_an_event_that_was_missed_is_due_again() -> None:
    """A namespace that is gone needs none."""
    events = _Events(UnavailableError("create", "away"), NotFoundError("create", "ns"))
    told = writer(events)
    with pytest.raises(UnavailableError):
        await told.write_due([NOTE])
    await told.tell(NOTE)
    assert events.written == []
    await told.write_due([NOTE])
    assert events.written == []


async def test_telling_survives_an_outage() -> None:
    """It is logged, and tried when the same is told again."""
    events = _Events(UnavailableError("create", "away"))
    told = writer(events)
    await told.tell(NOTE)
    await told.tell(NOTE)
    assert len(events.written) == 1
