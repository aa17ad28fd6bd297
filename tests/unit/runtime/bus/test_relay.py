"""Whom a relay takes for one who asks."""

from __future__ import annotations

import pytest

from runtime.bus.relay import name_client
from runtime.bus.subscription import Delivery


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ('{"acc":"VIEWERS","server":"a","id":7,"host":"1.2.3.4"}', "VIEWERS a 7"),
        ('{"acc":"VIEWERS"}', "VIEWERS  0"),
        ("[", ""),
    ],
)
def test_a_client_is_a_connection_of_a_server(told: str, name: str) -> None:
    delivery = Delivery("relay.VIEWERS.x", "r", b"", {"Nats-Request-Info": told})
    assert name_client(delivery) == name


def test_who_is_not_named_is_one_client() -> None:
    assert name_client(Delivery("relay.VIEWERS.x", "r", b"", {})) == "  0"
