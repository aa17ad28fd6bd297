"""The users of the bus, and the account of nats-server in which each of them lives.

The streams, the solver and the publisher are in one account, `CORE`. Everybody else is
outside, and CORE imports what they send, to relays only. A relay answers to an inbox of
the asker's account, which CORE imports as well. So a reply subject, which no permission
of nats-server looks at, never reaches a stream.

Source: docs/bus.md, "Users and accounts".
"""

from __future__ import annotations

from msgspec import Struct

from contracts.tokens import token

CORE = "CORE"
NODEAGENT = "nodeagent"
PLATFORM = "platform"
VIEWER = "viewer"
ACCOUNTS = {
    "solver": CORE,
    "publisher": CORE,
    NODEAGENT: "AGENTS",
    PLATFORM: "PLATFORMS",
    VIEWER: "VIEWERS",
}
"""By user. Who reads and sends nothing shares no account with who sends."""
USERS = tuple(ACCOUNTS)
OUTSIDE_ACCOUNTS = tuple(
    dict.fromkeys(account for account in ACCOUNTS.values() if account != CORE)
)
VOUCHED = (NODEAGENT, PLATFORM)
"""Users that show a Kubernetes token, where servers ask the auth callout."""
ANSWER_WITHIN_S = 6
"""A relay that has said nothing for so long will not answer."""
MAX_MESSAGE_MIB = {NODEAGENT: 4, PLATFORM: 1, VIEWER: 1}
"""The largest message of a user outside of CORE, where accounts are ours; the server
ends the connection of who sends more."""
CALLOUT = "authcallout"
"""The user that answers servers about tokens, in an account of its own."""
CALLOUT_SUBJECT = "$SYS.REQ.USER.AUTH"

_JETSTREAM_API = "$JS.API"
_IMPORTED_API = "JS.CORE.API"
"""nats-server keeps `$JS.API` of an account for that account's own streams."""


class NamespaceRights(Struct, frozen=True, kw_only=True):
    """Rights of a platform on the gangs of a namespace."""

    namespace: str | None
    """None: of every namespace."""
    submit: bool = False
    command: bool = False
    read: bool = False


def logins_of(user: str) -> tuple[str, str]:
    """Give the names by which nats-server knows a user.

    Two, each with a password of its own, so that one can be replaced while clients use
    the other.
    """
    return f"{user}.a", f"{user}.b"


def password_variable(login: str) -> str:
    """Name what stands for a login's password in nats-server's configuration."""
    return f"{login.replace('.', '_').upper()}_PASSWORD"


def role_of(user: str) -> str:
    """Give the user of the table that a user is: its first word.

    Who shows a token of Kubernetes says more: `nodeagent NODE`, `platform USERNAME`.
    """
    return user.partition(" ")[0]


def is_outside(user: str) -> bool:
    """True if a user reaches the streams only by imports."""
    return ACCOUNTS.get(role_of(user), CORE) != CORE


def api_prefix(user: str) -> str:
    """Return the prefix of a user's subjects for JetStream requests."""
    return _IMPORTED_API if is_outside(user) else _JETSTREAM_API


def relay_prefix(account: str) -> str:
    """Return the prefix in CORE of what an account asks of JetStream."""
    return f"relay.{account}"


def put_prefix(account: str) -> str:
    """Return the prefix in CORE of what users of an account publish."""
    return f"put.{account}"


def news_subject(account: str, subject: str) -> str:
    """Name where an account is sent news that it hears as `subject`."""
    return f"news.{account}.{subject}"


def answer_subject(account: str, inbox: str) -> str:
    """Name where an account is sent what it hears in an inbox."""
    return f"answer.{account}.{inbox}"


def max_message_bytes(user: str, server_bytes: int) -> int:
    """Return the largest message of a user, where its server takes so many bytes."""
    mebibytes = MAX_MESSAGE_MIB.get(role_of(user))
    return server_bytes if mebibytes is None else min(server_bytes, mebibytes << 20)


def inbox_prefix(user: str) -> str:
    """Give the beginning of all subjects on which a user is answered."""
    return f"_INBOX.{token(user)}" if user else "_INBOX"
