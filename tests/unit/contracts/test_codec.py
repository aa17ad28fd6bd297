"""Bytes that are not what they should be are refused by name and field."""

from __future__ import annotations

import pytest

from contracts import topics
from contracts.codec import Codec, convert, encode, to_builtins
from contracts.device import DeviceCapacity
from contracts.errors import DecodeError
from contracts.meta import ObjectMeta
from tests.builders import device, gang, quantity

META: Codec[ObjectMeta] = Codec(ObjectMeta, "metadata")
CAPACITY: Codec[DeviceCapacity] = Codec(DeviceCapacity, "capacity")


@pytest.mark.parametrize(
    ("data", "field", "reason"),
    [
        (b"", "$", "truncated"),
        (b"{", "$", "truncated"),
        (b"\xff", "$", "malformed"),
        (b"[]", "$", "Expected `object`, got `array`"),
        (b'{"name": 1}', "$.name", "Expected `str`, got `int`"),
        (b'{"labels": {"a": 1}}', "$.labels[...]", "Expected `str`, got `int`"),
        (b'{"name": "\xff"}', "$", ""),
        (b"[" * 100_000, "$", ""),
    ],
)
def test_errors_say_what_and_where(data: bytes, field: str, reason: str) -> None:
    """The message by name, the field by path."""
    with pytest.raises(DecodeError) as raised:
        META.decode(data)

    assert raised.value.what == "metadata"
    assert raised.value.field == field
    assert reason in raised.value.reason


def test_a_key_that_is_no_text_is_named() -> None:
    """By the map that it stands in."""
    with pytest.raises(DecodeError) as raised:
        convert({"labels": {1: "a"}}, ObjectMeta, "metadata")

    assert raised.value.field == "$.labels"
    assert raised.value.reason == "key: Expected `str`, got `int`"


@pytest.mark.parametrize("value", [b'"x"', b"true", b"[]"])
def test_a_capacity_that_is_no_quantity_is_refused(value: bytes) -> None:
    """Nothing but a quantity is read as one."""
    with pytest.raises(DecodeError, match="value"):
        CAPACITY.decode(b'{"value": %s}' % value)


@pytest.mark.parametrize(("data", "text"), [(b"5", "5"), (b"0.5", "500m")])
def test_numbers_are_quantities_too(data: bytes, text: str) -> None:
    """As the API server accepts them."""
    assert CAPACITY.decode(b'{"value": %s}' % data).value == quantity(text)


def test_a_message_of_another_subject_is_refused() -> None:
    """The codec of a subject reads its own messages alone."""
    with pytest.raises(DecodeError, match="decision"):
        topics.DECISIONS.codec.decode(
            b'{"type": "NodeSeen", "cluster": "c", "node": "n"}'
        )


@pytest.mark.parametrize(
    "change",
    [
        {"uid": ""},
        {"uid": "../../x"},
        {"uid": "a\n"},
        {"uid": "a\x00"},
        {"gang": {"metadata": {"name": ""}, "spec": {"members": [{"name": "a"}]}}},
        {"gang": {"metadata": {"name": "g"}, "spec": {}}},
        {"gang": {"metadata": {"name": "g"}, "spec": {"members": [{"name": "a"}] * 2}}},
    ],
)
def test_a_submission_that_is_not_well_formed_is_refused(
    change: dict[str, object],
) -> None:
    """Before anybody acts on it."""
    body = {"type": "SubmitGang", "cluster": "c", "uid": "u", "gang": gang()}
    assert topics.SUBMISSIONS.codec.decode(encode(body)).gang == gang()

    with pytest.raises(DecodeError, match="submission"):
        topics.SUBMISSIONS.codec.decode(encode({**body, **change}))


def test_equal_values_have_equal_bytes() -> None:
    """Whatever order their maps were made in."""
    one = device(attributes={"a": 1, "b": 2}, capacity={"m": "1Gi"})
    two = device(attributes={"b": 2, "a": 1}, capacity={"m": "1Gi"})

    assert encode(one) == encode(two)


def test_builtins_are_lists_and_texts() -> None:
    """What any JSON or YAML writer takes."""
    raw = to_builtins(device(capacity={"m": "1Gi"}, taints=()))

    assert raw == {"name": "gpu-0", "capacity": {"m": {"value": "1Gi"}}}
    assert isinstance(to_builtins(gang())["spec"]["members"], list)


def test_half_a_character_of_yaml_is_refused() -> None:
    with pytest.raises(DecodeError, match="surrogates"):
        convert({"\ud800": "x"}, ObjectMeta, "f")
