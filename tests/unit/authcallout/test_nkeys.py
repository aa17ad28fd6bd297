"""Keys as nats-io/nkeys writes them; what was sealed or signed by others is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from authcallout.errors import KeyTextError
from authcallout.nkeys import (
    AccountKey,
    CurveKey,
    decode_public,
    decode_seed,
    encode_public,
    is_signed,
)
from tests.lab.nkeys import encode_seed

# The pair in NATS' own documentation of nkeys.
USER_SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
USER = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
raw_keys = st.binary(min_size=32, max_size=32)
kinds = st.sampled_from(["account", "server", "user", "curve"])


def curve(number: int) -> CurveKey:
    return CurveKey(encode_seed("curve", bytes([number]) * 32))


def test_a_documented_pair_of_keys_belongs_together() -> None:
    seed = SigningKey(decode_seed("user", USER_SEED))

    assert encode_public("user", bytes(seed.verify_key)) == USER
    assert encode_seed("user", bytes(seed)) == USER_SEED


@given(kinds, raw_keys)
def test_keys_come_back_as_they_were(kind: object, raw: bytes) -> None:
    assert decode_public(kind, encode_public(kind, raw)) == raw  # type: ignore[arg-type]
    assert decode_seed(kind, encode_seed(kind, raw)) == raw  # type: ignore[arg-type]


@given(raw_keys, st.integers(0, 55), st.sampled_from("ABCDEFGHIJKLMNOP234567=-*> "))
def test_a_changed_character_is_noticed(raw: bytes, at: int, char: str) -> None:
    text = encode_public("server", raw)
    changed = text[:at] + char + text[at + 1 :]
    if changed == text:
        return
    with pytest.raises(KeyTextError):
        decode_public("server", changed)


@given(st.text(max_size=70))
def test_no_text_is_more_than_refused(text: str) -> None:
    for decode in (decode_public, decode_seed):
        with pytest.raises(KeyTextError):
            decode("user", text)


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(KeyTextError, match="another kind"):
        decode_public("server", USER)
    with pytest.raises(KeyTextError, match="not a seed of this kind"):
        AccountKey(USER_SEED)


def test_a_secret_is_never_in_the_words_of_an_error() -> None:
    with pytest.raises(KeyTextError) as refused:
        CurveKey(USER_SEED)
    assert USER_SEED not in str(refused.value)


def test_only_its_receiver_opens_what_is_sealed() -> None:
    one, two, other = curve(1), curve(2), curve(3)
    sealed = one.seal(b"words", two.public)

    assert two.open(sealed, one.public) == b"words"
    for key, sender in ((other, one), (two, other)):
        with pytest.raises(KeyTextError):
            key.open(sealed, sender.public)
    with pytest.raises(KeyTextError):
        two.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), one.public)


@given(st.binary(max_size=120))
def test_garbage_opens_to_nothing(data: bytes) -> None:
    for sealed in (data, b"xkv1" + data):
        with pytest.raises(KeyTextError):
            curve(1).open(sealed, curve(2).public)


def test_a_server_signs_for_itself() -> None:
    key = SigningKey(bytes(32))
    server = encode_public("server", bytes(key.verify_key))
    signature = key.sign(b"data").signature

    assert is_signed(server, b"data", signature)
    assert not is_signed(server, b"other", signature)
    assert not is_signed(server, b"data", b"short")
