"""No request of one user keeps services from being answered.

nats-server takes the square of the filters of a consumer (34 s with 6,000), and a
stream stores nothing while it looks for `multi_last` of 1,000 wildcards (10 s).
"""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from nats.aio.client import Client
from nats.errors import Error

from runtime.bus.bus import Bus
from runtime.bus.jetstream import call
from runtime.errors import BusRefusedError
from runtime.users import PLATFORM, VIEWER, api_prefix
from tests.lab.secured_nats import SecuredNats
from tests.lab.seeded_bus import ANSWER_S

FILTERS = [f"dec.v1.local.team-{number}.>" for number in range(20_000)]
DEEP = b"[" * 400_000 + b"]" * 400_000
ASKED_S = 2.0


@pytest.mark.parametrize("user", [PLATFORM, VIEWER])
async def test_services_are_answered_beside_the_oddest_requests(
    seeded: SecuredNats, user: str
) -> None:
    async with (
        seeded.client(user) as client,
        Bus.open(seeded.settings("solver")) as solver,
    ):
        await solver.wait_connected(ANSWER_S)
        for subject, body in _odd_requests():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_ask(client, f"{api_prefix(user)}.{subject}", body))
                await asyncio.sleep(0.05)
                await call(solver._connection, "STREAM.INFO.DEC", None, dict, ANSWER_S)


@pytest.mark.parametrize("user", [PLATFORM, VIEWER])
async def test_a_message_that_is_too_large_for_its_account_is_refused_here(
    seeded: SecuredNats, user: str
) -> None:
    """The server would end the connection of who sends it."""
    async with Bus.open(seeded.settings(user)) as bus:
        await bus.wait_connected(ANSWER_S)
        connection = bus.connection
        with pytest.raises(BusRefusedError, match="more than the 1032192 allowed"):
            await bus._connection.publish("submit.v1.local.a.b", b" " * (1 << 20))
        assert bus.connection == connection


async def test_who_asks_what_no_relay_carries_out_is_told(seeded: SecuredNats) -> None:
    """nats-server keeps who asks in mind until there is an answer."""
    api = api_prefix(VIEWER)
    async with seeded.client(VIEWER) as client:
        for subject, body in (
            ("STREAM.INFO.DEC", DEEP),
            ("STREAM.MSG.GET.DEC", b"[]"),
            ("DIRECT.GET.DEC", b"[]"),
            ("DIRECT.GET.DEC", DEEP),
        ):
            answer = await client.request(f"{api}.{subject}", body, timeout=ANSWER_S)
            assert json.loads(answer.data)["error"]["code"] == 400, subject
            assert (answer.headers or {})["Status"] == "400"


def _odd_requests() -> list[tuple[str, bytes]]:
    """List the largest and oddest bodies for each verb that a reader may use."""
    deep = "dec" + ".*" * 200_000
    page = {"seq": 1, "next_by_subj": "dec.v1.>"}
    most = {"batch": 1 << 62, "max_bytes": 1 << 62}
    return [
        *(("STREAM.INFO.DEC", body) for body in (DEEP, _json(subjects_filter=">"))),
        ("STREAM.MSG.GET.DEC", DEEP),
        ("STREAM.MSG.GET.DEC", _json(last_by_subj=deep)),
        ("STREAM.MSG.GET.DEC", _json(seq=1, next_by_subj=deep)),
        ("STREAM.MSG.GET.DEC", _json(multi_last=FILTERS, batch=1 << 30)),
        ("DIRECT.GET.DEC.dec.v1.local.a.b", DEEP),
        ("DIRECT.GET.DEC.dec.v1.local.a.b", _json(multi_last=[">"] * 1_000)),
        ("DIRECT.GET.DEC", DEEP),
        ("DIRECT.GET.DEC", _json(multi_last=[">"] * 100_000)),
        ("DIRECT.GET.DEC", _json(**page, **most, multi_last=[">"] * 1_000)),
        ("DIRECT.GET.DEC", _json(**page, **most)),
        ("DIRECT.GET.DEC", _json(**page | {"next_by_subj": deep})),
        ("DIRECT.GET.DEC", _json(**page | {"seq": 1 << 63})),
        ("DIRECT.GET.DEC", _json(**page | {"seq": 1 << 64})),
    ]


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()


async def _ask(client: Client, subject: str, body: bytes) -> None:
    """Ask, whatever the answer is; some requests have none."""
    with contextlib.suppress(Error, TimeoutError):
        await client.request(subject, body, timeout=ASKED_S)
