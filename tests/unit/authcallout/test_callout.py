"""How much one client may cost, and that none of them costs the service."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec import structs

from authcallout.callout import Callout
from authcallout.config import AuthCalloutConfig
from authcallout.errors import ReviewError
from authcallout.grants import AccessQuestion
from authcallout.login import NODE_EXTRA, Identity
from authcallout.reviews import Reviews
from runtime.bus.bus import Bus
from runtime.bus.subscription import Delivery
from tests.lab.callout_requests import ISSUER, NOW_S, OURS, THEIRS, request
from tests.lab.services import eventually

CONFIG = AuthCalloutConfig(issuer_file="i", curve_file="c", review_s=30.0)
AGENT = CONFIG.agents[0]


class CountingReviews:
    """An API server that knows one agent, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0
        self.away = False
        self.is_broken = False
        self.answers = asyncio.Event()
        self.answers.set()

    async def review(self, token: str, audience: str) -> Mapping[str, Any]:
        """Vouch for every token that does not say `bad`."""
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.answers.wait()
        finally:
            self.at_once -= 1
        if self.is_broken:
            raise ZeroDivisionError
        if self.away:
            raise ReviewError("TokenReview", "away")
        user = {"username": AGENT, "extra": {NODE_EXTRA: ["n"]}}
        known = not token.startswith("bad")
        return {"authenticated": known, "audiences": [audience], "user": user}

    async def may(self, _: Identity, __: AccessQuestion) -> bool:
        """Nobody may."""
        return False


class AnswerBox:
    """Where answers go; each is the reason of a refusal, or empty."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    async def reply(self, _request: Delivery, data: bytes) -> None:
        """Open an answer as the server does."""
        body = THEIRS.open(data, OURS.public).split(b".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + b"==="))
        self.answers.append(claims["nats"].get("error", ""))


def token(sign: str = "good", **claims: object) -> str:
    """Make a token; it differs by its signature."""
    body = {"aud": CONFIG.audience, "exp": NOW_S + 600, **claims}
    text = base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")
    return f"{sign}.{text}.s"


def asked(password: str, user: str = "nodeagent n", **changes: Any) -> Delivery:
    """Make what comes from a server when a client connects."""
    options = {"user": user, "pass": password}
    sealed = request(nats_connect_opts=options, **changes)
    return Delivery("s", "reply", sealed, {"Nats-Server-Xkey": THEIRS.public})


class Opened:
    """A callout, its API server, and what it answered."""

    def __init__(self, **changes: Any) -> None:
        self.reviews, self.box = CountingReviews(), AnswerBox()
        self.callout = Callout(
            cast("Bus", self.box),
            cast("Reviews", self.reviews),
            structs.replace(CONFIG, **changes),
            issuer=ISSUER,
            curve=OURS,
            clock=lambda: float(NOW_S),
        )

    @property
    def counts(self) -> Counter[str]:
        """How often what became of requests."""
        return self.callout.counts

    async def take(self, *requests: Delivery) -> None:
        """Hand requests over, and wait until each has its end."""
        before = self.counts.total()
        for delivery in requests:
            self.callout.take(delivery)

        def is_done() -> bool:
            return self.counts.total() == before + len(requests)

        await eventually(is_done, "all have an end")


@asynccontextmanager
async def working(**changes: Any) -> AsyncIterator[Opened]:
    """Run a callout, which must stop as asked."""
    opened, stop = Opened(**changes), asyncio.Event()
    running = asyncio.create_task(opened.callout.answer(stop))
    try:
        yield opened
        assert not running.done()
    finally:
        stop.set()
        await running


async def test_the_same_token_is_reviewed_once_in_a_while() -> None:
    """A good one and a bad one alike."""
    async with working() as opened:
        for sign in ("good", "bad"):
            for _ in range(5):
                await opened.take(asked(token(sign)))

        assert opened.reviews.asked == 2
        assert opened.counts == {"granted": 5, "refused": 5}


async def test_an_outage_is_not_remembered() -> None:
    async with working() as opened:
        opened.reviews.away = True
        await opened.take(asked(token()))
        opened.reviews.away = False
        await opened.take(asked(token()))

        assert opened.counts == {"unavailable": 1, "granted": 1}
        assert opened.box.answers[-1] == ""
        assert "no answer of the API server" in opened.box.answers[0]


async def test_what_cannot_be_meant_for_us_costs_no_review() -> None:
    async with working() as opened:
        hostile = ("", "x", token(aud="other"), token(exp=NOW_S), token(aud=7))
        await opened.take(*map(asked, hostile))

        assert opened.reviews.asked == 0
        assert opened.counts == {"refused": len(hostile)}


async def test_a_flood_waits_within_bounds() -> None:
    """So many at once, so many wait, the rest is left to the server's own limit."""
    async with working(in_flight=4, waiting=10) as opened:
        opened.reviews.answers.clear()
        for number in range(4):
            opened.callout.take(asked(token(f"t{number}")))
        await eventually(lambda: opened.reviews.at_once == 4, "all workers ask")
        for number in range(4, 30):
            opened.callout.take(asked(token(f"t{number}")))
        assert opened.counts == {"dropped": 16}
        opened.reviews.answers.set()
        await eventually(lambda: opened.counts["granted"] == 14, "who waited is let in")

        assert opened.reviews.most_at_once == 4


@pytest.mark.parametrize("headers", [{}, {"Nats-Server-Xkey": "X"}])
async def test_what_no_server_sent_is_not_answered(headers: dict[str, str]) -> None:
    async with working() as opened:
        await opened.take(
            Delivery("s", "r", b"garbage", headers),
            asked(token(), exp=NOW_S - 1),
            asked(token()),
        )

        assert opened.counts == {"unanswered": 2, "granted": 1}
        assert opened.box.answers == [""]


async def test_what_nobody_thought_of_ends_no_worker() -> None:
    async with working(in_flight=1) as opened:
        opened.reviews.is_broken = True
        await opened.take(asked(token("a")), asked(token("b")))
        opened.reviews.is_broken = False
        await opened.take(asked(token("c")))

        assert opened.counts == {"failed": 2, "granted": 1}
