"""Which variables a model has, and where pods need lots of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from contracts.device import Device
from contracts.gang import MemberClaim
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.engines.direct.variables import (
    Placements,
    groups_for,
    is_divisible,
    may_exceed,
    values_of,
)
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.models import model_of
from tests.builders.problems import problem_of, snapshot_of

ROOT, INDEX = "resource.kubernetes.io/pcieRoot", f"{DRIVER}/index"
SAME, DIFFER = constraint(ROOT), constraint(distinct=INDEX)
EITHER = request(first_available=[sub_request("x", count=2), sub_request("y")])
CONTENT = [
    device(f"d{index}", attributes={ROOT: "xxyy"[index], "index": index})
    for index in range(4)
]


def model(
    claim: MemberClaim, content: Iterable[Device] = CONTENT, count: int = 3, **more: Any
) -> Placements:
    """Build the model of some pods on one node."""
    nodes = {"n": [pool(*content, name="n")]}
    pods = gang(member(claim, count=count))
    return model_of(problem_of(snapshot_of(nodes, [pods], **more)))


def of_model(name: str) -> tuple[str]:
    return (f'device.attributes["{DRIVER}"].model == "{name}"',)


@pytest.mark.parametrize(
    ("claim", "divisible"),
    [
        (member_claim(request(count=2)), True),
        (member_claim(EITHER), True),
        (member_claim(request(count=2), constraints=[SAME]), True),
        (member_claim(request(count=2), constraints=[DIFFER]), False),
        (member_claim(request(), constraints=[SAME, constraint(INDEX)]), False),
        (member_claim(EITHER, constraints=[SAME]), False),
        (member_claim(request(admin_access=True)), False),
    ],
)
def test_pods_share_a_lot_where_any_split_of_it_is_valid(
    claim: MemberClaim, divisible: bool
) -> None:
    """Else each pod has a lot of its own: of one pod at most."""
    placements = model(claim, count=2)
    (pods,) = placements.demand.member_kinds
    assert is_divisible(pods, placements.nodes[0].shape) is divisible
    assert [(lot.most, lot.single) for lot in placements.lots] == (
        [(2, False)] if divisible else [(1, True), (1, True)]
    )


def test_a_node_that_holds_no_pod_has_no_lot() -> None:
    """Counting alone says so."""
    assert model(member_claim(request(count=5))).lots == []
    assert len(model(member_claim(request(count=4))).lots) == 1


def test_where_pods_have_no_choice_their_number_is_the_only_variable() -> None:
    """Devices of one group are counted by the pods that have them."""
    (lot,) = model(member_claim(request(count=2)), devices(6)).lots
    assert lot.picks == {0: lot.pods}
    assert lot.uses == {(0, 0): (lot.pods, 2)}


def test_all_devices_cannot_be_had_where_one_is_taken() -> None:
    """The alternative has no variable, the next one has."""
    everything = request(
        first_available=[sub_request("x", mode="All"), sub_request("y")]
    )
    held = DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName("gpu-1"))
    claim = member_claim(everything)
    (free,) = model(claim, devices(3), count=1).lots
    (lot,) = model(claim, devices(3), count=1, taken=[held]).lots
    assert sorted(free.picks) == [0, 1]
    assert sorted(lot.picks) == [1]


def test_a_group_without_the_compared_attribute_serves_nothing() -> None:
    """Neither a request under the constraint, nor as one of its values."""
    bare = device("bare", attributes={"index": 9})
    claim = member_claim(
        request("a"), request("b"), constraints=[constraint(ROOT, "a")]
    )
    placements = model(claim, [*CONTENT, bare], count=1)
    (pods,), shape = placements.demand.member_kinds, placements.nodes[0].shape
    assert [
        sum(shape.groups[group].size for group in groups_for(pods, ask, shape))
        for ask in (0, 1)
    ] == [4, 5]
    (lot,) = placements.lots
    assert len(values_of(lot, placements.nodes[0], pods.constraints[0])) == 2


@pytest.mark.parametrize(("big", "exceeds"), [(16, False), (17, True)])
def test_all_devices_of_two_models_may_exceed_the_limit_of_a_claim(
    big: int, exceeds: bool
) -> None:
    """16 and 16 are 32; one more is too many."""
    content = [
        device(f"{name}-{index}", attributes={"model": name})
        for name, size in (("small", 16), ("big", big))
        for index in range(size)
    ]
    claim = member_claim(
        request("a", mode="All", select=of_model("small")),
        request("b", mode="All", select=of_model("big")),
    )
    placements = model(claim, content, count=1)
    (pods,) = placements.demand.member_kinds
    assert may_exceed(pods, placements.nodes[0].shape) is exceeds
