"""The bus in one table: what travels on which subjects, in which stream, by whom.

A `Topic` is a row of docs/bus.md. Subjects are built and read here and nowhere else;
streams (streams.py), permissions and every reader follow from the same rows.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from contracts.avoidance import NodesAvoided
from contracts.codec import Codec
from contracts.drift import DriftFound
from contracts.errors import AddressError
from contracts.fence import EpochClaimed
from contracts.liveness import PublisherLeads
from contracts.messages import (
    BatchSolved,
    CommandMessage,
    ConfirmationMessage,
    DecisionMessage,
    HealthMessage,
    HeartbeatMessage,
    InventoryMessage,
    Message,
    StateMessage,
    SubmissionMessage,
)
from contracts.reports import ReportMessage
from contracts.solves import SolveMessage
from contracts.tokens import token, untoken

M = TypeVar("M", bound=Message)
VERSION = "v1"
HOUR_S = 3_600
DAY_S = 86_400
HEARTBEAT_S = 20
"""How long a heartbeat is kept for who begins to read."""


class SubjectFamily(Struct, frozen=True, kw_only=True):
    """All subjects of one entity: `<entity>.v1.<name>.<name>...`, and who uses them."""

    entity: str
    """The first token."""
    names: tuple[str, ...]
    """Names of the tokens after the version, such as `cluster` and `node`."""
    stream: str
    """The stream that stores them."""
    senders: tuple[str, ...]
    """Users of the bus that publish here."""
    receivers: tuple[str, ...]
    """Users of the bus that read here."""
    max_bytes: int = 8 << 20
    """A message of more, unpacked, is refused; the server's `max_payload` for those
    that are not compressed."""

    @property
    def pattern(self) -> str:
        """The family for people: `inv.v1.<cluster>.<node>`."""
        return ".".join((self.entity, VERSION, *(f"<{name}>" for name in self.names)))

    @property
    def any_subject(self) -> str:
        """A wildcard for each name: `inv.v1.*.*`."""
        return ".".join((self.entity, VERSION, *("*" for _ in self.names)))

    def subject(self, *names: str) -> str:
        """Build the subject of these names, one for each of `self.names`.

        Raises:
            SubjectError: a name is empty or too long.
            ValueError: there are more names, or fewer.
        """
        if len(names) != len(self.names):
            raise ValueError(f"{self.pattern} from {len(names)} names")
        return ".".join((self.entity, VERSION, *map(token, names)))

    def subjects_below(self, *names: str) -> str:
        """Build the wildcard of all subjects that begin with these names.

        With all names given it is the one subject of them.
        """
        if len(names) == len(self.names):
            return self.subject(*names)
        return ".".join((self.entity, VERSION, *map(token, names), ">"))

    def names_of(self, subject: str) -> tuple[str, ...]:
        """Read the names back from a subject.

        Raises:
            AddressError: it is none of this family.
            SubjectError: one of its tokens is no name.
        """
        entity, _, rest = subject.partition(".")
        version, *tokens = rest.split(".")
        if (entity, version, len(tokens)) != (self.entity, VERSION, len(self.names)):
            raise AddressError(subject, f"is none of {self.pattern}")
        return tuple(map(untoken, tokens))


class Topic(SubjectFamily, Generic[M], frozen=True, kw_only=True):
    """Subjects that carry messages of one type, each on the subject of its address."""

    codec: Codec[M]
    zstd: bool = False
    """True if bodies are compressed."""
    every_message: bool = False
    """True if readers need all messages, not only the last of each subject."""
    lasts_s: int = 0
    """After so long a silence readers forget what was said on a subject; 0: never."""

    def subject_of(self, message: M) -> str:
        """Build the subject on which a message belongs."""
        return self.subject(*message.address)

    def decode(self, names: tuple[str, ...], data: bytes) -> M:
        """Read a message that came on the subject of these names.

        Raises:
            DecodeError: the bytes are no message of this topic.
            AddressError: the message is about something else than its subject.
        """
        message = self.codec.decode(data)
        if message.address != names:
            about = f"its message belongs to {', '.join(message.address)}"
            raise AddressError(self.subject(*names), about)
        return message


_NODE = ("cluster", "node")
_GANG = ("cluster", "namespace", "uid")

INVENTORIES: Topic[InventoryMessage] = Topic(
    entity="inv",
    names=_NODE,
    stream="INV",
    codec=Codec(InventoryMessage, "inventory"),
    zstd=True,
    lasts_s=DAY_S,
    senders=("nodeagent",),
    receivers=("solver", "publisher", "viewer"),
)
"""All pools of a node."""
HEALTH: Topic[HealthMessage] = Topic(
    entity="health",
    names=_NODE,
    stream="HEALTH",
    codec=Codec(HealthMessage, "health"),
    lasts_s=DAY_S,
    senders=("nodeagent",),
    receivers=("solver", "publisher", "viewer"),
    max_bytes=1 << 20,
)
"""The devices of a node that are not healthy."""
DRIFT: Topic[DriftFound] = Topic(
    entity="drift",
    names=_NODE,
    stream="HEALTH",
    codec=Codec(DriftFound, "drift"),
    lasts_s=DAY_S,
    senders=("nodeagent",),
    receivers=("viewer",),
    max_bytes=1 << 20,
)
"""The devices of a node that run otherwise than was decided."""
HEARTBEATS: Topic[HeartbeatMessage] = Topic(
    entity="hb",
    names=_NODE,
    stream="HB",
    codec=Codec(HeartbeatMessage, "heartbeat"),
    senders=("nodeagent",),
    receivers=("solver", "viewer"),
    max_bytes=1 << 20,
)
"""A node agent is alive."""
STATE: Topic[StateMessage] = Topic(
    entity="state",
    names=("cluster", "kind", "key"),
    stream="STATE",
    codec=Codec(StateMessage, "state"),
    zstd=True,
    senders=("publisher",),
    receivers=("solver", "publisher", "viewer"),
)
"""The objects of the cluster, one a subject."""
SUBMISSIONS: Topic[SubmissionMessage] = Topic(
    entity="submit",
    names=_GANG,
    stream="SUBMIT",
    codec=Codec(SubmissionMessage, "submission"),
    senders=("platform", "publisher"),
    receivers=("solver", "publisher", "platform", "viewer"),
)
"""A gang asks for devices; written once."""
COMMANDS: Topic[CommandMessage] = Topic(
    entity="cmd",
    names=_GANG,
    stream="CMD",
    codec=Codec(CommandMessage, "command"),
    every_message=True,
    senders=("platform", "publisher"),
    receivers=("solver", "publisher", "platform", "viewer"),
)
"""A gang is cancelled or released."""
DECISIONS: Topic[DecisionMessage] = Topic(
    entity="dec",
    names=_GANG,
    stream="DEC",
    codec=Codec(DecisionMessage, "decision"),
    senders=("solver",),
    receivers=("solver", "publisher", "platform", "viewer"),
)
"""Decisions about gangs."""
SOLVED: Topic[BatchSolved] = Topic(
    entity="solved",
    names=("cluster",),
    stream="DEC",
    codec=Codec(BatchSolved, "solved"),
    senders=("solver",),
    receivers=("publisher", "platform", "viewer"),
)
"""A batch of decisions is complete."""
FENCE: Topic[EpochClaimed] = Topic(
    entity="fence",
    names=("cluster",),
    stream="DEC",
    codec=Codec(EpochClaimed, "fence"),
    senders=("solver",),
    receivers=("solver", "platform", "viewer"),
)
"""The solver that leads holds its epoch here."""
CONFIRMATIONS: Topic[ConfirmationMessage] = Topic(
    entity="conf",
    names=_GANG,
    stream="CONF",
    codec=Codec(ConfirmationMessage, "confirmation"),
    senders=("publisher",),
    receivers=("solver", "publisher", "platform", "viewer"),
)
"""What became of each decision."""
REPORTS: Topic[ReportMessage] = Topic(
    entity="report",
    names=("cluster", "namespace", "kind", "name"),
    stream="REPORT",
    codec=Codec(ReportMessage, "report"),
    senders=("publisher",),
    receivers=("publisher", "platform", "viewer"),
)
"""Why pods are not submitted yet, and what is wrong with running pods."""
AVOIDANCES: Topic[NodesAvoided] = Topic(
    entity="avoid",
    names=("cluster", "namespace", "name"),
    stream="AVOID",
    codec=Codec(NodesAvoided, "avoidance"),
    senders=("publisher",),
    receivers=("publisher", "platform", "viewer"),
)
"""Nodes that a gang avoids, because kube-scheduler refused them."""
LEADERS: Topic[PublisherLeads] = Topic(
    entity="leads",
    names=("cluster",),
    stream="LEADS",
    codec=Codec(PublisherLeads, "liveness"),
    senders=("publisher",),
    receivers=("platform", "viewer"),
)
"""A publisher leads beside a cluster."""
SOLVES: Topic[SolveMessage] = Topic(
    entity="solve",
    names=("cluster", "id"),
    stream="SOLVE",
    codec=Codec(SolveMessage, "solve"),
    senders=("solver",),
    receivers=("solver", "viewer"),
)
"""The recorded input of a solve, which is of all namespaces, and its answer."""
BLOBS = SubjectFamily(
    entity="blob",
    names=("sha256", "chunk"),
    stream="BLOB",
    senders=("solver",),
    receivers=("solver", "viewer"),
)
"""Content-addressed bytes in chunks, each read by its name. The last one is written
last, with `ok` in place of a number, and says how many are before it."""

GANG_TOPICS: tuple[Topic[Any], ...] = (
    SUBMISSIONS,
    COMMANDS,
    DECISIONS,
    CONFIRMATIONS,
)


"""The topics from which the life of each gang follows."""

TOPICS: tuple[Topic[Any], ...] = (
    INVENTORIES,
    HEALTH,
    DRIFT,
    HEARTBEATS,
    STATE,
    SUBMISSIONS,
    COMMANDS,
    DECISIONS,
    SOLVED,
    FENCE,
    CONFIRMATIONS,
    REPORTS,
    AVOIDANCES,
    LEADERS,
    SOLVES,
)

_MAX_BYTES = {family.entity: family.max_bytes for family in (*TOPICS, BLOBS)}


def max_bytes_of(subject: str) -> int:
    """Return how many bytes a message of this subject may have, unpacked."""
    return _MAX_BYTES.get(subject.partition(".")[0], BLOBS.max_bytes)
