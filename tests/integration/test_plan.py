"""`moorings plan` keeps its contract: verdicts, order, lines, bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contracts.claim import DeviceRequest, ResourceClaim
from contracts.codec import to_builtins
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from moorings.plan.decide import Planner
from moorings.plan.lines import plan_lines
from solver.cel.evaluator import SelectorEvaluator
from tests.builders import (
    DRIVER,
    NAMESPACE,
    claim,
    claim_template,
    constraint,
    device,
    device_class,
    devices,
    gang,
    member,
    member_claim,
    request,
    resource_slice,
)

ROOT = "resource.kubernetes.io/pcieRoot"


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with SelectorEvaluator() as evaluator:
        yield Planner(evaluator)


def raw(*objects: WritableObject) -> list[Any]:
    return [to_builtins(to_kubernetes(item)) for item in objects]


def named(name: str, *requests: DeviceRequest, **fields: Any) -> ResourceClaim:
    return claim(*requests, name=name, **fields)


def planned(planner: Planner, **case: Any) -> dict[str, Any]:
    line = json.dumps({"id": "case", **case}).encode()
    (answer,) = plan_lines([line], planner)
    found: dict[str, Any] = json.loads(answer)
    assert found["id"] == "case"
    assert found["kind"] == "Plan"
    return found


def pod(name: str, **claims: str) -> dict[str, Any]:
    """A pod whose claims are made from templates (`t:name`) or named."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"},
        "spec": {
            "containers": [{"name": "c"}],
            "resourceClaims": [
                {"name": key, "resourceClaimTemplateName": value.removeprefix("t:")}
                if value.startswith("t:")
                else {"name": key, "resourceClaimName": value}
                for key, value in claims.items()
            ],
        },
    }


WORLD = raw(device_class(), resource_slice(*devices(4), node="node-1"))


def test_claims_are_answered_in_the_order_of_the_input(planner: Planner) -> None:
    found = planned(planner, objects=[*WORLD, *raw(named("b"), named("a"))])
    assert [item["name"] for item in found["claims"]] == ["b", "a"]
    assert {item["verdict"] for item in found["claims"]} == {"allocated"}
    assert found["status"] == "Optimal"
    assert found["problemHash"]
    devices, leftover, nodes = found["objective"]
    assert devices == {"tier": "gangs", "priority": 0, "value": 2, "bound": 2}
    assert leftover["tier"] == "leftover"
    assert (nodes["tier"], nodes["value"]) == ("nodes", 1)


def test_an_allocation_has_the_shape_of_kubernetes(planner: Planner) -> None:
    found = planned(planner, objects=[*WORLD, *raw(named("a"))])
    assert found["claims"][0]["allocation"] == {
        "devices": {
            "results": [
                {
                    "request": "gpu",
                    "driver": DRIVER,
                    "pool": "node-1",
                    "device": "gpu-0",
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {
                    "matchFields": [
                        {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
                    ]
                }
            ]
        },
    }


def test_all_claims_go_to_the_one_node_that_is_named(planner: Planner) -> None:
    other = raw(resource_slice(*devices(4), node="node-2"))
    wanted = raw(*(named(f"c{i}", request(count=2)) for i in range(2)))
    found = planned(planner, objects=[*WORLD, *other, *wanted], node="node-2")
    assert [item["node"] for item in found["claims"]] == ["node-2", "node-2"]
    none = planned(planner, objects=[*WORLD, *wanted, *raw(named("c2"))], node="node-1")
    assert {item["verdict"] for item in none["claims"]} == {"none"}


def test_pods_of_a_gang_are_decided_together(planner: Planner) -> None:
    three = gang(member(member_claim(request(count=2)), count=3))
    found = planned(planner, objects=[*WORLD, *raw(three)])
    (answer,) = found["gangs"]
    assert answer["verdict"] == "none"
    assert answer["reasons"][0]["rule"] == "DevicesTaken" or answer["reasons"]
    two = gang(member(member_claim(request(count=2)), count=2))
    found = planned(planner, objects=[*WORLD, *raw(two)])
    assert found["gangs"][0]["verdict"] == "allocated"
    assert len(found["claims"]) == 2


def test_a_claim_that_pods_share_is_reserved_for_all(planner: Planner) -> None:
    objects = [
        *WORLD,
        *raw(named("shared")),
        pod("a", c="shared"),
        pod("b", c="shared"),
    ]
    found = planned(planner, objects=objects)
    (answer,) = found["claims"]
    assert answer["verdict"] == "allocated"
    assert [entry["name"] for entry in answer["reservedFor"]] == ["a", "b"]


def test_a_workload_counts_as_its_replicas(planner: Planner) -> None:
    template = pod("x", gpu="t:one")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": NAMESPACE},
        "spec": {"replicas": 5, "template": {"spec": template["spec"]}},
    }
    objects = [*WORLD, *raw(claim_template(name="one")), deployment]
    found = planned(planner, objects=objects)
    verdicts = [item["verdict"] for item in found["gangs"]]
    assert verdicts.count("allocated") == 4
    assert verdicts.count("none") == 1


def test_allocated_claims_are_state_only(planner: Planner) -> None:
    from msgspec import structs

    from contracts.allocation import AllocationResult, DeviceAllocationResult
    from contracts.claim import ResourceClaimStatus
    from tests.builders import result

    held = AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(result(f"gpu-{i}", pool="node-1") for i in range(4))
        )
    )
    taken = structs.replace(
        named("held", request(device_class="gone.example.com")),
        status=ResourceClaimStatus(allocation=held),
    )
    found = planned(planner, objects=[*WORLD, *raw(taken, named("a"))])
    (answer,) = found["claims"]
    assert answer["verdict"] == "none"
    assert answer["reasons"][0]["rule"] == "DevicesTaken"


