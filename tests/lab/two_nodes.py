"""Two nodes with four devices each, and gangs that ask for some of them."""

from __future__ import annotations

from contracts.gang import Gang
from contracts.ids import NodeName
from contracts.messages import DevicesAnnounced
from runtime.bus.bus import Bus
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.lab.services import CLUSTER, announce, decision_on, observe_class


def inventory(node: str, count: int = 4) -> DevicesAnnounced:
    """Announce a node with one pool of its name."""
    content = pool(*devices(count), name=node)
    return DevicesAnnounced(cluster=CLUSTER, node=NodeName(node), pools=(content,))


def wanted(number: int, pods: int = 1, count: int = 1) -> Gang:
    """Ask for pods with a claim of so many devices each."""
    claim = member_claim(request(count=count))
    return gang(
        member(claim, count=pods),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


async def is_decided(bus: Bus, asked: Gang, kind: type) -> bool:
    """Whether the last decision on a gang is of a kind."""
    return isinstance(await decision_on(bus, asked), kind)


async def two_nodes(bus: Bus) -> None:
    """Put two nodes with four devices each on the bus, and their class."""
    await announce(bus, inventory("a"), inventory("b"))
    await observe_class(bus)
