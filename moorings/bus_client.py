"""A platform's side of the bus: submit, command, and read what became of gangs.

Reads the streams that say what was asked and decided; `contracts.lifecycle` folds them
as it does for the solver. Knows nothing of how anything is shown.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from msgspec import Struct, structs

from contracts.errors import ContractsError
from contracts.fence import SolverSeen
from contracts.gang import Gang
from contracts.ids import ClusterName, GangKey, GangUID, Namespace, NodeName
from contracts.kubernetes.defaults import default_gang
from contracts.lifecycle import GangRecord, SubmissionSeen
from contracts.liveness import PublisherLeads
from contracts.messages import (
    AllocationWritten,
    CommandMessage,
    DevicesAnnounced,
    ObjectObserved,
    SubmitGang,
)
from contracts.names import GANG_UID
from contracts.reports import GroupReported
from contracts.tokens import token
from contracts.topics import (
    COMMANDS,
    CONFIRMATIONS,
    DECISIONS,
    FENCE,
    GANG_TOPICS,
    INVENTORIES,
    LEADERS,
    REPORTS,
    STATE,
    SUBMISSIONS,
    M,
    Topic,
)
from contracts.validate import validate
from moorings.errors import (
    BadInputError,
    CannotReadError,
    NotStoredError,
    UnknownNameError,
)
from moorings.stories import GangQuery, HeldObjects, WrittenGangs
from moorings.views.names import tell_apart
from runtime.bus.bus import Bus
from runtime.bus.follower import Start
from runtime.errors import (
    BusError,
    BusFullError,
    BusUnavailableError,
    NotAllowedError,
    PublishRefusedError,
)
from runtime.refusals import Refusals
from runtime.wire import BusSettings, Incoming, Outgoing, Refused

CONNECT_S = 5.0
DEFAULT_SCHEME = "nats"
SCHEMES = (DEFAULT_SCHEME, "tls", "ws", "wss")


def make_submission(gang: Gang, cluster: ClusterName, uid: str) -> SubmitGang:
    """Make the message that submits a gang; without a uid it gets this one.

    Raises:
        BadInputError: the gang is not valid.
    """
    name = gang.metadata.name or "gang"
    violations = validate(default_gang(gang))
    if violations:
        raise BadInputError(f"Gang {name}", "; ".join(map(str, violations)))
    given = GangUID(gang.metadata.uid or uid)
    namespace = Namespace(gang.metadata.namespace or "default")
    metadata = structs.replace(gang.metadata, uid=given, namespace=namespace)
    try:
        return SubmitGang(
            cluster=cluster,
            uid=given,
            gang=structs.replace(gang, metadata=metadata),
            submitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    except ValueError as error:
        raise BadInputError(f"Gang {name}", str(error)) from error


class Client:
    """One connection of a platform or a person."""

    def __init__(self, bus: Bus, cluster: ClusterName) -> None:
        self.bus = bus
        self.cluster = cluster
        self.unread: dict[str, str] = {}
        """Messages that could not be read or handled, by subject, and why."""
        self._refusals = Refusals()

    async def submit(self, gang: Gang) -> tuple[GangUID, bool]:
        """Submit a gang; returns its uid, and whether it was accepted just now.

        A gang without a uid gets one. The same uid sent twice is one submission.

        Raises:
            BadInputError: the gang is not valid.
            NotStoredError: the bus has no room for it.
        """
        message = make_submission(gang, self.cluster, str(uuid4()))
        uid, name = message.uid, gang.metadata.name or "gang"
        try:
            await self.bus.publish(Outgoing.of(SUBMISSIONS, message))
        except PublishRefusedError as error:
            if error.kind == "exists":
                return uid, False
            raise
        except BusFullError as error:
            raise NotStoredError(f"gang/{name}", error.reason) from error
        return uid, True

    async def send_command(self, message: CommandMessage) -> None:
        """Cancel or release a gang."""
        await self.bus.publish(Outgoing.of(COMMANDS, message))

    @contextmanager
    def guard(self, topic: Topic[M], message: M) -> Iterator[None]:
        """Handle a message in the block; if that cannot be done it is left out."""
        with self._refusals.guard(topic.subject_of(message)) as guarded:
            yield
        if guarded.refused is not None:
            self.note_unread(guarded.refused)

    def note_unread(self, refused: Refused) -> None:
        """Remember that a message was left out."""
        about = ": ".join(filter(None, (refused.field, refused.reason)))
        self.unread[refused.subject] = about

    async def read(
        self, topic: Topic[M], *names: str, start: Start | None = None
    ) -> AsyncIterator[tuple[M, int]]:
        """Read what a topic holds now, each message with its sequence.

        `names` are those that its subjects begin with, the cluster first; without any,
        all of the cluster.

        Raises:
            CannotReadError: our user may not, or there is no such stream.
        """
        names = names or (self.cluster,)
        async for incoming in self._read_incoming(topic, names, start):
            if incoming.message is not None:
                yield incoming.message, incoming.sequence

    async def _read_incoming(
        self, topic: Topic[M], names: tuple[str, ...], start: Start | None = None
    ) -> AsyncIterator[Incoming[M]]:
        batches = self.bus.read_existing(topic, *names, start=start, patient=False)
        try:
            async for batch in batches:
                for refused in batch.refused:
                    self.note_unread(refused)
                for incoming in batch.messages:
                    yield incoming
        except NotAllowedError as error:
            reason = f"not allowed for user {error.user!r} of the bus"
            raise CannotReadError(topic.stream, reason) from error
        except BusError as error:
            raise CannotReadError(topic.stream, str(error)) from error

    async def fetch_leader(self) -> PublisherLeads | None:
        """Fetch which publisher led last; None: there never was one, or no cluster.

        Raises:
            CannotReadError: it cannot be read.
        """
        last = None
        async for message, _ in self.read(LEADERS):
            last = message
        return last

    async def fetch_solvers(self) -> dict[ClusterName, SolverSeen]:
        """Fetch which solver led last, for each cluster in which one ever did.

        Raises:
            CannotReadError: it cannot be read.
        """
        return {
            incoming.message.cluster: SolverSeen(
                claim=incoming.message, at_s=incoming.time_s
            )
            async for incoming in self._read_incoming(FENCE, ())
            if incoming.message is not None
        }

    async def fetch_gangs(self) -> list[GangRecord]:
        """Fetch how all gangs are now, oldest first.

        Raises:
            CannotReadError: what is said of gangs cannot be read.
        """
        records: dict[GangKey, GangRecord] = {}
        # The last word first: what it followed from is there by the time it is read.
        for topic in reversed(GANG_TOPICS):
            # Commands from the first one kept: a publisher's own may hide another's.
            async for incoming in self._read_incoming(topic, (self.cluster,)):
                if (message := incoming.message) is None:
                    continue
                with self.guard(topic, message):
                    record = records.get(message.key) or GangRecord.of(message)
                    records[message.key] = record.apply(
                        message, incoming.sequence, incoming.time_s
                    )
        submitted = [record for record in records.values() if record.submission]
        return sorted(submitted, key=lambda record: record.submission_sequence)

    async def fetch_longest_undecided(self) -> SubmissionSeen | None:
        """Fetch the submission that has no decision for longest; None: all have one.

        Raises:
            CannotReadError: what is said of gangs cannot be read.
        """
        submitted = {
            incoming.message.key: incoming.time_s
            async for incoming in self._read_incoming(SUBMISSIONS, (self.cluster,))
            if incoming.message is not None
        }
        # Later, so that what has none then had none before.
        async for message, _ in self.read(DECISIONS):
            submitted.pop(message.key, None)
        if not submitted:
            return None
        key = min(submitted, key=submitted.__getitem__)
        return SubmissionSeen(key=key, at_s=submitted[key])

    async def fetch_reports(self) -> list[GroupReported]:
        """Fetch what pods wait for that are not submitted, and what befell others.

        Raises:
            CannotReadError: it cannot be read.
        """
        return [
            message
            async for message, _ in self.read(REPORTS)
            if isinstance(message, GroupReported)
        ]

    async def fetch_inventories(self) -> dict[NodeName, DevicesAnnounced]:
        """Fetch what node agents announce, by node.

        Raises:
            CannotReadError: it cannot be read.
        """
        return {message.node: message async for message, _ in self.read(INVENTORIES)}

    async def fetch_held(self) -> HeldObjects:
        """Fetch which pods of gangs are there, and which claims hold devices.

        Raises:
            CannotReadError: it cannot be read.
        """
        pods: dict[str, GangUID] = {}
        for message in await self.fetch_objects("Pod"):
            with self.guard(STATE, message):
                annotations = message.object["metadata"].get("annotations") or {}
                pods[message.key] = GangUID(str(annotations.get(GANG_UID, "")))
        claims = [each.key for each in await self.fetch_objects("ResourceClaim")]
        return HeldObjects(pods=pods, claims=frozenset(claims))

    async def fetch_objects(self, *kinds: str) -> list[ObjectObserved]:
        """Fetch the cluster's objects of some kinds.

        Raises:
            CannotReadError: they cannot be read.
        """
        return [
            message
            for kind in kinds
            async for message, _ in self.read(STATE, self.cluster, kind)
            if isinstance(message, ObjectObserved)
        ]

    async def fetch_written(self, records: Sequence[GangRecord]) -> WrittenGangs:
        """Fetch what publishers wrote of the last attempts of gangs.

        Raises:
            CannotReadError: it cannot be read.
        """
        attempts = {record.key: record.attempt for record in records}
        names: tuple[str, ...] = ()
        if len(records) == 1:
            names = (self.cluster, records[0].namespace, records[0].uid)
        written: dict[GangKey, AllocationWritten] = {}
        # What came last of a gang may be that its gates opened: read what came before.
        async for message, _ in self.read(CONFIRMATIONS, *names, start="all"):
            if isinstance(
                message, AllocationWritten
            ) and message.attempt == attempts.get(message.key):
                written[message.key] = message
        return written

    async def fetch_events(self, records: Sequence[GangRecord]) -> list[Incoming[Any]]:
        """Fetch all that is stored of what was said about gangs, in any order.

        Raises:
            CannotReadError: it cannot be read.
        """
        return [
            incoming
            for record in records
            for topic in GANG_TOPICS
            async for incoming in self._read_incoming(
                topic, (self.cluster, record.namespace, record.uid), "all"
            )
        ]

    async def find_gangs(
        self, name: str, namespace: str | None = None
    ) -> list[GangRecord]:
        """Find gangs as `GangQuery` names them: those alive, else the last.

        There may be several: pods of a running gang that are replaced are a gang of
        its name.

        Raises:
            UnknownNameError: there is none.
        """
        records = await self.fetch_gangs()
        wanted = GangQuery.of(name, namespace).among(records)
        matches = [record for record in records if wanted.is_of(record)]
        if not matches:
            near = difflib.get_close_matches(
                wanted.name, [record.name for record in records]
            )
            raise UnknownNameError("gang", name, near)
        living = [record for record in matches if not record.phase.is_terminal]
        return living or matches[-1:]

    async def find_gang(self, name: str, namespace: str | None = None) -> GangRecord:
        """Find the one gang of a name, as `find_gangs` does.

        Raises:
            UnknownNameError: there is none, or more than one.
        """
        records = await self.find_gangs(name, namespace)
        if len(records) > 1:
            raise UnknownNameError("single gang", name, list(map(tell_apart, records)))
        return records[0]


class BusLogin(Struct, frozen=True, kw_only=True):
    """User and password for a bus."""

    user: str = ""
    """Empty: anonymous."""
    password_file: str = ""
    ca_file: str = ""
    """CA of the server, as PEM; empty: no TLS."""

    @classmethod
    def of_environment(cls) -> BusLogin:
        """Read it from variables, as services do."""
        return cls(
            user=os.environ.get("MOORINGS_BUS_USER", ""),
            password_file=os.environ.get("MOORINGS_BUS_PASSWORD_FILE", ""),
            ca_file=os.environ.get("MOORINGS_BUS_CA_FILE", ""),
        )


@asynccontextmanager
async def open_client(
    server: str, cluster: str, *, otherwise: str = "", login: BusLogin | None = None
) -> AsyncIterator[Client]:
    """Connect, or fail within a few seconds if nobody answers.

    `otherwise` is where else somebody was looked for, for who is told so.

    Unless there is a `login`, how the server wants to be spoken to is in variables:
    `MOORINGS_BUS_CA_FILE`, `_BUS_USER` and `_BUS_PASSWORD_FILE`.

    Raises:
        BadInputError: nobody answers, or the cluster's name cannot be part of a
            subject.
    """
    scheme, has_scheme, _ = server.partition("://")
    if has_scheme and scheme not in SCHEMES:
        reason = f"addresses of NATS begin with {'://, '.join(SCHEMES)}://"
        raise BadInputError(server, reason)
    try:
        token(cluster)
    except ContractsError as error:
        raise BadInputError("--cluster", str(error)) from error
    login = BusLogin.of_environment() if login is None else login
    settings = BusSettings(
        servers=(server,),
        name="moorings",
        ca_file=login.ca_file,
        user=login.user,
        password_file=login.password_file,
    )
    async with Bus.open(settings) as bus:
        try:
            await bus.wait_connected(CONNECT_S)
        except BusUnavailableError as error:
            reason = f"nobody answers{f' ({otherwise})' if otherwise else ''}"
            if not has_scheme:
                reason += f"; write the address as {DEFAULT_SCHEME}://HOST:PORT"
            if "Authorization" in error.reason:
                reason = f"refuses user {settings.user!r}: {error.reason}"
            raise BadInputError(server, reason) from error
        yield Client(bus, ClusterName(cluster))
