"""The bus user that a client asks to be, and the identity of its token.

The user of a connection is words, its password a token of Kubernetes:

    nodeagent NODE
    platform USERNAME [NAMESPACE ...]     # none: that of the service account; *: all

Nothing here is believed yet: the words are compared with what a TokenReview says.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from authcallout.errors import LoginRefusedError
from contracts.validate.names import check_dns_label, check_dns_subdomain
from runtime.users import NODEAGENT, PLATFORM

MAX_TOKEN_CHARACTERS = 8 << 10
MAX_USER_CHARACTERS = 2 << 10
MAX_NAMESPACES = 16
ALL = "*"
"""Asked for in place of namespaces: all of them, also those that will be."""
NODE_EXTRA = "authentication.kubernetes.io/node-name"
"""In a TokenReview: the node of the pod that a token is bound to (KEP-4193)."""
_SERVICE_ACCOUNT = "system:serviceaccount:"


class AgentLogin(Struct, frozen=True):
    """To be the agent of a node."""

    node: str


class PlatformLogin(Struct, frozen=True):
    """To submit gangs to namespaces, and to read what became of them."""

    username: str
    namespaces: tuple[str, ...]
    """The named namespaces, or `*` alone; never empty."""


class Identity(Struct, frozen=True, kw_only=True):
    """The identity of a token, in the API server's words."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def node(self) -> str:
        """The node of the pod that the token is bound to; empty: there is none."""
        found = self.extra.get(NODE_EXTRA, ())
        return found[0] if len(found) == 1 else ""


class _Claims(Struct, frozen=True):
    aud: str | tuple[str, ...]
    exp: Annotated[int, Meta(ge=0, le=1 << 40)]


def read_token(token: str, audience: str, now_s: float) -> int:
    """Give when a token expires; seconds since the epoch.

    Spares the API server what cannot be meant for us; that the claims are true is for
    its review to say.

    Raises:
        LoginRefusedError: it is not a JSON web token for this audience, or has expired.
    """
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise LoginRefusedError("token", f"{len(token)} characters")
    try:
        _, body, _ = token.encode().split(b".")
        claims = msgspec.json.decode(
            base64.b64decode(body + b"=" * (-len(body) % 4), altchars=b"-_"),
            type=_Claims,
        )
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise LoginRefusedError("token", "is not a JSON web token") from error
    audiences = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
    if audience not in audiences:
        raise LoginRefusedError("token", f"is not for the audience {audience}")
    if claims.exp <= now_s:
        raise LoginRefusedError("token", "has expired")
    return claims.exp


def read_login(user: str) -> AgentLogin | PlatformLogin:
    """Read the words of a user.

    Raises:
        LoginRefusedError: they ask for nothing that there is.
    """
    if len(user) > MAX_USER_CHARACTERS:
        raise LoginRefusedError("user", f"{len(user)} characters")
    if not user.isprintable():
        raise LoginRefusedError("user", "has characters that cannot be printed")
    match user.split(" "):
        case [role, node] if role == NODEAGENT:
            if any(check_dns_subdomain(node, "user")):
                raise LoginRefusedError("user", f"{node[:80]!r} is not a node name")
            return AgentLogin(node)
        case [role, username, *namespaces] if role == PLATFORM and username:
            return PlatformLogin(username, _read_namespaces(username, namespaces))
    asked = user.partition(" ")[0][:80]
    raise LoginRefusedError(
        "user",
        f"{asked!r}: `{NODEAGENT} NODE` or `{PLATFORM} USERNAME [NAMESPACE ...]`",
    )


def _read_namespaces(username: str, words: list[str]) -> tuple[str, ...]:
    if words == [ALL]:
        return (ALL,)
    if not words:
        own, separator, _ = username.removeprefix(_SERVICE_ACCOUNT).partition(":")
        if not (username.startswith(_SERVICE_ACCOUNT) and separator):
            raise LoginRefusedError(
                "user", "names no namespace, and has none of its own"
            )
        words = [own]
    if len(words) > MAX_NAMESPACES:
        reason = f"names {len(words)} namespaces, more than {MAX_NAMESPACES}"
        raise LoginRefusedError("user", reason)
    for namespace in words:
        if any(check_dns_label(namespace, "user")):
            reason = f"{namespace[:80]!r} is not a namespace"
            raise LoginRefusedError("user", reason)
    return tuple(dict.fromkeys(words))


def read_review(status: Mapping[str, Any], audience: str) -> Identity:
    """Read the status of a TokenReview that was asked for an audience.

    Raises:
        LoginRefusedError: the token is nobody's, or for another audience.
    """
    if status.get("authenticated") is not True:
        error = str(status.get("error") or "is not valid")[:200]
        raise LoginRefusedError("token", error)
    # An API server that knows no audiences says nothing of them.
    if audience not in (status.get("audiences") or ()):
        raise LoginRefusedError("token", f"is not for the audience {audience}")
    user = status.get("user") or {}
    username = str(user.get("username") or "")
    if not username or " " in username or not username.isprintable():
        raise LoginRefusedError(
            "token", f"the username {username[:80]!r} is not one word"
        )
    return Identity(
        username=username,
        uid=str(user.get("uid") or ""),
        groups=tuple(map(str, user.get("groups") or ())),
        extra={
            str(key): tuple(map(str, values or ()))
            for key, values in (user.get("extra") or {}).items()
        },
    )
