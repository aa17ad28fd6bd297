"""NATS' keys: as text, and what is signed, verified, sealed and opened with them.

An nkey is base32 of a prefix, 32 bytes and their CRC-16. The prefix makes its first
letter: `A` an account, `N` a server, `U` a user, `X` a key to seal with, `S` the seed
of one. Signatures are Ed25519; sealed is what NaCl's box makes (X25519 and
XSalsa20-Poly1305), behind `xkv1`. The one place that imports PyNaCl; its exceptions
stop here.
"""

from __future__ import annotations

import base64
import binascii
from typing import Literal

from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey
from nacl.signing import SigningKey, VerifyKey

from authcallout.errors import KeyTextError

Kind = Literal["account", "server", "user", "curve"]

_PREFIXES: dict[Kind, int] = {
    "account": 0,
    "server": 13 << 3,
    "user": 20 << 3,
    "curve": 23 << 3,
}
_SEED = 18 << 3
_PUBLIC_CHARACTERS = 56
_SEED_CHARACTERS = 58
_SEALED = b"xkv1"


def encode_public(kind: Kind, raw: bytes) -> str:
    """Write a public key of 32 bytes as text."""
    return _encode_key(bytes([_PREFIXES[kind]]) + raw)


def decode_public(kind: Kind, text: str) -> bytes:
    """Read the 32 bytes of a public key.

    Raises:
        KeyTextError: it is none of this kind.
    """
    data = _decode_key(kind, text, _PUBLIC_CHARACTERS)
    if data[0] != _PREFIXES[kind]:
        raise KeyTextError(kind, "is of another kind")
    return data[1:]


def decode_seed(kind: Kind, text: str) -> bytes:
    """Read the 32 bytes of a private key.

    Raises:
        KeyTextError: it is none of this kind; says nothing of the text.
    """
    data = _decode_key(kind, text, _SEED_CHARACTERS)
    prefix = (data[0] & 7) << 5 | data[1] >> 3
    if data[0] & 0xF8 != _SEED or prefix != _PREFIXES[kind]:
        raise KeyTextError(kind, "is not a seed of this kind")
    return data[2:]


class AccountKey:
    """Signs what an account vouches for."""

    def __init__(self, seed: str) -> None:
        """Take the key of a seed (`SA...`).

        Raises:
            KeyTextError: it is no seed of an account.
        """
        self._key = SigningKey(decode_seed("account", seed))
        self.public = encode_public("account", bytes(self._key.verify_key))
        """As servers name it (`A...`)."""

    def sign(self, data: bytes) -> bytes:
        """Make the signature of 64 bytes."""
        return self._key.sign(data).signature


class CurveKey:
    """Seals messages for a server, and opens those that servers seal for us."""

    def __init__(self, seed: str) -> None:
        """Take the key of a seed (`SX...`).

        Raises:
            KeyTextError: it is no seed of a curve key.
        """
        self._key = PrivateKey(decode_seed("curve", seed))
        self.public = encode_public("curve", bytes(self._key.public_key))
        """As servers name it (`X...`)."""

    def seal(self, data: bytes, receiver: str) -> bytes:
        """Seal a message so that one receiver (`X...`) alone can open it.

        Raises:
            KeyTextError: the receiver is no curve key.
        """
        box = self._make_box(receiver)
        return _SEALED + bytes(box.encrypt(data))

    def open(self, sealed: bytes, sender: str) -> bytes:
        """Open what a sender (`X...`) sealed for us.

        Raises:
            KeyTextError: the sender is no curve key, or did not seal this for us.
        """
        if not sealed.startswith(_SEALED):
            raise KeyTextError("curve", "the message is not sealed")
        try:
            return self._make_box(sender).decrypt(sealed[len(_SEALED) :])
        except (CryptoError, ValueError) as error:
            raise KeyTextError("curve", "the message was not sealed for us") from error

    def _make_box(self, other: str) -> Box:
        try:
            return Box(self._key, PublicKey(decode_public("curve", other)))
        except CryptoError as error:
            raise KeyTextError("curve", "cannot be used") from error


def is_signed(server: str, data: bytes, signature: bytes) -> bool:
    """True if a server (`N...`) signed this.

    Raises:
        KeyTextError: that is no key of a server.
    """
    try:
        VerifyKey(decode_public("server", server)).verify(data, signature)
    except (CryptoError, ValueError):
        return False
    return True


def _encode_key(data: bytes) -> str:
    checked = data + _checksum(data)
    return base64.b32encode(checked).decode().rstrip("=")


def _decode_key(kind: Kind, text: str, characters: int) -> bytes:
    if len(text) != characters:
        raise KeyTextError(kind, f"must have {characters} characters")
    try:
        checked = base64.b32decode(text + "=" * (-characters % 8))
    except (binascii.Error, ValueError) as error:
        raise KeyTextError(kind, "is not base32") from error
    data, checksum = checked[:-2], checked[-2:]
    if checksum != _checksum(data) or _encode_key(data) != text:
        raise KeyTextError(kind, "its checksum is wrong")
    return data


def _checksum(data: bytes) -> bytes:
    return binascii.crc_hqx(data, 0).to_bytes(2, "little")
