"""What a device lacks that nobody holds is told with its numbers."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from contracts.allocation import (
    AllocationResult,
    DeviceAllocationResult,
    Reason,
    Rule,
)
from contracts.claim import ResourceClaimStatus
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from contracts.quantity import NANO, Quantity
from solver.allocate import allocate
from tests.builders import (
    DRIVER,
    claim,
    counter_set,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
    result,
)
from tests.builders.problems import observe, problem_of, snapshot_of


def reason_of(asked: Any, *content: Any, **world: Any) -> Reason:
    """Ask for a device of the one node."""
    counters = world.pop("counters", ())
    nodes = {"n": [pool(*content, name="n", counters=counters)]}
    snapshot = snapshot_of(nodes, [gang(member(member_claim(asked)))], **world)
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    return reason


def test_counters_that_are_drawn_upon() -> None:
    """A partition is in use; the whole device draws more than it left."""
    whole = f'device.attributes["{DRIVER}"].model == "whole"'
    reason = reason_of(
        request(select=(whole,)),
        device(
            "gpu-0",
            attributes={"model": "whole"},
            consumes={"counters": {"memory": "80Gi"}},
        ),
        device(
            "part-0",
            attributes={"model": "part"},
            consumes={"counters": {"memory": "10Gi"}},
        ),
        counters=[counter_set()],
        taken=[DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName("part-0"))],
    )
    assert reason.rule is Rule.TAKEN
    assert reason.message == (
        "1 pod needs 1 gpu.example.com; 1 device matches, none is free (gpu-0 draws "
        "80Gi of memory, 70Gi left on n)"
    )


def sharing(pods: int, asked: int, held: int = 0) -> Reason | None:
    """Let pods share a card of 10 GB, of which some are held; None: all are in."""
    card = device("card", capacity={"memory": 10}, allow_multiple_allocations=True)
    amount = request(capacity={"memory": asked})
    holder = gang(
        member(member_claim(request(capacity={"memory": held}))), uid="h", priority=9
    )
    wants = gang(member(member_claim(amount), count=pods), name="g", uid="g")
    gangs = [*([holder] if held else []), wants]
    snapshot = snapshot_of({"n": [pool(card, name="n")]}, gangs)
    found = allocate(problem_of(snapshot)).gangs[-1]
    return found.reasons[0] if found.reasons else None


def test_a_card_has_room_for_as_many_as_share_it() -> None:
    """Two pods of 5 are in; a third is one too many for what the card has in all."""
    assert sharing(2, 5) is None
    reason = sharing(3, 5)
    assert reason is not None
    assert reason.rule is Rule.NO_CANDIDATE
    assert reason.message == (
        "each of 3 pods needs 1 gpu.example.com; 1 device matches; room for 2 of 3 pods"
    )


def test_what_others_hold_of_a_card_leaves_less_room() -> None:
    """The card has 10 GB; one claim has 5, so the second of two pods has none."""
    card = device("card", capacity={"memory": 10}, allow_multiple_allocations=True)
    held = structs.replace(
        result("card", pool="n"),
        share_id="s",
        consumed_capacity={"memory": Quantity.of_nano(5 * NANO)},
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(held,)))
    holder = structs.replace(
        claim(name="holder"), status=ResourceClaimStatus(allocation=allocation)
    )
    amount = request(capacity={"memory": 5})
    snapshot = observe(
        snapshot_of(
            {"n": [pool(card, name="n")]}, [gang(member(member_claim(amount), count=2))]
        ),
        "default/holder",
        holder,
    )
    (reason,) = allocate(problem_of(snapshot)).gangs[0].reasons
    assert reason.rule is Rule.TAKEN
    assert reason.message == (
        "each of 2 pods needs 1 gpu.example.com; 1 device matches; room for 1 of 2 pods"
    )
