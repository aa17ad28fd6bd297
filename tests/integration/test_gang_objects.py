"""Gangs in the API server: what is written comes back, what is wrong is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.codec import to_builtins
from contracts.gang import Gang, GangSpec, MemberClaim
from contracts.kubernetes.decode import decode_object, to_kubernetes
from contracts.meta import ObjectMeta
from contracts.validate.gangs import check_gang as violations
from tests.builders import (
    gang,
    gang_constraint,
    member,
    member_claim,
    request,
    topology_rule,
)
from tests.integration.conftest import Installed
from tests.lab.controlplane.client import Json, Kube, RefusedError

DOCS = Path(__file__).parents[2] / "docs"
FULL = gang(
    member(
        member_claim(request("gpu"), request("nic"), name="devices"),
        member_claim(name="shared", claim="one-for-all"),
        member_claim(name="scratch", template="disks"),
        count=16,
        min_count=8,
        resources={"cpu": "500m", "memory": "256Gi", "example.com/port": 1},
        node_selector={"pool": "a"},
        affinity={
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}
        },
    ),
    member(name="driver", node_name="node-1"),
    constraints=(
        gang_constraint("net.example.com/rail", "worker/devices/nic"),
        gang_constraint("net.example.com/rail", "worker", "driver/gpus"),
        gang_constraint(distinct="example.com/rack", scope="Pod"),
    ),
    topology=(
        topology_rule(),
        topology_rule("zone", mode="Preferred"),
        topology_rule("rack", "worker", group_size=8, max_per_domain=16),
        topology_rule("attribute:gpu.example.com/cliqueID"),
    ),
    recovery="Recreate",
    on_device_failure=("Unhealthy", "Xid79"),
    max_recreations=5,
    duration="2h30m",
    hold=True,
    priority=-7,
    weight=12,
)
"""Every field there is."""


def _document(value: Gang, name: str) -> Json:
    document: Json = to_kubernetes(value)
    return {**document, "metadata": {"name": name, "namespace": "default"}}


async def _come_back(admin: Kube, document: Json) -> GangSpec:
    created = await admin.create(document, fieldValidation="Strict")
    decoded = decode_object(created)
    assert decoded.unknown == ()
    assert isinstance(decoded.value, Gang)
    return decoded.value.spec


async def test_every_field_comes_back(admin: Kube) -> None:
    """Under strict validation, where an unknown field is an error."""
    assert to_builtins(FULL.spec).keys() == {*GangSpec.__struct_encode_fields__}

    assert await _come_back(admin, _document(FULL, "full")) == FULL.spec


async def test_gangs_of_the_documentation_come_back(admin: Kube) -> None:
    documents = [
        document
        for path in (*DOCS.glob("examples/*.yaml"), *DOCS.glob("gangs/*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if document["kind"] == "Gang"
    ]
    assert documents
    for document in documents:
        wanted = decode_object(document).value
        assert isinstance(wanted, Gang)
        document["metadata"]["namespace"] = "default"
        assert await _come_back(admin, document) == wanted.spec


# --- what is refused --------------------------------------------------------------


IMMUTABLE = "cannot be changed: delete the gang and create it anew"
BROKEN: dict[str, tuple[Gang, str]] = {
    "no member": (Gang(metadata=ObjectMeta(name="g")), "spec.members"),
    "too long a name": (gang(name="g" * 64), "metadata.name: Too long"),
    "two members of one name": (
        gang(member(), member()),
        'spec.members[1]: Duplicate value: {"name":"worker"}',
    ),
    "no pods": (gang(member(count=0)), "spec.members[0].count: Invalid value: 0"),
    "too many pods": (
        gang(member(count=5000), member(name="one-more")),
        "spec.members: Invalid value: a gang has at most 5000 pods",
    ),
    "a name that is no label": (
        gang(member(name="W")),
        'spec.members[0].name: Invalid value: "W"',
    ),
    "two claims of one name": (
        gang(member(member_claim(), member_claim())),
        'spec.members[0].claims[1]: Duplicate value: {"name":"gpus"}',
    ),
    "a claim of nothing": (
        gang(member(MemberClaim(name="gpus"))),
        "exactly one of spec, templateName or claimName is required",
    ),
    "a claim of two things": (
        gang(member(member_claim(template="t", claim="c"))),
        "exactly one of spec, templateName or claimName is required",
    ),
    "a negative amount": (
        gang(member(resources={"cpu": -1})),
        "spec.members[0].node.resources.cpu: Invalid value",
    ),
    "no such mode": (
        gang(topology=(topology_rule(mode="Maybe"),)),
        'spec.topology[0].mode: Unsupported value: "Maybe"',
    ),
    "a group of nobody": (
        gang(topology=(topology_rule(group_size=0),)),
        "spec.topology[0].groupSize: Invalid value: 0",
    ),
    "even parts that are preferred": (
        gang(topology=(topology_rule(group_size="Even", mode="Preferred"),)),
        "spec.topology[0].groupSize: Invalid value",
    ),
    "even parts of who knows how many": (
        gang(
            member(count=2, min_count=1),
            topology=(topology_rule(group_size="Even"),),
        ),
        "groupSize Even needs all pods of its members",
    ),
    "a domain of nobody": (
        gang(topology=(topology_rule(max_per_domain=0),)),
        "spec.topology[0].maxPerDomain: Invalid value: 0",
    ),
    "fewer than none": (
        gang(member(min_count=-1)),
        "spec.members[0].minCount: Invalid value: -1",
    ),
    "more that are enough than there are": (
        gang(member(min_count=2)),
        "spec.members[0].minCount: Invalid value: must be at most count",
    ),
    "enough without anybody": (
        gang(member(min_count=0), member(name="driver", min_count=0)),
        "spec.members: Invalid value: minCount must be greater than zero",
    ),
    "a domain of an unknown member": (
        gang(topology=(topology_rule("rack", "driver"),)),
        "spec.topology: Invalid value: members name one that is not there",
    ),
    "no reason of a device": (
        gang(on_device_failure=("a b",)),
        "spec.onDeviceFailure[0]: Invalid value",
    ),
    "less than no recreation": (
        gang(max_recreations=-1),
        "spec.maxRecreations: Invalid value: -1",
    ),
    "no such recovery": (
        gang(recovery="Pray"),
        'spec.recovery: Unsupported value: "Pray"',
    ),
    "a negative weight": (gang(weight=-1), "spec.weight: Invalid value: -1"),
    "no such scope": (
        gang(constraints=(gang_constraint(scope="Rack"),)),
        'spec.constraints[0].scope: Unsupported value: "Rack"',
    ),
    "an attribute without a domain": (
        gang(constraints=(gang_constraint("rail"),)),
        'spec.constraints[0].matchAttribute: Invalid value: "rail"',
    ),
    "a constraint of two kinds": (
        gang(constraints=(gang_constraint("a/b", distinct="a/b"),)),
        "exactly one of matchAttribute or distinctAttribute is required",
    ),
    "a path of too many parts": (
        gang(constraints=(gang_constraint(None, "worker/a/b/c/d"),)),
        'spec.constraints[0].requests[0]: Invalid value: "worker/a/b/c/d"',
    ),
    "a request of an unknown member": (
        gang(constraints=(gang_constraint(None, "driver/gpus/gpu"),)),
        "spec.constraints: Invalid value: requests name a member that is not there",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_gang_is_refused_at_the_door(admin: Kube, name: str) -> None:
    """What the contract refuses too, so that nobody learns of it only in a status."""
    broken, reason = BROKEN[name]
    assert list(violations(broken))
    document = {**to_kubernetes(broken)}
    document["metadata"] = {"name": broken.metadata.name, "namespace": "default"}
    with pytest.raises(RefusedError) as refused:
        await admin.create(document)
    assert refused.value.status == 422
    assert reason in refused.value.message


async def test_parts_are_even_or_of_some_size(admin: Kube) -> None:
    """Another word is refused, and a member that the rule is not about may be few."""
    rule = topology_rule("rack", "worker", group_size="Even")
    others = member(name="other", count=2, min_count=1)
    asked = gang(member(count=2), others, topology=(rule,))
    assert await _come_back(admin, _document(asked, "few")) == asked.spec
    document = _document(asked, "odd")
    document["spec"]["topology"][0]["groupSize"] = "Odd"
    with pytest.raises(RefusedError) as refused:
        await admin.create(document)
    assert 'spec.topology[0].groupSize: Invalid value: "Odd"' in refused.value.message


async def test_priority_is_a_number(admin: Kube) -> None:
    """A field that nobody looks up would be ignored; so there is none."""
    document = _document(gang(), "classy")
    document["spec"]["priorityClassName"] = "high"
    with pytest.raises(RefusedError) as refused:
        await admin.create(document, fieldValidation="Strict")
    assert 'unknown field "spec.priorityClassName"' in refused.value.message


CHANGES: dict[str, dict[str, Any]] = {
    "members": {"members": [{"name": "worker", "count": 2}]},
    "constraints": {"constraints": [{"matchAttribute": "a/b"}]},
    "topology": {"topology": [{"key": "rack"}]},
    "weight": {"weight": 3},
    "hold": {"hold": True},
}


@pytest.mark.parametrize("field", CHANGES)
async def test_what_decides_cannot_be_changed(admin: Kube, field: str) -> None:
    document = _document(gang(), f"fixed-{field.lower()}")
    await admin.create(document)
    with pytest.raises(RefusedError) as refused:
        await admin.patch(document, {"spec": CHANGES[field]})
    assert f"spec.{field}: Invalid value" in refused.value.message
    assert IMMUTABLE in refused.value.message


async def test_optional_parts_cannot_be_taken_away(admin: Kube) -> None:
    await admin.create(_document(FULL, "whole"))
    for field in ("constraints", "topology", "weight"):
        patch = {"spec": {field: None}}
        with pytest.raises(RefusedError, match=IMMUTABLE):
            await admin.patch(_document(FULL, "whole"), patch)


async def test_priority_can_be_changed_unless_it_holds_devices(admin: Kube) -> None:
    waits, holds = _document(gang(), "waits"), _document(gang(hold=True), "holds")
    for document in (waits, holds):
        await admin.create(document)
    found = await admin.patch(waits, {"spec": {"priority": 7}})
    assert found["spec"]["priority"] == 7
    with pytest.raises(RefusedError) as refused:
        await admin.patch(holds, {"spec": {"priority": 7}})
    assert "spec.priority: Invalid value" in refused.value.message


async def test_recovery_and_status_can_be_changed(admin: Kube) -> None:
    document = _document(gang(), "changing")
    await admin.create(document)
    recovery = {
        "recovery": "Recreate",
        "onDeviceFailure": ["Xid79"],
        "maxRecreations": 2,
    }
    await admin.patch(document, {"spec": recovery})
    condition = {
        "type": "Allocated",
        "status": "True",
        "reason": "Allocated",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "phase": "Running",
        "pods": "3/4",
        "reason": "Bound",
        "message": "3 of 4 pods may be scheduled",
        "attempt": 1,
        "solve": "0344e5f4c64eeba0",
        "recreations": 2,
        "observedGeneration": 2,
        "conditions": [condition],
    }
    found = await admin.patch(document, {"status": status}, "status")

    assert found["status"] == status
    assert found["spec"].items() >= recovery.items()


def test_kubectl_shows_what_a_person_asks_first(installed: Installed) -> None:
    thing = _document(gang(), "shown")
    installed.kubectl("apply", "-f", "-", given=[thing])
    narrow = installed.kubectl("get", "gangs", "shown")
    wide = installed.kubectl("get", "gang", "shown", "-o", "wide")

    assert narrow.split("\n")[0].split() == ["NAME", "PHASE", "PODS", "REASON", "AGE"]
    assert wide.split("\n")[0].split()[-2:] == ["MESSAGE", "SOLVE"]
    assert "gang.moorings.dev/shown" in installed.kubectl("get", "all")
