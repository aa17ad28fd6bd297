"""What is marked of a node, and who holds what is marked."""

from __future__ import annotations

from typing import Any

from contracts.names import DRAINING
from moorings.draining import (
    DrainMark,
    choose_marks,
    find_marks,
    list_holders,
    make_rule,
    read_marks,
)

GPU = DrainMark("gpu.example.com", "n1")
NIC = DrainMark("nic.example.com", "n1")


def pool(driver: str, node: str, *devices: str) -> dict[str, Any]:
    """Make a slice of a node."""
    named = [{"name": name} for name in devices]
    spec = {"driver": driver, "pool": {"name": node}, "nodeName": node}
    return {"spec": {**spec, "devices": named}}


SLICES = [
    pool("gpu.example.com", "n1", "gpu-0", "gpu-1"),
    pool("nic.example.com", "n1", "nic-0"),
    pool("gpu.example.com", "n2", "gpu-0"),
]


def claim(name: str, *results: tuple[str, str, str], user: str = "") -> dict[str, Any]:
    """Make a claim that holds devices: driver, pool, device."""
    keys = ("driver", "pool", "device")
    held = [dict(zip(keys, result, strict=True)) for result in results]
    allocation = {"allocation": {"devices": {"results": held}}} if held else {}
    users = {"reservedFor": [{"name": user}]} if user else {}
    meta = {"namespace": "team", "name": name}
    return {"metadata": meta, "status": {**allocation, **users}}


def test_all_pools_of_a_node_are_marked() -> None:
    """Those of every driver, and none of another node."""
    assert find_marks(SLICES, "n1", "") == {GPU, NIC}


def test_a_device_is_named_as_people_do() -> None:
    """By its name, with its pool, or in full."""
    mark = DrainMark("gpu.example.com", "n1", "gpu-0")
    for name in ("gpu-0", "n1/gpu-0", "gpu.example.com/n1/gpu-0"):
        assert find_marks(SLICES, "n1", name) == {mark}
    assert find_marks(SLICES, "n1", "gpu-9") == set()


def test_a_rule_is_read_back_as_the_mark_it_was_made_of() -> None:
    """Its name is always the same, so that draining twice marks once."""
    marks = {GPU, DrainMark("gpu.example.com", "n1", "gpu-1")}
    rules = [make_rule(mark, "n1", "resource.k8s.io/v1") for mark in sorted(marks)]
    assert {rule["spec"]["taint"]["effect"] for rule in rules} == {"NoSchedule"}
    assert len({rule["metadata"]["name"] for rule in rules}) == 2
    again = make_rule(GPU, "n1", "resource.k8s.io/v1")
    assert again["metadata"]["name"] == rules[0]["metadata"]["name"]
    assert read_marks(rules, "n1").keys() == marks
    assert read_marks(rules, "n2") == {}


def test_rules_of_others_are_no_marks() -> None:
    """Whatever they note, or taint."""
    noted = make_rule(GPU, "n1", "resource.k8s.io/v1")
    noted["spec"]["taint"]["key"] = "example.com/other"
    tainted = make_rule(GPU, "n1", "resource.k8s.io/v1")
    tainted["metadata"].pop("annotations")
    assert read_marks([noted, tainted], "n1") == {}
    assert noted["metadata"]["annotations"] == {DRAINING: "n1"}


def test_undoing_one_device_leaves_the_pool_marked() -> None:
    """And undoing all takes both."""
    one = DrainMark("gpu.example.com", "n1", "gpu-0")
    marks = {GPU: "a", one: "b"}
    assert choose_marks(marks, "n1/gpu-0") == {one: "b"}
    assert choose_marks(marks, "") == marks


def test_holders_are_claims_with_a_marked_device() -> None:
    """Reserved or only allocated; other devices and nodes do not count."""
    claims = [
        claim("b", ("gpu.example.com", "n1", "gpu-1"), user="p"),
        claim("a", ("gpu.example.com", "n2", "gpu-0"), ("nic.example.com", "n1", "x")),
        claim("other", ("gpu.example.com", "n2", "gpu-0")),
        claim("waits"),
        {"metadata": {"namespace": "team", "name": "new"}},
    ]
    found = list_holders(claims, {GPU, NIC})
    assert [(h.claim, h.users, h.devices) for h in found] == [
        ("team/a", (), ("nic.example.com/n1/x",)),
        ("team/b", ("p",), ("gpu.example.com/n1/gpu-1",)),
    ]
    only = {DrainMark("gpu.example.com", "n1", "gpu-0")}
    assert list_holders(claims, only) == []
