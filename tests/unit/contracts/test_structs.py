"""What a message may say is bounded where it is read."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.codec import encode
from contracts.errors import DecodeError
from contracts.ids import DeviceName
from contracts.messages import MAX_NODE_DEVICES, MAX_NODE_POOLS, DevicesAnnounced
from contracts.topics import HEALTH, HEARTBEATS, INVENTORIES, SUBMISSIONS, max_bytes_of
from tests import builders


def submission(**spec: Any) -> bytes:
    """Write a submission whose gang says this."""
    member = {"name": "m", **spec.pop("member", {})}
    gang = {"metadata": {"name": "g"}, "spec": {"members": [member], **spec}}
    said = {"type": "SubmitGang", "cluster": "c", "uid": "u", "gang": gang}
    return encode(said)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"priority": 2**80}, "priority"),
        ({"priority": -(2**31) - 1}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"weight": 2**31}, "weight"),
        ({"weight": -(2**31) - 1}, "weight"),
        ({"member": {"count": 10**4000}}, "count"),
        ({"member": {"node": {"hostPorts": [{"port": 2**40}]}}}, "port"),
    ],
)
def test_numbers_are_those_of_kubernetes(spec: dict[str, Any], field: str) -> None:
    """Of 32 or 64 bits; JSON alone would take any number of digits."""
    with pytest.raises(DecodeError, match=field):
        SUBMISSIONS.codec.decode(submission(**spec))
    for number in (2**31 - 1, -(2**31)):
        read = SUBMISSIONS.codec.decode(submission(priority=number, weight=number))
        assert (read.gang.spec.priority, read.gang.spec.weight) == (number, number)


def announced(*names: str) -> bytes:
    """Write the inventory of a node with these devices."""
    devices = [builders.device(name=DeviceName(name)) for name in names]
    said = {
        "type": "DevicesAnnounced",
        "cluster": "c",
        "node": "n",
        "pools": [{"driver": "d", "name": "p", "devices": devices}],
    }
    return encode(said)


def test_a_node_has_so_many_devices_and_no_more() -> None:
    """A few bytes of zstd are many devices otherwise."""
    names = [f"gpu-{number}" for number in range(MAX_NODE_DEVICES + 1)]
    message = INVENTORIES.codec.decode(announced(*names[:-1]))
    assert isinstance(message, DevicesAnnounced)
    with pytest.raises(DecodeError, match="4097 devices"):
        INVENTORIES.codec.decode(announced(*names))


def test_a_node_has_so_many_pools_and_no_more() -> None:
    """Empty ones cost, too: 40,000 of them are some KiB of zstd, and took minutes."""

    def listing(count: int) -> bytes:
        pools = [{"driver": "d", "name": f"p{number}"} for number in range(count)]
        return encode(
            {"type": "DevicesAnnounced", "cluster": "c", "node": "n", "pools": pools}
        )

    message = INVENTORIES.codec.decode(listing(MAX_NODE_POOLS))
    assert isinstance(message, DevicesAnnounced)
    with pytest.raises(DecodeError, match="257 pools"):
        INVENTORIES.codec.decode(listing(MAX_NODE_POOLS + 1))


def test_devices_of_a_pool_have_different_names() -> None:
    """Who would it be that is allocated?"""
    with pytest.raises(DecodeError, match="two of one name"):
        INVENTORIES.codec.decode(announced("gpu-0", "gpu-1", "gpu-0"))


def test_each_topic_says_how_much_a_message_may_be() -> None:
    """What nobody knows is bounded as well."""
    assert max_bytes_of("hb.v1.c.n") == HEARTBEATS.max_bytes == 1 << 20
    assert max_bytes_of("health.v1.c.n") == HEALTH.max_bytes == 1 << 20
    assert max_bytes_of("inv.v1.c.n") == INVENTORIES.max_bytes == 8 << 20
    assert max_bytes_of("unheard.of") == 8 << 20
