"""Permissions of each user of the bus, as nats-server's configuration.

Follows from the topics and from how the bus reads streams: consumers or pages, the last
message of a subject, blobs in pieces. Written by `moorings permissions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from contracts.streams import STREAMS
from contracts.topics import (
    BLOBS,
    FENCE,
    GANG_TOPICS,
    TOPICS,
    SubjectFamily,
    Topic,
)
from runtime.users import (
    ACCOUNTS,
    CALLOUT,
    CALLOUT_SUBJECT,
    CORE,
    MAX_MESSAGE_MIB,
    NODEAGENT,
    OUTSIDE_ACCOUNTS,
    PLATFORM,
    USERS,
    VIEWER,
    VOUCHED,
    answer_subject,
    api_prefix,
    inbox_prefix,
    is_outside,
    logins_of,
    news_subject,
    password_variable,
    put_prefix,
    relay_prefix,
    role_of,
)

PASSWORDS = "passwords/passwords.conf"
"""Where the server reads `SOLVER_A_PASSWORD: ...`, from the folder of its accounts."""
CALLOUT_KEYS = "callout/callout.conf"
"""Where it reads the public keys of the callout, and its passwords."""
CREATORS = ("solver", "publisher")
"""Users that create missing streams, and update older ones."""
RELAYS = ("solver", "publisher")
"""Users whose relays ask and store for those outside, and tell them what is new."""
_INBOXES = "_INBOX.>"
"""Where users outside are answered."""
STORED = {
    (ACCOUNTS[user], topic.entity): topic.stream
    for topic in TOPICS
    for user in filter(is_outside, topic.senders)
}
"""The stream that stores what an outside account says on the subjects of an entity."""
RETIRER = "solver"
"""The user that removes gangs that ended long ago."""
SUBSCRIBERS = (PLATFORM, VIEWER)
"""Users that may subscribe to news, and read streams by pages."""
MAX_CONSUMERS = 4_096
"""Of one stream, whoever made them (nats-server counts so)."""
_SUBSCRIPTIONS = 128
"""Of one connection: who asks under many is answered under each."""
_READING = ("CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE", "CONSUMER.MSG.NEXT")
_API = api_prefix("")
_CALLOUT_ACCOUNT = "CALLOUT"
_PREFIXES = {stream.name: stream.republish for stream in STREAMS}


def _outside_limits(user: str, *, connections: int) -> str:
    """Write the limits of the account of a user outside of CORE."""
    limits = (
        f"max_connections: {connections}",
        f"max_subscriptions: {_SUBSCRIPTIONS}",
        f"max_payload: {MAX_MESSAGE_MIB[user]}MB",
    )
    return f"limits {{ {', '.join(limits)} }}"


_LIMITS = {
    CORE: (
        f"jetstream {{ max_streams: {len(STREAMS)}, max_consumers: {MAX_CONSUMERS} }}",
    ),
    "AGENTS": (_outside_limits(NODEAGENT, connections=16_384),),
    "PLATFORMS": (_outside_limits(PLATFORM, connections=512),),
    "VIEWERS": (_outside_limits(VIEWER, connections=64),),
}
"""So that no account uses up a server. An agent has a connection, and a second while a
newer one takes its place."""


class Permissions(Struct, frozen=True, kw_only=True):
    """Subjects, with wildcards, that a user may use; all others are refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def permissions_of(user: str) -> Permissions:
    """Return what a user may do on the subjects of its account.

    Of a user with more words than its role: what the role needs, by this user's names.
    """
    role = role_of(user)
    publish = {_local_subject(role, subject) for subject in _list_published(role)}
    return Permissions(
        publish=_order_subjects(publish),
        subscribe=_order_subjects((f"{inbox_prefix(user)}.>", *_list_subscribed(role))),
    )


def last_of(user: str, stream: str, subjects: str) -> str:
    """Name where a user asks for the last message of subjects, each by its name."""
    return f"{api_prefix(user)}.DIRECT.GET.{stream}.{subjects}"


def republished(topic: Topic[Any], subjects: str) -> str:
    """Name where subscribers hear what is stored on a topic's subjects."""
    return f"{_PREFIXES[topic.stream]}.{subjects}"


def news_of(account: str) -> tuple[str, ...]:
    """List what users of an account may hear, as streams republish it in CORE."""
    users = filter(SUBSCRIBERS.__contains__, _users_in(account))
    return _order_subjects(s for user in users for s in _list_news(user))


