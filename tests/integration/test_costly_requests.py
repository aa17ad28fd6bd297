"""No request of one user keeps JetStream's API from the others.

A consumer of thousands of filters cost nats-server the square of their number, and it
answered nobody meanwhile: 34 s with 6,000, more than 250 s with 30,000.
"""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from nats.aio.client import Client
from nats.errors import Error, NoRespondersError

from runtime.bus.bus import Bus
from runtime.bus.jetstream import call
from runtime.errors import BusRefusedError
from runtime.users import PLATFORM, VIEWER, api_prefix, consumer_names
from tests.lab.secured_nats import SecuredNats
from tests.lab.seeded_bus import ANSWER_S, consumer_request

FILTERS = [f"dec.v1.local.team-{number}.>" for number in range(20_000)]
DEEP = b"[" * 400_000 + b"]" * 400_000
MULTIPLE_FILTERS = 10137
"""nats-server: a filter in the subject, and others in the body."""
ASKED_S = 2.0


@pytest.mark.parametrize("user", [PLATFORM, VIEWER])
async def test_a_consumer_from_outside_has_one_filter(
    seeded: SecuredNats, user: str
) -> None:
    """Others are refused, and where its subject says none nobody is asked."""
    name = consumer_names(user)[0]
    short = f"{api_prefix(user)}.CONSUMER.CREATE.DEC.{name}"
    async with seeded.client(user) as client:
        for action in ("", "create", "update"):
            body = consumer_request("DEC", name, action=action, filter_subjects=FILTERS)
            with pytest.raises(NoRespondersError):
                await client.request(short, body, timeout=ANSWER_S)
            answer = await client.request(f"{short}.>", body, timeout=ANSWER_S)
            assert json.loads(answer.data)["error"]["err_code"] == MULTIPLE_FILTERS


@pytest.mark.parametrize("user", [PLATFORM, VIEWER])
async def test_services_are_answered_beside_the_oddest_requests(
    seeded: SecuredNats, user: str
) -> None:
    async with (
        seeded.client(user) as client,
        Bus.open(seeded.settings("solver")) as solver,
    ):
        await solver.wait_connected(ANSWER_S)
        for subject, body in _odd_requests(user):
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


def _odd_requests(user: str) -> list[tuple[str, bytes]]:
    """List the largest and oddest bodies for each verb that a reader may use."""
    name = consumer_names(user)[0]
    create = f"CONSUMER.CREATE.DEC.{name}.>"
    settings = (
        {"metadata": {f"key-{number}": "value" for number in range(30_000)}},
        {"backoff": [10**9] * 60_000, "ack_policy": "explicit"},
        {
            "priority_policy": "overflow",
            "priority_groups": [f"group-{number}" for number in range(50_000)],
            "ack_policy": "explicit",
        },
    )
    return [
        *(
            (create, consumer_request("DEC", name, filter_subject=">", **config))
            for config in settings
        ),
        (create, DEEP),
        *(("STREAM.INFO.DEC", body) for body in (DEEP, _json(subjects_filter=">"))),
        ("STREAM.MSG.GET.DEC", DEEP),
        ("STREAM.MSG.GET.DEC", _json(last_by_subj="dec" + ".*" * 200_000)),
        ("STREAM.MSG.GET.DEC", _json(seq=1, next_by_subj="dec" + ".*" * 200_000)),
        ("STREAM.MSG.GET.DEC", _json(multi_last=FILTERS, batch=1 << 30)),
        (f"CONSUMER.INFO.DEC.{name}", DEEP),
        (f"CONSUMER.MSG.NEXT.DEC.{name}", _json(batch=1 << 62, expires=1 << 62)),
        (f"CONSUMER.DELETE.DEC.{name}", DEEP),
        (f"CONSUMER.DELETE.DEC.{name}", b""),
    ]


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()


async def _ask(client: Client, subject: str, body: bytes) -> None:
    """Ask, whatever the answer is; some requests have none."""
    with contextlib.suppress(Error, TimeoutError):
        await client.request(subject, body, timeout=ASKED_S)
