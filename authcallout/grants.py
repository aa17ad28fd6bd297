"""From an identity and what it asks for to its rights on the bus, without I/O.

A node agent is a service account that was named for it, with a token of a pod on the
node that it asks for. Everybody else is a platform, whose rights in a namespace are
those on Gangs there: who may create them may submit, who may delete them may command,
who may list and watch them may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from authcallout.errors import LoginRefusedError
from authcallout.login import ALL, AgentLogin, Identity, PlatformLogin
from runtime.users import NODEAGENT, NamespaceRights

Verb = Literal["create", "delete", "list", "watch"]
VERBS: tuple[Verb, ...] = ("create", "delete", "list", "watch")


class AccessQuestion(NamedTuple):
    """May a user do this with Gangs of a namespace? Empty: of all of them."""

    verb: Verb
    namespace: str


def check_agent(login: AgentLogin, identity: Identity, agents: tuple[str, ...]) -> None:
    """Require that a token is that of the node's agent.

    `agents` are usernames of service accounts.

    Raises:
        LoginRefusedError: it is somebody else's, or another node's.
    """
    if identity.username not in agents:
        raise LoginRefusedError("token", f"{identity.username} is not a {NODEAGENT}")
    if not identity.node:
        raise LoginRefusedError("token", "is bound to no pod on a node")
    if identity.node != login.node:
        reason = f"is of a pod on node {identity.node}, not on {login.node}"
        raise LoginRefusedError("token", reason)


def check_platform(login: PlatformLogin, identity: Identity) -> None:
    """Require that a token is that of the user who is named.

    Raises:
        LoginRefusedError: it is somebody else's.
    """
    if identity.username != login.username:
        reason = f"is of {identity.username}, not of {login.username}"
        raise LoginRefusedError("token", reason)


def questions(login: PlatformLogin) -> Iterator[AccessQuestion]:
    """List the questions to the API server about a platform."""
    for namespace in login.namespaces:
        for verb in VERBS:
            yield AccessQuestion(verb, "" if namespace == ALL else namespace)


def rights_of(
    login: PlatformLogin, answers: Mapping[AccessQuestion, bool]
) -> tuple[NamespaceRights, ...]:
    """Give the rights in each namespace asked for.

    Raises:
        LoginRefusedError: there are none in one of them.
    """
    rights = []
    for namespace in login.namespaces:
        place = "" if namespace == ALL else namespace
        may = {verb: answers[AccessQuestion(verb, place)] for verb in VERBS}
        found = NamespaceRights(
            namespace=place or None,
            submit=may["create"],
            command=may["delete"],
            read=may["list"] and may["watch"],
        )
        if not (found.submit or found.command or found.read):
            where = f"namespace {place}" if place else "all namespaces"
            reason = f"may do nothing with gangs.moorings.dev in {where}"
            raise LoginRefusedError(login.username, reason)
        rights.append(found)
    return tuple(rights)
