"""Gangs that only the direct model knows do not drag the others into it."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Gang
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.engines import apart, choose
from solver.engines.apart import APART
from solver.engines.direct import search
from solver.tiers import Tier
from tests.builders import (
    DRIVER,
    device,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    resource_slice,
)
from tests.builders.models import DRAWN_UID
from tests.builders.problems import PARAMETERS, observe, problem_of, snapshot_of

ADMIN = request("watch", admin_access=True)
LINK = f'device.attributes["{DRIVER}"].model == "link"'
GPU = f'device.attributes["{DRIVER}"].model == "gpu"'


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide apart what is small, too."""
    monkeypatch.setattr(choose, "WHOLE", 0)


def asking(number: int, *requests: Any, pods: int = 1, **spec: Any) -> Gang:
    wanted = member(member_claim(*requests), count=pods)
    return gang(wanted, name=f"g{number}", uid=DRAWN_UID.format(number), **spec)


def decided(*gangs: Gang, nodes: int = 4) -> Decision:
    """Decide on nodes with two devices each."""
    pools = {f"n{n}": [pool(*devices(2), name=f"n{n}")] for n in range(nodes)}
    return allocate(problem_of(snapshot_of(pools, gangs)))


def gangs_in(decision: Decision) -> list[bool]:
    return [bool(answer.members) for answer in decision.gangs]


def weights(decision: Decision) -> list[tuple[int, int | None]]:
    return [(t.value, t.bound) for t in decision.objective if t.tier is Tier.GANGS]


def test_all_are_in_and_it_is_proven() -> None:
    """Beside admin access, which takes nothing, all devices are used."""
    found = decided(asking(0, ADMIN, pods=3), asking(1, request(count=2), pods=4))
    assert found.statistics.engine == APART
    assert found.status is Status.OPTIMAL
    assert gangs_in(found) == [True, True]
    assert weights(found) == [(11, 11)]


def test_the_rest_is_bounded_by_its_own_engine() -> None:
    """Of three gangs of three pairs one is in; what is beyond is added to its bound."""
    pairs = [asking(number, request(count=2), pods=3) for number in range(3)]
    found = decided(*pairs, asking(3, ADMIN, pods=2))
    assert gangs_in(found) == [True, False, False, True]
    assert weights(found) == [(8, 8)]
    assert found.status is Status.OPTIMAL


def test_gangs_beyond_go_first_where_that_is_worth_more() -> None:
    """One needs a device beside its admin access to another."""
    both = asking(1, ADMIN, request(), weight=50)
    found = decided(asking(0, request(), pods=8), both)
    assert gangs_in(found) == [False, True]
    assert weights(found) == [(50, 58)]
    assert found.status is Status.FEASIBLE


def test_a_higher_priority_never_gives_way() -> None:
    """Whichever gangs are beyond patterns."""
    high = asking(1, request(), pods=8, priority=7)
    low = asking(0, ADMIN, request(), weight=50)
    assert weights(decided(low, high)) == [(8, 8), (0, 50)]
    low = asking(0, request(), pods=8, weight=50)
    high = asking(1, ADMIN, request(), priority=7)
    assert weights(decided(low, high)) == [(2, 2), (0, 50)]


def test_what_one_part_holds_the_other_does_not_get() -> None:
    """A device that all nodes see is given once."""
    gpus = devices(2, attributes={"model": "gpu"})
    pools = {f"n{n}": [pool(*gpus, name=f"n{n}")] for n in range(3)}
    gangs = [
        asking(0, request(count=2, select=(GPU,)), pods=2),
        *(asking(number, request(select=(LINK,))) for number in (1, 2)),
    ]
    link = device("link", attributes={"model": "link"})
    item = resource_slice(link, name="f", pool="f", all_nodes=True)
    decision = allocate(problem_of(observe(snapshot_of(pools, gangs), "f", item)))
    assert decision.statistics.engine == APART
    assert gangs_in(decision) == [True, True, False]


@pytest.mark.parametrize("together", [0, 1_000])
def test_as_many_are_decided_together_as_are_soon(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One model for all, or one for each; the same gangs are in."""
    monkeypatch.setattr(apart, "TOGETHER", together)
    asked = [asking(number, ADMIN, request()) for number in range(6)]
    found = decided(asking(6, request(count=2)), *asked)
    assert found.statistics.engine == APART
    assert gangs_in(found).count(True) == 7
    of_the_rest = 2
    assert found.statistics.models - of_the_rest == (1 if together else 6)


def test_who_is_left_out_without_a_proof_is_asked_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two that differ are too much for one model."""
    monkeypatch.setattr(search, "MOST_KINDS", 1)
    beyond = asking(1, ADMIN), asking(2, ADMIN, request())
    found = decided(asking(0, request(count=2)), *beyond)
    assert found.statistics.engine == APART
    assert gangs_in(found) == [True, True, True]


def test_what_is_small_is_decided_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The direct model proves more."""
    monkeypatch.setattr(choose, "WHOLE", 1_000)
    found = decided(asking(0, ADMIN), asking(1, request()))
    assert found.statistics.engine == "direct"
    assert PARAMETERS.last_tier is Tier.NODES
    assert weights(found) == [(2, 2)]
