"""Seeds of NATS' keys, written as NATS' own tools write them."""

from __future__ import annotations

import base64
import binascii

from authcallout.nkeys import Kind

_PREFIXES: dict[Kind, int] = {
    "account": 0,
    "server": 13 << 3,
    "user": 20 << 3,
    "curve": 23 << 3,
}
_SEED = 18 << 3


def encode_seed(kind: Kind, raw: bytes) -> str:
    """Write a private key of 32 bytes as text."""
    prefix = _PREFIXES[kind]
    data = bytes([_SEED | prefix >> 5, (prefix & 31) << 3]) + raw
    checked = data + binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(checked).decode().rstrip("=")
