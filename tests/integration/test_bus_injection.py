"""Nobody outside CORE stores or wipes what the table does not let it.

Permissions of nats-server look at the subject of a message and never at its reply,
on which the server publishes every acknowledgement, answer and pulled message. So each
user asks for all it may ask, with a subject of each row of the table as the reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from contracts.streams import STREAMS
from contracts.topics import BLOBS
from runtime.users import USERS, VIEWER, api_prefix, is_outside
from tests.lab.secured_nats import SecuredNats
from tests.lab.seeded_bus import (
    ANSWER_S,
    FAMILIES,
    SEED,
    on_row,
)

OUTSIDE = tuple(filter(is_outside, USERS))
HOSTILE_HEADERS = (
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"Nats-TTL": "1"},
    {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "TARGET"},
)


async def _stored(nats: SecuredNats) -> set[tuple[str, str]]:
    """List the subjects of all streams, each with the stream that holds it."""
    stored: set[tuple[str, str]] = set()
    async with nats.client("solver") as client:
        for stream in STREAMS:
            answer = await client.request(
                f"$JS.API.STREAM.INFO.{stream.name}",
                json.dumps({"subjects_filter": ">"}).encode(),
                timeout=ANSWER_S,
            )
            subjects = json.loads(answer.data)["state"].get("subjects") or ()
            stored |= {(stream.name, subject) for subject in subjects}
    return stored


def _requests(user: str) -> Iterator[tuple[str, bytes]]:
    """All that a user may ask and be answered: subject and body."""
    api = api_prefix(user)
    for family in FAMILIES:
        first = json.dumps({"seq": 1, "next_by_subj": on_row(family, SEED)}).encode()
        if user in family.senders:
            yield on_row(family, "own"), b"forged"
        if user in {*family.senders, *family.receivers}:
            yield f"{api}.DIRECT.GET.{family.stream}.{on_row(family, SEED)}", b""
            if family is not BLOBS:
                yield f"{api}.STREAM.MSG.GET.{family.stream}", first
        if user in family.receivers and family is not BLOBS:
            yield f"{api}.STREAM.INFO.{family.stream}", b""
            page = {"seq": 1, "next_by_subj": on_row(family, SEED), "to": "somewhere"}
            yield f"{api}.DIRECT.GET.{family.stream}", json.dumps(page).encode()


@pytest.mark.parametrize("user", OUTSIDE)
async def test_no_answer_reaches_a_stream_by_its_reply(
    seeded: SecuredNats, user: str
) -> None:
    """Of publishing, of the API, of direct gets and pages."""
    before = await _stored(seeded)
    async with seeded.client(user) as client:
        for subject, body in _requests(user):
            for family in FAMILIES:
                reply = on_row(family, f"{user}-answer")
                await client.publish(subject, body, reply=reply)
            # Answered too, and after those: the request is one that is served.
            answer = await client.request(subject, body, timeout=ANSWER_S)
            assert answer.data

    own = {(f.stream, on_row(f, "own")) for f in FAMILIES if user in f.senders}
    assert await _stored(seeded) == before | own


@pytest.mark.parametrize("user", [u for u in OUTSIDE if u != "nodeagent"])
async def test_no_page_goes_into_a_stream(seeded: SecuredNats, user: str) -> None:
    """The asker names a token, which becomes no other subject."""
    before = await _stored(seeded)
    streams = {f.stream for f in FAMILIES if user in f.receivers and f is not BLOBS}
    async with seeded.client(user) as client:
        for stream in sorted(streams):
            for family in FAMILIES:
                to = on_row(family, f"{user}-page")
                for name in (to, f"x.{to}", "*", ">", "x" * 5_000):
                    page = {"seq": 1, "next_by_subj": ">", "to": name}
                    subject = f"{api_prefix(user)}.DIRECT.GET.{stream}"
                    await client.publish(
                        subject, json.dumps(page).encode(), reply="_INBOX.x"
                    )
        # Answered after those: this one is served.
        info = f"{api_prefix(user)}.STREAM.INFO.{min(streams)}"
        assert (await client.request(info, timeout=ANSWER_S)).data
    assert await _stored(seeded) == before


@pytest.mark.parametrize("user", [u for u in OUTSIDE if u != VIEWER])
async def test_no_header_wipes_what_others_sent(seeded: SecuredNats, user: str) -> None:
    """Rollups, times to live and schedules are refused; an id hides nothing."""
    before = await _stored(seeded)
    own = [family for family in FAMILIES if user in family.senders]
    async with seeded.client(user) as client:
        for family in own:
            for headers in HOSTILE_HEADERS:
                target = on_row(family, SEED)
                answer = await client.request(
                    on_row(family, f"{user}-hostile"),
                    b"hostile",
                    headers={
                        k: v.replace("TARGET", target) for k, v in headers.items()
                    },
                    timeout=ANSWER_S,
                )
                assert "error" in json.loads(answer.data), headers
    assert await _stored(seeded) == before
