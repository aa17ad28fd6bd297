"""Each rule of the model: a problem that it lets pass, and one that it forbids."""

from __future__ import annotations

from typing import Any

from contracts.allocation import Rule
from contracts.gang import Gang
from contracts.ids import DeviceID, DeviceName, DriverName, PoolName
from solver.allocate import allocate
from solver.decision import Decision, Status
from solver.tiers import Tier
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
    taint,
    toleration,
)
from tests.builders.problems import problem_of, snapshot_of

ROOT, INDEX = "resource.kubernetes.io/pcieRoot", f"{DRIVER}/index"
BIG = f'device.attributes["{DRIVER}"].model == "big"'


def decided(nodes: dict[str, Any], *gangs: Gang, **more: Any) -> Decision:
    return allocate(problem_of(snapshot_of(nodes, gangs, **more)))


def asked(*claims: Any, pods: int = 1, number: int = 1, **spec: Any) -> Gang:
    uid = f"00000000-0000-4000-8000-{number:012}"
    made = member(*claims, count=pods)
    return gang(made, name=f"g{number}", uid=uid, **spec)


def verdicts(decision: Decision) -> list[str]:
    assert decision.status is Status.OPTIMAL
    return [item.verdict for item in decision.gangs]


def rule_of(decision: Decision, index: int = 0) -> Rule:
    return decision.gangs[index].reasons[0].rule


def rooted(*roots: str) -> list[Any]:
    content = [
        device(f"d{i}", attributes={ROOT: root, "index": i % 2})
        for i, root in enumerate(roots)
    ]
    return [pool(*content, name="n")]


def test_gangs_are_whole() -> None:
    """Three of four pods would fit, so none is placed."""
    nodes = {"n": [pool(*devices(3), name="n")]}
    assert verdicts(decided(nodes, asked(pods=3))) == ["allocated"]
    refused = decided(nodes, asked(pods=4))
    assert verdicts(refused) == ["none"]
    assert rule_of(refused) is Rule.NO_CANDIDATE


def test_a_member_stays_on_one_node() -> None:
    """A pod cannot have devices of two."""
    nodes = {n: [pool(*devices(2), name=n)] for n in ("a", "b")}
    three = member_claim(request(count=3))
    assert verdicts(decided(nodes, asked(three))) == ["none"]
    two = member_claim(request(count=2))
    assert verdicts(decided(nodes, asked(two, pods=2))) == ["allocated"]


def test_devices_are_exclusive() -> None:
    """Two requests, two gangs: never one device for both."""
    nodes = {"n": [pool(*devices(2), name="n")]}
    both = member_claim(request("one"), request("two"))
    assert verdicts(decided(nodes, asked(both))) == ["allocated"]
    found = decided(nodes, asked(both), asked(number=2))
    assert verdicts(found) == ["allocated", "none"]
    assert rule_of(found, 1) is Rule.OUTRANKED


def test_attributes_match() -> None:
    """Devices of one claim have one value, or the gang waits."""
    pair = member_claim(request(count=2), constraints=[constraint(ROOT)])
    assert verdicts(decided({"n": rooted("a", "b", "b")}, asked(pair))) == ["allocated"]
    refused = decided({"n": rooted("a", "b", "c")}, asked(pair))
    assert verdicts(refused) == ["none"]
    assert rule_of(refused) is Rule.CONSTRAINT


def test_a_device_without_the_attribute_matches_nothing() -> None:
    """Not even alone."""
    nodes = {"n": [pool(*devices(2), name="n")]}
    alone = member_claim(request(), constraints=[constraint(ROOT)])
    assert verdicts(decided(nodes, asked(alone))) == ["none"]


def test_pods_may_choose_different_values() -> None:
    """A constraint is of one claim, and each pod has its own."""
    pair = member_claim(request(count=2), constraints=[constraint(ROOT)])
    nodes = {"n": rooted("a", "a", "b", "b")}
    assert verdicts(decided(nodes, asked(pair, pods=2))) == ["allocated"]
    uneven = {"n": rooted("a", "a", "a", "b")}
    assert verdicts(decided(uneven, asked(pair, pods=2))) == ["none"]


def test_attributes_are_distinct() -> None:
    """No two devices of the claim have one value."""
    spread = member_claim(request(count=2), constraints=[constraint(distinct=INDEX)])
    nodes = {"n": rooted("a", "a", "a", "a")}
    assert verdicts(decided(nodes, asked(spread, pods=2))) == ["allocated"]
    three = member_claim(request(count=3), constraints=[constraint(distinct=INDEX)])
    assert verdicts(decided(nodes, asked(three))) == ["none"]