def server_configuration(*, tokens: bool = False) -> str:
    """Write the accounts of nats-server.

    Passwords are variables of a file beside it, such as `$SOLVER_A_PASSWORD`. With
    `tokens` the server asks the callout about node agents, platforms and whoever it
    does not know; the callout's password and public keys are in a file of their own.
    """
    lines = ["# Written by `moorings permissions`.", f"include ./{PASSWORDS}"]
    lines += _delegation() if tokens else ()
    for user in USERS:
        lines += _write_permissions(user)
    lines += ["accounts {"]
    for account in dict.fromkeys(ACCOUNTS.values()):
        lines += [f"  {account} {{", *(f"    {line}" for line in _LIMITS[account])]
        lines += _imports_of_core() if account == CORE else _exports_of(account)
        lines += ["    users: ["]
        for user in _users_in(account):
            lines += _list_logins(user)
        lines += ["    ]", "  }"]
    lines += _callout() if tokens else ()
    return "\n".join([*lines, "}", ""])


def _delegation() -> Iterator[str]:
    """Ask the callout about all but the services and the viewer.

    The passwords of the others stay in the file beside it, and open nothing.
    """
    yield f"include ./{CALLOUT_KEYS}"
    yield "authorization {"
    yield "  timeout: 5"
    yield "  auth_callout {"
    yield f"    account: {_CALLOUT_ACCOUNT}"
    users = (*(user for user in USERS if user not in VOUCHED), CALLOUT)
    logins = (login for user in users for login in logins_of(user))
    yield f"    auth_users: [{', '.join(logins)}]"
    yield "    issuer: $AUTHCALLOUT_ISSUER"
    yield "    xkey: $AUTHCALLOUT_XKEY"
    yield "  }"
    yield "}"
    yield f"{_permissions_variable(CALLOUT)} {{"
    yield from _write_list("subscribe", (CALLOUT_SUBJECT, f"{inbox_prefix(CALLOUT)}.>"))
    # To nobody but who asked.
    yield '  allow_responses: { max: 1, expires: "1m" }'
    yield "}"


def _callout() -> Iterator[str]:
    """Yield the account of the callout, which only answers leave."""
    yield f"  {_CALLOUT_ACCOUNT} {{"
    yield "    limits { max_connections: 16, max_subscriptions: 64 }"
    yield "    users: ["
    yield from _list_logins(CALLOUT)
    yield "    ]"
    yield "  }"


def _users_in(account: str) -> tuple[str, ...]:
    return tuple(user for user in USERS if ACCOUNTS[user] == account)


def _write_permissions(user: str) -> Iterator[str]:
    """Name what a user may do, for each of its logins."""
    allowed = permissions_of(user)
    yield f"{_permissions_variable(user)} {{"
    yield from _write_list("publish", allowed.publish)
    yield from _write_list("subscribe", allowed.subscribe)
    yield "}"


def _permissions_variable(user: str) -> str:
    return f"{user.upper()}_PERMISSIONS"


def _list_logins(user: str) -> Iterator[str]:
    for login in logins_of(user):
        password = f"password: ${password_variable(login)}"
        permissions = f"permissions: ${_permissions_variable(user)}"
        yield f"      {{ user: {login}, {password}, {permissions} }}"


def _write_list(what: str, subjects: tuple[str, ...]) -> Iterator[str]:
    yield f"  {what} {{ allow: ["
    yield from (f'    "{subject}"' for subject in subjects)
    yield "  ] }"


def _imports_of_core() -> Iterator[str]:
    """Yield what the account of the streams hears from others, and what it tells them.

    It hears messages, which the server hands to a relay as they are. Requests that it
    answers the server would remember, with a reply of up to 4 kB each, until they are
    answered: a flood of them took gigabytes. What it tells others are requests without
    an answer. As streams that they import each of their subscriptions would be one
    here, and with many of them whatever is published here waits whenever somebody there
    subscribes.
    """
    yield "    imports: ["
    for account in OUTSIDE_ACCOUNTS:
        for local, subject in _list_heard(account):
            source = f'{{ account: {account}, subject: "{local}" }}'
            yield f'      {{ stream: {source}, to: "{subject}" }}'
    for account in OUTSIDE_ACCOUNTS:
        for local, subject in _list_told(account):
            source = f'{{ account: {account}, subject: "{local}" }}'
            yield f'      {{ service: {source}, to: "{subject}" }}'
    yield "    ]"


def _exports_of(account: str) -> Iterator[str]:
    """Yield what an account outside of CORE asks there, and what it is told."""
    yield "    exports: ["
    for subject, _ in _list_heard(account):
        yield f'      {{ stream: "{subject}", accounts: [{CORE}] }}'
    for subject, _ in _list_told(account):
        yield f'      {{ service: "{subject}", accounts: [{CORE}] }}'
    yield "    ]"


