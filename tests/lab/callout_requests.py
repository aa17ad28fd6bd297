"""Authorization requests as nats-server makes them."""

from __future__ import annotations

import base64
import json
from typing import Any

from nacl.signing import SigningKey

from authcallout.nkeys import AccountKey, CurveKey, encode_public
from tests.lab.nkeys import encode_seed

NOW_S = 1_000_000
SERVER_KEY = SigningKey(b"s" * 32)
SERVER = encode_public("server", bytes(SERVER_KEY.verify_key))
USER = encode_public("user", b"u" * 32)
OURS = CurveKey(encode_seed("curve", b"o" * 32))
THEIRS = CurveKey(encode_seed("curve", b"t" * 32))
ISSUER_SEED = b"i" * 32
ISSUER = AccountKey(encode_seed("account", ISSUER_SEED))


def base64_of(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def request(*, key: SigningKey = SERVER_KEY, alg: str = "", **claims: Any) -> bytes:
    """Make a request as nats-server does, sealed; claims of `nats` by `nats_`."""
    nats = {
        "server_id": {"id": SERVER, "xkey": THEIRS.public, "name": "nats-0"},
        "user_nkey": USER,
        "client_info": {"host": "192.0.2.1", "name": "agent"},
        "connect_opts": {"user": "nodeagent n", "pass": "t", "protocol": 1},
        "type": "authorization_request",
        "version": 2,
    }
    for name in [name for name in claims if name.startswith("nats_")]:
        nats[name.removeprefix("nats_")] = claims.pop(name)
    body = {
        "aud": "nats-authorization-request",
        "exp": NOW_S + 2,
        "iss": SERVER,
        "sub": ISSUER.public,
        "nats": nats,
        **claims,
    }
    head = {"typ": "JWT", "alg": alg or "ed25519-nkey"}
    signed = f"{base64_of(head)}.{base64_of(body)}"
    signature = base64_of(key.sign(signed.encode()).signature)
    return THEIRS.seal(f"{signed}.{signature}".encode(), OURS.public)
