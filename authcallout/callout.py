"""Answers a server that asks whether a client may connect, and as what.

Each request is opened, its client's token reviewed, and answered with a user or a
reason. Nothing that a client says ends a worker; what nobody has time for is left to
the server, which refuses it after its own limit.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from authcallout.config import AuthCalloutConfig
from authcallout.errors import LoginRefusedError, RequestError, ReviewError
from authcallout.grants import check_agent, check_platform, questions, rights_of
from authcallout.jwt import (
    SERVER_KEY_HEADER,
    AuthorizationRequest,
    BusUser,
    grant,
    open_request,
    refuse,
)
from authcallout.login import AgentLogin, read_login, read_review, read_token
from authcallout.metrics import CONNECTIONS
from authcallout.nkeys import AccountKey, CurveKey
from authcallout.remembered import Remembered
from authcallout.reviews import Reviews
from runtime.bus.bus import Bus
from runtime.bus.narrowing import permissions_of_agent, permissions_of_platform
from runtime.bus.permissions import Permissions
from runtime.bus.subscription import Delivery
from runtime.errors import BusError
from runtime.log import get_logger
from runtime.users import ACCOUNTS, role_of
from runtime.waits import together, unless

_REMEMBERED = 16_384
_EARLIEST = 0.8
"""Of the lifetime: connections made together are not renewed together."""

log = get_logger(__name__)


class _Verdict(NamedTuple):
    """The verdict on a token and its request: rights, or why none."""

    permissions: Permissions | None
    refusal: LoginRefusedError | None


class Callout:
    """Answers the requests of all servers with some workers."""

    def __init__(
        self,
        bus: Bus,
        reviews: Reviews,
        config: AuthCalloutConfig,
        *,
        issuer: AccountKey,
        curve: CurveKey,
        clock: Callable[[], float],
    ) -> None:
        self._bus = bus
        self._reviews = reviews
        self._config = config
        self._issuer = issuer
        self._curve = curve
        self._clock = clock
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue(config.waiting)
        self._remembered: Remembered[_Verdict] = Remembered(
            config.remember_s, _REMEMBERED
        )
        self.counts: Counter[str] = Counter()
        """`granted`, and why not: `refused`, `unavailable`, `unanswered`, `dropped`,
        `failed`."""

    def take(self, request: Delivery) -> None:
        """Put a request in the queue, or drop it where that is full."""
        try:
            self._waiting.put_nowait(request)
        except asyncio.QueueFull:
            self._note_outcome(
                "dropped", reason=f"{self._config.waiting} are already waiting"
            )

    async def answer(self, stop: asyncio.Event) -> None:
        """Answer requests until `stop`."""
        await together(
            self._answer_requests(stop) for _ in range(self._config.in_flight)
        )

    async def _answer_requests(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            request = await unless(stop, self._waiting.get())
            if request is None:
                return
            try:
                await self._answer_request(request)
            except (RequestError, BusError) as error:
                self._note_outcome("unanswered", reason=str(error))
            except Exception as error:  # noqa: BLE001 # must not keep all others out
                self._note_outcome("failed", reason=repr(error))

    async def _answer_request(self, delivery: Delivery) -> None:
        server = delivery.headers.get(SERVER_KEY_HEADER, "")
        request = open_request(delivery.data, server, self._curve, self._clock())
        about = {
            "user": request.connect_opts.user[:200],
            "client": request.client_info.name[:80],
            "host": request.client_info.host,
        }
        try:
            async with asyncio.timeout(self._config.review_s):
                user = await self._decide_user(request)
        except (LoginRefusedError, ReviewError, TimeoutError) as error:
            reason = str(error) or f"no answer in {self._config.review_s} s"
            refused = isinstance(error, LoginRefusedError)
            self._note_outcome(
                "refused" if refused else "unavailable", reason=reason, **about
            )
            answer = refuse(request, reason, self._issuer, int(self._clock()))
        else:
            self.counts["granted"] += 1
            CONNECTIONS.labels("granted").inc()
            answer = grant(request, user, self._issuer, int(self._clock()))
            log.info("connection.granted", until=user.expires_s, **about)
        await self._bus.reply(delivery, self._curve.seal(answer, server))

    async def _decide_user(self, request: AuthorizationRequest) -> BusUser:
        """Find who connects, and what that user may do for how long.

        Raises:
            LoginRefusedError: nothing.
            ReviewError: the API server did not say.
        """
        user, token = request.connect_opts.user, request.connect_opts.password
        now_s = self._clock()
        expires_s = read_token(token, self._config.audience, now_s)
        key = hashlib.sha256(f"{user}\n{token}".encode()).digest()
        found = self._remembered.find(key, now_s)
        if found is None:
            found = await self._ask_reviews(user, token)
            self._remembered.keep(key, found, now_s)
        if found.permissions is None:
            raise found.refusal or LoginRefusedError("token", "is refused")
        lifetime_s = self._config.lifetime_s * random.uniform(_EARLIEST, 1.0)  # noqa: S311 # spreads the load, hides nothing
        return BusUser(
            name=user,
            account=ACCOUNTS[role_of(user)],
            publish=found.permissions.publish,
            subscribe=found.permissions.subscribe,
            expires_s=min(expires_s, int(now_s + lifetime_s) + 1),
        )

    async def _ask_reviews(self, user: str, token: str) -> _Verdict:
        try:
            return _Verdict(await self._find_permissions(user, token), None)
        except LoginRefusedError as error:
            return _Verdict(None, error)

    async def _find_permissions(self, user: str, token: str) -> Permissions:
        config = self._config
        login = read_login(user)
        status = await self._reviews.review(token, config.audience)
        identity = read_review(status, config.audience)
        if isinstance(login, AgentLogin):
            check_agent(login, identity, config.agents)
            return permissions_of_agent(user, config.cluster, login.node)
        check_platform(login, identity)
        asked = tuple(questions(login))
        answers = await asyncio.gather(*(self._reviews.may(identity, q) for q in asked))
        rights = rights_of(login, dict(zip(asked, answers, strict=True)))
        return permissions_of_platform(user, config.cluster, rights)

    def _note_outcome(self, outcome: str, **facts: str) -> None:
        """Count and log a request that gets no user."""
        self.counts[outcome] += 1
        CONNECTIONS.labels(outcome).inc()
        log.warning(
            "connection.refused",
            outcome=outcome,
            count=self.counts[outcome],
            **facts,
        )