def test_two_constraints_hold_at_once() -> None:
    """Neither is given up for the other."""
    both = [constraint(ROOT), constraint(distinct=INDEX)]
    pair = member_claim(request(count=2), constraints=both)
    assert verdicts(decided({"n": rooted("a", "a")}, asked(pair))) == ["allocated"]
    apart = {"n": rooted("a", "b", "a", "b")}
    assert verdicts(decided(apart, asked(pair))) == ["none"]


def test_all_devices_are_taken_or_none() -> None:
    """A request for all devices is not met by most."""
    nodes = {"n": [pool(*devices(3), name="n")]}
    everything = member_claim(request(mode="All"))
    found = decided(nodes, asked(everything))
    assert verdicts(found) == ["allocated"]
    results = found.gangs[0].members[0].claims[0].allocation.devices.results
    assert len(results) == 3
    held = [DeviceID(DriverName(DRIVER), PoolName("n"), DeviceName("gpu-1"))]
    refused = decided(nodes, asked(everything), taken=held)
    assert verdicts(refused) == ["none"]
    assert rule_of(refused) is Rule.TAKEN


def test_taints_keep_those_away_who_do_not_tolerate_them() -> None:
    """And the reason says so."""
    nodes = {"n": [pool(device(taints=(taint(),)), name="n")]}
    refused = decided(nodes, asked())
    assert verdicts(refused) == ["none"]
    assert rule_of(refused) is Rule.TAINTED
    tolerant = member_claim(request(tolerations=(toleration(),)))
    assert verdicts(decided(nodes, asked(tolerant))) == ["allocated"]
    ours = taint("moorings.dev/owned")
    owned = {"n": [pool(device(taints=(ours,)), name="n")]}
    assert verdicts(decided(owned, asked())) == ["allocated"]


def test_selectors_choose() -> None:
    """Only devices that pass are given."""
    content = [device("a", attributes={"model": "small"})]
    wanted = asked(member_claim(request(select=(BIG,))))
    assert verdicts(decided({"n": [pool(*content, name="n")]}, wanted)) == ["none"]
    content.append(device("b", attributes={"model": "big"}))
    found = decided({"n": [pool(*content, name="n")]}, wanted)
    assert verdicts(found) == ["allocated"]


def test_a_failing_selector_is_an_error_only_when_it_matters() -> None:
    """Where another device serves, one that fails is passed by."""
    bare, big = device("a"), device("b", attributes={"model": "big"})
    wanted = asked(member_claim(request(select=(BIG,))))
    assert verdicts(decided({"n": [pool(bare, big, name="n")]}, wanted)) == [
        "allocated"
    ]
    refused = decided({"n": [pool(bare, name="n")]}, wanted)
    assert verdicts(refused) == ["error"]
    assert rule_of(refused) is Rule.SELECTOR_ERROR
    assert "selector #0 on device" in refused.gangs[0].reasons[0].message


def test_higher_priority_is_strictly_first() -> None:
    """One gang of high priority outweighs many devices of low priority."""
    nodes = {"n": [pool(*devices(4), name="n")]}
    low = asked(member_claim(request(count=4)), number=1)
    high = asked(number=2, priority=1)
    found = decided(nodes, low, high)
    assert {item.name: item.verdict for item in found.gangs} == {
        "g1": "none",
        "g2": "allocated",
    }
    first = [tier for tier in found.objective if tier.tier is Tier.GANGS]
    assert [(t.priority, t.value, t.bound) for t in first] == [(1, 1, 1), (0, 0, 0)]


def test_weight_decides_among_equals_of_priority() -> None:
    """More weight in comes before more gangs in."""
    nodes = {"n": [pool(*devices(4), name="n")]}
    four = asked(member_claim(request(count=4)), number=1)
    light = asked(number=2)
    assert verdicts(decided(nodes, four, light)) == ["allocated", "none"]
    heavy = asked(number=2, weight=100)
    assert verdicts(decided(nodes, four, heavy)) == ["none", "allocated"]


def test_age_decides_among_gangs_that_ask_for_the_same() -> None:
    """First come, first served."""
    nodes = {"n": [pool(*devices(1), name="n")]}
    found = decided(nodes, asked(number=1), asked(number=2))
    assert verdicts(found) == ["allocated", "none"]


def test_a_node_that_is_away_serves_nobody() -> None:
    """Its devices are not candidates."""
    nodes = {"n": [pool(*devices(1), name="n")]}
    refused = decided(nodes, asked(), away=["n"])
    assert verdicts(refused) == ["none"]
    assert rule_of(refused) is Rule.NODE