def test_the_upstream_order_takes_the_first_that_fits(planner: Planner) -> None:
    """A first device without a partner: first fit goes back, and finds the pair."""
    content = (
        device("gpu-0", attributes={ROOT: "a"}),
        device("gpu-1", attributes={ROOT: "b"}),
        device("gpu-2", attributes={ROOT: "b"}),
    )
    world = raw(device_class(), resource_slice(*content, node="node-1"))
    asked = named("a", request(count=2), constraints=[constraint(ROOT)])
    for order in ("upstream", "optimal"):
        found = planned(planner, objects=[*world, *raw(asked)], order=order)
        results = found["claims"][0]["allocation"]["devices"]["results"]
        assert [item["device"] for item in results] == ["gpu-1", "gpu-2"]


def test_both_orders_fill_in_what_is_not_said(planner: Planner) -> None:
    """Unless objects are to be taken as upstream's allocator is given them."""
    objects = [*WORLD, *raw(named("a", request(mode="", count=0)))]
    for order in ("optimal", "upstream"):
        found = planned(planner, objects=objects, order=order)
        assert found["gangs"][0]["verdict"] == "allocated"
    found = planned(planner, objects=objects, order="upstream", asStored=True)
    assert "unsupported count mode" in found["claims"][0]["error"]


@pytest.mark.parametrize("order", ["optimal", "upstream"])
def test_what_needs_a_gate_that_is_off_is_an_error(
    planner: Planner, order: str
) -> None:
    objects = [*WORLD, *raw(named("a", request(capacity={"memory": "1Gi"})))]
    gates = {"DRAConsumableCapacity": False}
    found = planned(planner, objects=objects, order=order, featureGates=gates)
    (answer,) = found["claims"]
    assert (answer["verdict"], answer["errorScope"]) == ("error", "cluster")
    assert "has capacity requests" in answer["error"]


@pytest.mark.parametrize("order", ["optimal", "upstream"])
def test_what_the_api_server_drops_is_dropped_unless_it_is_stored(
    planner: Planner, order: str
) -> None:
    objects = [*WORLD, *raw(named("a", request(admin_access=True)))]
    gates = {"DRAAdminAccess": False}
    found = planned(planner, objects=objects, order=order, featureGates=gates)
    (result,) = found["claims"][0]["allocation"]["devices"]["results"]
    assert "adminAccess" not in result
    assert "drops exactly.adminAccess" in found["notes"][0]
    stored = {"order": "upstream", "asStored": True}
    found = planned(planner, objects=objects, featureGates=gates, **stored)
    assert "admin access is requested" in found["claims"][0]["error"]


def test_admin_access_needs_a_namespace_that_admits_it(planner: Planner) -> None:
    wanted = raw(named("a", request(admin_access=True)))
    objects = [*WORLD, *wanted]
    label = {"resource.kubernetes.io/admin-access": "true"}
    for labels, verdict in (({}, "error"), (label, "allocated")):
        meta = {"name": NAMESPACE, "labels": labels}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        (answer,) = planned(planner, objects=[*objects, space])["claims"]
        assert answer["verdict"] == verdict
    assert planned(planner, objects=objects)["claims"][0]["verdict"] == "allocated"


def test_pods_that_a_gang_can_do_without_are_told_apart(planner: Planner) -> None:
    """Placed pods are listed; claims of the others have nothing, and say why."""
    wanted = gang(member(member_claim(), count=99, min_count=1))
    found = planned(planner, objects=[*WORLD, *raw(wanted)])
    (answer,) = found["gangs"]
    assert answer["verdict"] == "allocated"
    placed = len(answer["members"])
    assert 1 <= placed < 99
    assert answer["growing"] == {"worker": 99 - placed}
    verdicts = [claim["verdict"] for claim in found["claims"]]
    assert verdicts == ["allocated"] * placed + ["none"] * (99 - placed)
    assert found["claims"][-1]["reasons"][0]["rule"] == "Growing"
    extra = [t for t in found["objective"] if t["tier"] == "extra"]
    assert [(t["value"], t["bound"]) for t in extra] == [(placed - 1, placed - 1)]


def test_a_bad_line_is_answered_and_the_next_goes_on(planner: Planner) -> None:
    good = json.dumps({"id": 2, "objects": [*WORLD, *raw(named("a"))]}).encode()
    lines = [
        b"{",
        b'{"id": 1}',
        good,
        b'{"id": 3, "objects": [], "order": "best"}',
        b'{"id": 4, "objects": [], "featureGates": {"Nope": true}}',
        (
            b'{"id": 5, "objects": [{"apiVersion": "resource.k8s.io/v1", '
            b'"kind": "ResourceClaim", "metadata": {"name": 3}}]}'
        ),
        b"",
    ]
    answers = [json.loads(line) for line in plan_lines(lines, planner)]
    assert [answer["id"] for answer in answers] == [None, 1, 2, 3, 4, 5]
    assert [answer["status"] for answer in answers] == [
        "Error",
        "Error",
        "Optimal",
        "Error",
        "Error",
        "Error",
    ]
    assert all(answer["error"] for answer in answers if answer["status"] == "Error")
