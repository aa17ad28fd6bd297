"""The publisher writes slices for node agents and rules for owned devices, no others.

RBAC lets it write every ResourceSlice and DeviceTaintRule, by which devices vanish and
pods are evicted: policies bind its account. That it can do what it must is tried by the
end-to-end tests, whose publisher is bound by the same policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from contracts.names import OWNED, UNHEALTHY
from tests.lab.controlplane.client import Json, Kube, RefusedError, named
from tests.lab.controlplane.objects import RESOURCE
from tests.lab.personas import BY_NAME

PUBLISHER = BY_NAME["publisher"].user
DRIVER, FOREIGN = "gpu.moorings.dev", "gpu.example.com"
NODE_OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
TAINT = {"key": OWNED, "effect": "NoSchedule"}
AGENTS_ONLY = "writes slices of node agents' drivers only"
LOCAL = "writes only slices that are local to a node, under names of its own"
WITH_NODE = "writes only slices that go with their node"
ITS_TAINT = "writes only the taint moorings.dev/owned with effect NoSchedule"
HEALTH_TAINT = "writes only the taint moorings.dev/unhealthy with effect NoSchedule"
ONE_DEVICE = "a rule about health names one device, and goes with a Node"
A_DEVICE = {"pool": "n", "device": "gpu-0"}
ITS_NAMES = "writes only rules whose names begin with moorings-owned-"
NAMED_DRIVER = "writes only rules about the driver that their name says"


def _slice(name: str, driver: str = DRIVER, **fields: Any) -> Json:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "nodeName": "n", "devices": []}
    metadata = {"name": name, "ownerReferences": [NODE_OWNER]}
    made = named(RESOURCE, "ResourceSlice", name)
    return made | {"metadata": metadata, "spec": spec} | fields


def _health_rule(
    selector: Mapping[str, str], owners: Sequence[Json] = (NODE_OWNER,)
) -> Json:
    name = f"moorings-health-{FOREIGN}-0123456789abcdef"
    metadata = {
        "name": name,
        "labels": {UNHEALTHY: "true"},
        "ownerReferences": [*owners],
    }
    taint = {"key": UNHEALTHY, "value": "Unhealthy", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": FOREIGN, **selector}, "taint": taint}
    made = named(RESOURCE, "DeviceTaintRule", name)
    return made | {"metadata": metadata, "spec": spec}


def _with_taint(rule: Json, **taint: str) -> Json:
    spec = {**rule["spec"], "taint": {**rule["spec"]["taint"], **taint}}
    return rule | {"spec": spec}


def _rule(name: str, driver: str | None = DRIVER, **taint: str) -> Json:
    metadata = {"name": name, "labels": {OWNED: "true"}}
    selector = {} if driver is None else {"driver": driver}
    spec = {"deviceSelector": selector, "taint": {**TAINT, **taint}}
    made = named(RESOURCE, "DeviceTaintRule", name)
    return made | {"metadata": metadata, "spec": spec}


MADE = {
    "foreign-driver": (_slice("00000-a", FOREIGN), AGENTS_ONLY),
    "name-of-others": (_slice("gpus-of-n"), LOCAL),
    "for-all-nodes": (
        _slice(
            "00000-b",
            spec={**_slice("00000-b")["spec"], "nodeName": None, "allNodes": True},
        ),
        LOCAL,
    ),
    "outlives-its-node": (_slice("00000-c", metadata={"name": "00000-c"}), WITH_NODE),
    "goes-with-another-node": (
        _slice(
            "00000-d",
            metadata={
                "name": "00000-d",
                "ownerReferences": [{**NODE_OWNER, "name": "m"}],
            },
        ),
        WITH_NODE,
    ),
    "rule-that-evicts": (
        _rule(f"moorings-owned-{DRIVER}", effect="NoExecute"),
        ITS_TAINT,
    ),
    "rule-of-another-key": (_rule(f"moorings-owned-{DRIVER}", key="a.io/b"), ITS_TAINT),
    "rule-of-others": (_rule("maintenance"), ITS_NAMES),
    "rule-for-all-drivers": (_rule("moorings-owned-all", None), NAMED_DRIVER),
    "rule-for-another-driver": (
        _rule(f"moorings-owned-{DRIVER}", FOREIGN),
        NAMED_DRIVER,
    ),
    "verdict-on-a-pool": (_health_rule({"pool": "n"}), ONE_DEVICE),
    "verdict-on-no-pool": (_health_rule({"device": "gpu-0"}), ONE_DEVICE),
    "verdict-that-outlives-its-node": (_health_rule(A_DEVICE, ()), ONE_DEVICE),
    "verdict-that-evicts": (
        _with_taint(_health_rule(A_DEVICE), effect="NoExecute"),
        HEALTH_TAINT,
    ),
    "verdict-of-another-key": (
        _with_taint(_health_rule(A_DEVICE), key=OWNED),
        HEALTH_TAINT,
    ),
    "verdict-on-another-driver": (
        _health_rule({**A_DEVICE, "driver": DRIVER}),
        NAMED_DRIVER,
    ),
}
"""What the publisher tries to make, and how it is refused."""


@pytest.mark.parametrize("name", MADE)
async def test_publisher_makes_no_other_slices_and_taint_rules(
    admin: Kube, name: str
) -> None:
    wanted, words = MADE[name]
    async with admin.acting_as(PUBLISHER) as publisher:
        with pytest.raises(RefusedError, match=words):
            await publisher.create(wanted)


async def test_publisher_leaves_slices_and_rules_of_others_alone(admin: Kube) -> None:
    """Neither edited nor deleted; a foreign rule may evict whom it likes."""
    unowned = {"name": "00000-e"}, {"name": "gpus-of-n"}
    theirs = [
        (
            await admin.create(_slice("00000-e", FOREIGN, metadata=unowned[0])),
            AGENTS_ONLY,
        ),
        (await admin.create(_slice("gpus-of-n", metadata=unowned[1])), LOCAL),
        (await admin.create(_rule("maintenance")), ITS_NAMES),
    ]
    async with admin.acting_as(PUBLISHER) as publisher:
        for found, words in theirs:
            patch = {"metadata": {"labels": {"a": "b"}}}
            for attempt in (publisher.patch(found, patch), publisher.delete(found)):
                with pytest.raises(RefusedError, match=words):
                    await attempt
    for found, _ in theirs:
        await admin.delete(found)


async def test_publisher_writes_its_slices_and_rules(admin: Kube) -> None:
    """Makes, mends and deletes them, also a rule whose label somebody took."""
    node = await admin.create(named("v1", "Node", "n"))
    owner = {**NODE_OWNER, "uid": node["metadata"]["uid"]}
    async with admin.acting_as(PUBLISHER) as publisher:
        for wanted in (
            _slice("00000-f", metadata={"name": "00000-f", "ownerReferences": [owner]}),
            _rule(f"moorings-owned-{DRIVER}"),
            _rule(f"moorings-owned-{DRIVER}-0123456789abcdef"),
        ):
            made = await publisher.create(wanted)
            await admin.patch(made, {"metadata": {"labels": {OWNED: None}}})
            mended = {"metadata": {"labels": {OWNED: "true"}}}
            made = await publisher.patch(made, mended)
            await publisher.delete(made)
        verdict = _health_rule(A_DEVICE, (owner,))
        await publisher.delete(await publisher.create(verdict))
    await admin.delete(node)
