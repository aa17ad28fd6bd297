"""The JSON web tokens of NATS' auth callout: a server's request, our answer, a user.

As nats-io/jwt v2 and ADR-26 have them: `ed25519-nkey` signatures, claims of NATS under
`nats`. A request is believed only if a server signed it, for this purpose, not long
ago, and names the key that its answer will be sealed for. Time is an argument.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from authcallout.errors import KeyTextError, RequestError
from authcallout.nkeys import AccountKey, CurveKey, decode_public, is_signed

AUTHORIZATION = "nats-authorization-request"
"""Audience of a server's request."""
SERVER_KEY_HEADER = "Nats-Server-Xkey"
MAX_REQUEST_BYTES = 64 << 10
"""Of a sealed request; a server's CONNECT line has 4 KiB, certificates may be added."""
_ALGORITHM = "ed25519-nkey"
_VERSION = 2
_HEADER = msgspec.json.encode({"typ": "JWT", "alg": _ALGORITHM})

T = TypeVar("T")


class _Header(Struct, frozen=True):
    alg: str


class AskingServer(Struct, frozen=True, kw_only=True):
    """The server that asks."""

    id: str
    xkey: str = ""
    name: str = ""


class ConnectOptions(Struct, frozen=True, kw_only=True):
    """Options in the client's CONNECT line."""

    user: str = ""
    password: str = field(name="pass", default="")


class ConnectingClient(Struct, frozen=True, kw_only=True):
    """The client as the server knows it."""

    host: str = ""
    name: str = ""


class AuthorizationRequest(Struct, frozen=True, kw_only=True):
    """May this client connect, and as what?"""

    server_id: AskingServer
    user_nkey: str
    """The key, made for this connection, that the answer must be about."""
    client_info: ConnectingClient = ConnectingClient()
    connect_opts: ConnectOptions = ConnectOptions()
    type: str


class _RequestClaims(Struct, frozen=True, kw_only=True):
    aud: str
    exp: int
    iss: str
    nats: AuthorizationRequest


class BusUser(Struct, frozen=True, kw_only=True):
    """The user of a connection: what it may do, and for how long."""

    name: str
    """Shown by the server's monitoring and in its log."""
    account: str
    """The account of the bus it is let into."""
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    expires_s: int
    """When the server ends the connection; seconds since the epoch."""


def open_request(
    sealed: bytes, sender: str, key: CurveKey, now_s: float
) -> AuthorizationRequest:
    """Read what came on the callout's subject, sealed by `sender` (`X...`).

    Raises:
        RequestError: no server asks us this, or not any more.
    """
    if len(sealed) > MAX_REQUEST_BYTES:
        raise RequestError("$", f"{len(sealed)} bytes")
    try:
        claims = _read_signed(key.open(sealed, sender))
        request = claims.nats
        decode_public("user", request.user_nkey)
    except KeyTextError as error:
        raise RequestError("$", str(error)) from error
    wrong = {
        "aud": claims.aud != AUTHORIZATION,
        "iss": claims.iss != request.server_id.id,
        "exp": claims.exp <= now_s,
        "nats.type": request.type != "authorization_request",
        "nats.server_id.xkey": request.server_id.xkey != sender,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise RequestError(name, "is malformed")
    return request


def grant(
    request: AuthorizationRequest, user: BusUser, issuer: AccountKey, now_s: int
) -> bytes:
    """Answer with a user; `seal_answer` makes it travel."""
    claims = {
        "sub": request.user_nkey,
        "name": user.name,
        "aud": user.account,
        "exp": user.expires_s,
        "nats": {
            "type": "user",
            "version": _VERSION,
            "pub": {"allow": user.publish},
            "sub": {"allow": user.subscribe},
            # Neither by WebSocket, nor MQTT, nor as a server.
            "allowed_connection_types": ["STANDARD"],
            "subs": -1,
            "data": -1,
            "payload": -1,
        },
    }
    return _make_answer(
        request, "jwt", _sign_claims(claims, issuer, now_s).decode(), issuer, now_s
    )


def refuse(
    request: AuthorizationRequest, reason: str, issuer: AccountKey, now_s: int
) -> bytes:
    """Answer that there is no user; the server logs the reason, no client hears it."""
    return _make_answer(request, "error", reason, issuer, now_s)


def _make_answer(
    request: AuthorizationRequest, what: str, said: str, issuer: AccountKey, now_s: int
) -> bytes:
    claims = {
        "sub": request.user_nkey,
        "aud": request.server_id.id,
        "nats": {"type": "authorization_response", "version": _VERSION, what: said},
    }
    return _sign_claims(claims, issuer, now_s)


def _sign_claims(claims: dict[str, Any], issuer: AccountKey, now_s: int) -> bytes:
    body = {**claims, "iss": issuer.public, "iat": now_s}
    body["jti"] = hashlib.sha256(msgspec.json.encode(body)).hexdigest()
    signed = b".".join((_to_base64(_HEADER), _to_base64(msgspec.json.encode(body))))
    return b".".join((signed, _to_base64(issuer.sign(signed))))


def _read_signed(token: bytes) -> _RequestClaims:
    """Read claims that the server whom they name has signed."""
    parts = token.split(b".")
    if len(parts) != 3:
        raise RequestError("$", f"{len(parts)} parts, not the three of a JWT")
    header, body, signature = map(_from_base64, parts)
    if _read_claims(header, _Header).alg != _ALGORITHM:
        raise RequestError("alg", f"is not {_ALGORITHM}")
    claims = _read_claims(body, _RequestClaims)
    if not is_signed(claims.iss, b".".join(parts[:2]), signature):
        raise RequestError("iss", "did not sign it")
    return claims


def _read_claims(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError("$", str(error)) from error


def _to_base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _from_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(
            text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True
        )
    except binascii.Error as error:
        raise RequestError("$", "is not base64") from error
