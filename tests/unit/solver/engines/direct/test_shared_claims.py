"""Shared claims in the direct model: each rule, and what lies beyond it."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.device import ResourceSlice
from contracts.gang import Gang
from solver.allocate import allocate
from solver.engines import cpsat
from solver.engines.direct.shared_claims import shared_claims_are_reached
from solver.kinds.sharing import SharedClaimLayouts
from tests.builders import device, gang, member, member_claim, request, topology_rule
from tests.builders.models import place_all
from tests.builders.sharing import (
    FABRIC,
    channels_of,
    fabric,
    shared_channel,
    workers,
)

GPU = member_claim(request("gpu", device_class="gpus"), name="gpu")


def nodes_of(racks: str, item: Gang, **world: object) -> list[str]:
    """List the nodes of the pods; none: the gang is not in."""
    (answer,) = allocate(fabric(racks, item, **world)).gangs  # type: ignore[arg-type]
    return [pod.node for pod in answer.members]


def test_pods_are_where_the_claim_is_reached() -> None:
    """Not so without the rule: one rack has too few GPUs."""
    problem = SharedClaimLayouts(fabric("aab", workers(3))).problem
    assert isinstance(place_all(problem), cpsat.Infeasible)
    without = place_all(problem, without=shared_claims_are_reached)
    assert isinstance(without, cpsat.Solved)


@pytest.mark.parametrize(
    ("channel", "pods"),
    [
        (channels_of("x", all_nodes=True), 3),
        (channels_of("a"), 2),
        (channels_of("x", node_name="n0"), 0),
        (
            channels_of(
                "x",
                device("channel-0", all_nodes=True),
                per_device_node_selection=True,
            ),
            3,
        ),
        (channels_of("x", device("channel-0", binds_to_node=True), all_nodes=True), 0),
    ],
    ids=["all", "selected", "one", "by device", "binding"],
)
def test_as_many_pods_as_see_the_device(channel: ResourceSlice, pods: int) -> None:
    """So many nodes of one GPU see it; one more pod keeps the gang out."""
    if pods:
        assert len(set(nodes_of("aab", workers(pods), channels=[channel]))) == pods
    more = workers(pods + 1 if pods else 2)
    assert nodes_of("aab", more, channels=[channel]) == []


def test_all_devices_of_a_claim_are_reached() -> None:
    """A claim of a channel of the rack and one of all nodes is the rack's."""
    asked = request("channel", device_class="channels", count=2)
    gang_of = workers(2, GPU, shared_channel(asked=asked))
    channels = [channels_of("b"), channels_of("x", all_nodes=True)]
    assert nodes_of("abb", gang_of, channels=channels) == ["n1", "n2"]


def test_members_share_by_their_own_names() -> None:
    """And with a rule about what all pods have."""
    driver = member(GPU, shared_channel(name="link"), name="driver")
    worker = member(GPU, shared_channel(), name="worker", count=2)
    by_domain = topology_rule(f"attribute:{FABRIC}/domain", "worker")
    channels = [
        channels_of(
            rack,
            device("channel-0", attributes={f"{FABRIC}/domain": rack}),
        )
        for rack in "ab"
    ]
    item = gang(driver, worker, topology=(by_domain,))
    assert sorted(nodes_of("aabbb", item, channels=channels)) == ["n2", "n3", "n4"]


def test_two_gangs_have_a_channel_each() -> None:
    """What is shared inside a gang is exclusive to it."""
    gangs = [
        structs.replace(
            workers(2, GPU, shared_channel(claim=f"c{number}"), name=f"g{number}"),
        )
        for number in range(2)
    ]
    uids = ["00000000-0000-4000-8000-00000000000" + str(n) for n in range(2)]
    gangs = [
        structs.replace(g, metadata=structs.replace(g.metadata, uid=uid))
        for g, uid in zip(gangs, uids, strict=True)
    ]
    answers = allocate(fabric("aaaa", *gangs)).gangs
    assert [bool(answer.members) for answer in answers] == [True, False]
    answers = allocate(fabric("aabb", *gangs)).gangs
    assert [bool(answer.members) for answer in answers] == [True, True]
