"""Pods that are asked for beside others of their gang, which run."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.allocation import Rule
from contracts.gang import Gang, GangPhase
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import (
    DeviceID,
    DeviceName,
    DriverName,
    GangKey,
    GangUID,
    Namespace,
    NodeName,
    PoolName,
)
from contracts.joined import JoinedDevice, JoinedGang, JoinedPod
from contracts.messages import SubmitGang
from tests.builders import (
    DRIVER,
    device,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    topology_rule,
)
from tests.builders.problems import CLUSTER, observe_core, snapshot_of
from tests.builders.solving import Solving

RAILS = {"a0": "0", "a1": "0", "b0": "1", "b1": "1"}
RAIL = f"{DRIVER}/rail"
MATCH, DISTINCT = gang_constraint(RAIL), gang_constraint(distinct=RAIL)


def key(number: int) -> GangKey:
    uid = GangUID(f"00000000-0000-4000-8000-{number:012}")
    return GangKey(Namespace("default"), uid)


def asking(number: int, pods: int, **node: Any) -> Gang:
    wanted = member(member_claim(request()), count=pods, **node)
    return gang(wanted, name=f"g{number}", uid=key(number).uid, namespace="default")


def on(node: str, member: str = "worker", device: str = "gpu-0") -> JoinedPod:
    """Name a pod of another owner, which has a device of a node."""
    name = DeviceID(DriverName(DRIVER), PoolName(node), DeviceName(device))
    held = JoinedDevice(claim="gpus", request="gpus", device=name)
    return JoinedPod(
        member=member,
        name=f"{member}-{node}",
        uid=f"uid-{node}",
        node=NodeName(node),
        devices=(held,),
    )


def joining(
    *pods: JoinedPod,
    constraints: tuple[GangConstraint, ...] = (),
    topology: tuple[GangTopology, ...] = (),
) -> JoinedGang:
    return JoinedGang(pods=pods, constraints=constraints, topology=topology)


def solving(*gangs: Gang) -> Solving:
    """Nodes with two devices each, two of one rail."""
    pools = {
        name: [
            pool(
                *(device(f"gpu-{n}", attributes={"rail": rail}) for n in range(2)),
                name=name,
            )
        ]
        for name, rail in RAILS.items()
    }
    nodes = [node(name, labels={"rack": name[0]}) for name in RAILS]
    return Solving(observe_core(snapshot_of(pools, gangs), *nodes))


def ask(solver: Solving, gang: Gang, joins: JoinedGang) -> None:
    uid = GangUID(gang.metadata.uid)
    solver.hear(SubmitGang(cluster=CLUSTER, uid=uid, gang=gang, joins=joins))
    solver.decide()


def rails_of(solver: Solving, number: int) -> list[str]:
    return [RAILS[pod.node] for pod in solver.placed(key(number)).members]


@pytest.mark.parametrize("old", ["worker", "driver"])
@pytest.mark.parametrize(
    ("rules", "rail"),
    [
        ({"constraints": (MATCH,)}, "1"),
        ({"constraints": (DISTINCT,)}, "0"),
        ({"topology": (topology_rule(f"attribute:{RAIL}"),)}, "1"),
        ({"topology": (topology_rule("rack"),)}, "1"),
        ({"topology": (topology_rule("rack", max_per_domain=1),)}, "0"),
    ],
)
def test_rules_hold_over_those_that_run(
    rules: dict[str, Any], rail: str, old: str
) -> None:
    """Of the same member or of another that is not asked for now.

    Rules of both kinds are tried, so that one of them fails wherever else it would go.
    """
    solver = solving()
    ask(solver, asking(1, 1), joining(on("b0", old), **rules))
    assert rails_of(solver, 1) == [rail]


def test_rules_of_a_member_look_at_that_member() -> None:
    of_member = (gang_constraint(RAIL, scope="Member"),)
    elsewhere = asking(1, 1, node_name=NodeName("a0"))
    for old, phase in (("worker", GangPhase.PENDING), ("driver", GangPhase.DECIDED)):
        solver = solving()
        ask(solver, elsewhere, joining(on("b0", old), constraints=of_member))
        record = solver.snapshot.gangs.get(key(1))
        assert record is not None
        assert record.phase == phase


def test_nobody_is_given_what_pods_are_said_to_have() -> None:
    """It is free for whoever asks, the new pods among them."""
    solver = solving()
    ask(solver, asking(1, 4), joining(on("b0"), constraints=(MATCH,)))
    assert rails_of(solver, 1) == ["1"] * 4
    held = {
        (result.pool, result.device)
        for pod in solver.placed(key(1)).members
        for claim in pod.claims
        for result in claim.allocation.devices.results
    }
    assert ("b0", "gpu-0") in held
    assert [pod.index for pod in solver.placed(key(1)).members] == [0, 1, 2, 3]


def test_what_has_no_room_beside_them_waits_for_it() -> None:
    other = asking(1, 1, node_name=NodeName("b1"))
    solver = solving(other)
    solver.decide()
    ask(solver, asking(2, 4), joining(on("b0"), constraints=(MATCH,)))
    record = solver.snapshot.gangs.get(key(2))
    assert record is not None
    assert record.allocated is None
    (reason,) = solver.decisions[-1].gangs[0].reasons
    assert reason.rule is Rule.CONSTRAINT
    assert "beside the 1 that have a place" in reason.message


@pytest.mark.parametrize(
    ("joins", "rule", "field"),
    [
        (
            joining(on("b0", device="gone"), constraints=(MATCH,)),
            Rule.NOT_MODELLED,
            "spec.constraints[0]",
        ),
        (
            joining(on("a0"), on("b0"), constraints=(MATCH,)),
            Rule.CONSTRAINT,
            "spec.constraints[0]",
        ),
        (
            joining(on("a0"), constraints=(gang_constraint(RAIL, "nobody/gpus"),)),
            Rule.INVALID,
            "joins.constraints[0].requests[0]",
        ),
        (
            joining(on("a0"), constraints=(gang_constraint(RAIL, scope="All"),)),
            Rule.INVALID,
            "joins.constraints[0].scope",
        ),
        (
            joining(on("a0"), topology=(topology_rule("a b"),)),
            Rule.INVALID,
            "joins.topology[0].key",
        ),
    ],
)
def test_what_cannot_be_is_refused(joins: JoinedGang, rule: Rule, field: str) -> None:
    """With the field; others are decided with it."""
    solver = solving()
    solver.hear(
        SubmitGang(cluster=CLUSTER, uid=key(1).uid, gang=asking(1, 1), joins=joins)
    )
    ask(solver, asking(2, 1), joining(on("a0"), constraints=(MATCH,)))
    refused, _ = solver.decisions[0].gangs
    (reason,) = refused.reasons
    assert (reason.rule, reason.field) == (rule, field)
    assert rails_of(solver, 2) == ["0"]
