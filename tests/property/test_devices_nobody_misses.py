"""Admin access needs nothing, negative amounts and devices that are gone give nothing.

All ways to place the pods agree. Source: KEP-5018; kubernetes#140729, #140802, #141216.
"""

from __future__ import annotations

from typing import Any

import pytest

from contracts.device import Device
from contracts.gang import Gang
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.messages import DevicesAnnounced
from solver.allocate import allocate
from solver.kinds.affinity.resolve import resolve_affinity
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DRIVER,
    counter_set,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import CLUSTER, problem_of, snapshot_of
from tests.oracles.brute import Brute

WHOLE = {"counters": {"memory": "80Gi"}}
HALF = {"counters": {"memory": "40Gi"}}
LESS = {"counters": {"memory": "-40Gi"}}


def gangs_in(
    content: list[Device], *gangs: Gang, held: tuple[str, ...] = ()
) -> list[bool]:
    """Decide on one node, by the engines and by trying all ways."""
    return decided(snapshot_with(content, *gangs, held=held))


def snapshot_with(
    content: list[Device], *gangs: Gang, held: tuple[str, ...] = ()
) -> Snapshot:
    names = [
        DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName(name)) for name in held
    ]
    pools = {"n": [pool(*content, name="n", counters=[counter_set()])]}
    return snapshot_of(pools, gangs, taken=names)


def decided(snapshot: Snapshot) -> list[bool]:
    problem = problem_of(snapshot)
    decision = allocate(problem)
    weight = sum(
        part.weight
        for part, decided in zip(problem.gangs, decision.gangs, strict=True)
        if decided.members
    )
    assert Brute(resolve_affinity(problem)).value()[0] == weight
    return [bool(decided.members) for decided in decision.gangs]


def asking(name: str, **fields: Any) -> Gang:
    return gang(member(member_claim(request(**fields))), name=name, uid=name)


CARD = [
    device("gpu", consumes=WHOLE),
    device("half-0", consumes=HALF),
    device("half-1", consumes=HALF),
]


@pytest.mark.parametrize("held", [(), ("gpu",), ("half-0",), ("half-0", "half-1")])
def test_a_monitor_sees_a_card_whoever_has_it(held: tuple[str, ...]) -> None:
    """The whole and its parts together, whether counters are drawn upon or not."""
    monitor = asking("monitor", mode="All", admin_access=True)
    assert gangs_in(CARD, monitor, held=held) == [True]


def test_a_monitor_takes_nothing_from_others() -> None:
    """Nor does it matter to them who comes first."""
    monitor = asking("monitor", mode="All", admin_access=True)
    workers = [asking(name, count=1) for name in ("a", "b")]
    assert gangs_in(CARD, monitor, *workers) == [True, True, True]


def test_a_share_that_is_used_up_can_be_watched() -> None:
    """Both have all of its memory."""
    card = device("card", capacity={"memory": 10}, allow_multiple_allocations=True)
    worker = asking("worker", capacity={"memory": 10})
    monitor = asking("monitor", capacity={"memory": 10}, admin_access=True)
    assert gangs_in([card], worker, monitor) == [True, True]


def test_a_negative_draw_is_given_to_nobody_and_gives_no_room() -> None:
    """Neither when it is asked for nor when somebody has it already."""
    content = [device("less", consumes=LESS), *CARD]
    both = asking("both", count=2)
    assert gangs_in(content, asking("a", count=3)) == [False]
    assert gangs_in(content, both, held=("less",)) == [True]
    assert gangs_in(content, both, held=("less", "half-0")) == [False]


def without(snapshot: Snapshot, *content: Device) -> Snapshot:
    """Let the driver publish other devices from now on."""
    later = pool(*content, name="n", counters=[counter_set()], generation=2)
    message = DevicesAnnounced(cluster=CLUSTER, node=NodeName("n"), pools=(later,))
    return apply(snapshot, message)


def test_what_is_published_no_more_still_draws() -> None:
    """Half of the card is in use by a part that its driver withdrew."""
    both = asking("both", count=2)
    one = asking("one")
    for wants, is_in in ((both, False), (one, True)):
        snapshot = snapshot_with(CARD, wants, held=("half-0",))
        assert decided(without(snapshot, *CARD[::2])) == [is_in]
        # Nobody saw it while it was published: it may be all of the card.
        unseen = snapshot_with(CARD[::2], wants, held=("half-0",))
        assert decided(unseen) == [False]
        # It is remembered as long as it is held, whatever is published then.
        again = without(without(snapshot, CARD[2]), *CARD[::2])
        assert decided(again) == [is_in]


def test_what_draws_from_nothing_is_not_kept_by_what_is_gone() -> None:
    """A plain device beside the card is free."""
    plain = device("plain", attributes={"model": "plain"})
    wants = asking("one", select=(f'device.attributes["{DRIVER}"].model == "plain"',))
    assert gangs_in([CARD[2], plain], wants, held=("half-0",)) == [True]
