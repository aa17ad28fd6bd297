"""Drawn worlds never change, since their tables are compared over years."""

from __future__ import annotations

import hashlib
import json

import pytest

from benchmarks.worlds.ordinary.families import FAMILIES, draw_world
from benchmarks.worlds.ordinary.many_selectors import selectors
from benchmarks.worlds.ordinary.objects import count_devices

SEED = 11
HASHES = {
    "helios": "22d1070a440b",
    "nvl72": "e326cc25de5a",
    "nvl72 squeezed": "4d71c7a4e656",
    "mig": "834875459d1c",
    "mig squeezed": "2f00194a7e4a",
    "openb": "5d8003e36ac6",
    "cputight": "8446b42ac7ef",
    "cputight squeezed": "018685a8fd4e",
    "twomember": "5d655cd3c1dd",
    "twomember squeezed": "536c6c238c4b",
    "selectors": "d8f40e49ca36",
    "huge": "ecb44548b6fc",
}
"""Of each family at its smallest, by the first digits."""


def hash_of(family: str) -> str:
    objects = draw_world(family, FAMILIES[family].small, SEED)
    text = json.dumps(objects, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:12]


def test_worlds_are_what_they_were() -> None:
    assert {family: hash_of(family) for family in FAMILIES} == HASHES


def test_squeezed_nodes_have_less() -> None:
    def cpus(family: str) -> int:
        objects = draw_world(family, 4, SEED)
        nodes = [item for item in objects if item["kind"] == "Node"]
        return sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes)

    assert cpus("mig squeezed") < 0.4 * cpus("mig")


def test_no_two_gangs_select_alike() -> None:
    objects = selectors(50, SEED)
    found = {
        item["spec"]["members"][0]["claims"][0]["spec"]["devices"]["requests"][0][
            "exactly"
        ]["selectors"][0]["cel"]["expression"]
        for item in objects
        if item["kind"] == "Gang"
    }
    assert len(found) == 400


@pytest.mark.parametrize("nodes", [144, 1296])
def test_devices_are_enough_for_the_huge_gang_but_racks_are_not(nodes: int) -> None:
    """It asks for 4,096 GPUs in groups of 64 at full size; 51 racks hold a group."""
    objects = FAMILIES["huge"].draw(nodes, SEED)
    slices = [item for item in objects if item["kind"] == "ResourceSlice"]
    (gang,) = (item for item in objects if item["kind"] == "Gang")
    (member,) = gang["spec"]["members"]
    whole: dict[str, int] = {}
    for item in slices:
        if count_devices([item], "gpu") == 4:
            number = int(item["spec"]["nodeName"][1:])
            rack = str(number // 18)
            whole[rack] = whole.get(rack, 0) + 1
    groups = member["count"] // 16
    assert sum(whole.values()) >= member["count"]
    able = sum(count >= 16 for count in whole.values())
    assert able < groups
    if nodes == 1296:
        assert (able, groups, 4 * member["count"]) == (51, 64, 4096)