def _list_heard(account: str) -> list[tuple[str, str]]:
    """List what an account asks and publishes, and the names of that in CORE."""
    (user,) = _users_in(account)
    return [
        (_local_subject(user, subject), _heard_subject(user, subject))
        for subject in _order_subjects(_list_published(user))
    ]


def _list_told(account: str) -> list[tuple[str, str]]:
    """List what an account hears from relays, and the names of that in CORE."""
    told = [(_INBOXES, answer_subject(account, _INBOXES))]
    return told + [(news, news_subject(account, news)) for news in news_of(account)]


def _local_subject(user: str, subject: str) -> str:
    """Give the name that a subject of CORE has in the user's account."""
    if subject.startswith(_API):
        return f"{api_prefix(user)}{subject.removeprefix(_API)}"
    return subject


def _heard_subject(user: str, subject: str) -> str:
    """Give the subject of CORE that stands for a subject in a user's account."""
    account = ACCOUNTS[user]
    if subject.startswith(_API):
        return f"{relay_prefix(account)}{subject.removeprefix(_API)}"
    return f"{put_prefix(account)}.{subject}"


def _order_subjects(subjects: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(subjects)))


def _list_published(user: str) -> Iterator[str]:
    """Name what a user sends to CORE, as JetStream calls it there."""
    for topic in TOPICS:
        if user in topic.senders:
            yield topic.any_subject
        if user in (*topic.senders, *topic.receivers):
            # A sender looks at what is there: before it begins, and when it is refused.
            yield _name_lookup(user, topic)
            # Agents of a fleet ask first whether there is anything.
            yield f"{_API}.STREAM.MSG.GET.{topic.stream}"
        if user in topic.receivers:
            yield from _list_read(user, topic.stream)
    if user in CREATORS:
        for stream in STREAMS:
            yield f"{_API}.STREAM.CREATE.{stream.name}"
            yield f"{_API}.STREAM.UPDATE.{stream.name}"
            yield f"{_API}.STREAM.INFO.{stream.name}"
    if user == RETIRER:
        yield from (f"{_API}.STREAM.PURGE.{topic.stream}" for topic in GANG_TOPICS)
    if user in BLOBS.senders:
        yield BLOBS.any_subject
    if user in BLOBS.receivers:
        # How it is; and read by name, chunk by chunk, from any copy of the stream.
        yield f"{_API}.STREAM.INFO.{BLOBS.stream}"
        yield _name_lookup(user, BLOBS)
        yield last_of("", BLOBS.stream, BLOBS.any_subject)
    if user in RELAYS:
        yield from _list_relayed()


def _list_relayed() -> Iterator[str]:
    """Name what a relay asks and stores for others, and where it answers them."""
    for user in filter(is_outside, USERS):
        yield from _list_published(user)
    yield from (f"{_API}.DIRECT.GET.{stream.name}" for stream in STREAMS)
    for account in OUTSIDE_ACCOUNTS:
        yield from (subject for _, subject in _list_told(account))


def _name_lookup(user: str, family: SubjectFamily) -> str:
    """Name how a user reads the last message of a subject.

    From outside by its name, so that it can be allowed for one node or namespace.
    """
    if is_outside(user):
        return last_of("", family.stream, family.any_subject)
    return f"{_API}.STREAM.MSG.GET.{family.stream}"


def _list_read(user: str, stream: str) -> Iterator[str]:
    yield f"{_API}.STREAM.INFO.{stream}"
    yield f"{_API}.STREAM.MSG.GET.{stream}"
    if is_outside(user):
        # By pages; a relay makes sure that they are small.
        yield f"{_API}.DIRECT.GET.{stream}"
        return
    yield from (f"{_API}.{operation}.{stream}.*" for operation in _READING)


def _list_subscribed(user: str) -> Iterator[str]:
    """Name what a user hears: news; and a relay all that outsiders send, and news."""
    if user in SUBSCRIBERS:
        yield from _list_news(user)
    if user in RELAYS:
        for account in OUTSIDE_ACCOUNTS:
            yield f"{relay_prefix(account)}.>"
            yield from news_of(account)
        yield from (f"{put_prefix(account)}.>" for account, _ in STORED)


def _list_news(user: str) -> Iterator[str]:
    for topic in TOPICS:
        if topic is FENCE:
            continue  # written every second, and looked up when it is needed
        if user in topic.receivers and _PREFIXES[topic.stream]:
            # As `*.*.*` it would forbid `local.>`, by which people subscribe.
            yield republished(topic, topic.subjects_below())
