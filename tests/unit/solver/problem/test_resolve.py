"""Claims, classes and nodes of a gang are resolved once, when it is read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from contracts.allocation import Rule
from contracts.features import Features
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
from solver.problem.assemble import SnapshotLookup
from solver.problem.gangs import GangPart
from solver.problem.resolve import ResolveOptions, resolve
from solver.problem.resolved import MOST_RESOLVED, resolve_once
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DEVICE_CLASS,
    DRIVER,
    NAMESPACE,
    claim,
    claim_template,
    device,
    device_class,
    gang,
    gang_constraint,
    member,
    member_claim,
    node,
    pool,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.decisions import gang_allocated, submission
from tests.builders.models import DRAWN_UID
from tests.builders.problems import CLUSTER, observe, observe_core, snapshot_of
from tests.builders.solving import Solving


def resolved(asking: Gang, *objects: Any) -> GangPart:
    """Resolve a gang in a cluster with one class and these objects."""
    snapshot = snapshot_of({})
    for item in objects:
        metadata = item.metadata
        snapshot = observe(snapshot, f"{metadata.namespace}/{metadata.name}", item)
    return resolve(
        GangUID("u"), asking, ResolveOptions(lookup=SnapshotLookup(snapshot))
    )


@pytest.mark.parametrize(
    ("asking", "rule", "rejected"),
    [
        (gang(member(name="Worker")), Rule.INVALID, True),
        (gang(member(member_claim(template="t"))), Rule.UNKNOWN_TEMPLATE, False),
        (gang(member(member_claim(claim="c"))), Rule.UNKNOWN_CLAIM, False),
        (
            gang(member(member_claim(request(device_class="no.such.class")))),
            Rule.UNKNOWN_CLASS,
            False,
        ),
    ],
)
def test_what_cannot_be_decided_is_refused_by_rule(
    asking: Gang, rule: Rule, *, rejected: bool
) -> None:
    """For good where the gang itself is wrong, for now where something is missing."""
    part = resolved(asking)
    assert [reason.rule for reason in part.refused] == [rule]
    assert part.rejected is rejected


def test_a_path_into_a_template_names_what_the_template_asks_for() -> None:
    """It is known only here; what it does not ask for is refused for good."""
    template = claim_template(request(first_available=[sub_request("a")]), name="t")
    pods = member(member_claim(template="t"))

    for path in ("worker", "worker/gpus", "worker/gpus/gpu", "worker/gpus/gpu/a"):
        asked = gang(pods, constraints=(gang_constraint(None, path),))
        assert resolved(asked, template).constraints == asked.spec.constraints
    for path in ("worker/gpus/nic", "worker/gpus/gpu/b"):
        asked = gang(pods, constraints=(gang_constraint(None, path),))
        part = resolved(asked, template)
        assert part.refused[0].rule is Rule.INVALID
        assert part.refused[0].field == "spec.constraints[0].requests[0]"
        assert part.rejected


def test_a_reference_leads_to_the_spec_that_it_names() -> None:
    """A template or a claim is as good as a claim that is written out."""
    template = claim_template(request(count=3), name="t")
    by_template = resolved(gang(member(member_claim(template="t"))), template)
    by_name = resolved(
        gang(member(member_claim(claim="c"))), claim(request(count=3), name="c")
    )
    written = resolved(gang(member(member_claim(request(count=3)))))
    for part in (by_template, by_name, written):
        (found,) = part.members[0].claims[0].requests
        assert found.alternatives[0].count == 3


def test_a_gang_weighs_the_devices_that_it_asks_for() -> None:
    """A request for all counts as one; a weight that is said counts as said."""
    two = member(member_claim(request("a", count=3), request("b", mode="All")), count=2)
    assert resolved(gang(two)).weight == 8
    assert resolved(gang(two, weight=1)).weight == 1


def test_pods_that_a_gang_can_do_without_weigh_nothing() -> None:
    """Devices count at minCount; a minCount that says nothing is not recorded."""
    claims = (member_claim(request(count=3)),)
    some = resolved(gang(member(*claims, count=4, min_count=1)))
    assert (some.weight, some.members[0].min_count, some.is_elastic) == (3, 1, True)
    every = resolved(gang(member(*claims, count=4, min_count=4)))
    assert (every.weight, every.members[0].min_count) == (12, None)
    assert every.core is every
    assert [m.count for m in some.core.members] == [1]


RESOURCE = "example.com/gpu"
UID = GangUID("a gang that asks twice")
Change = Callable[[Snapshot], Snapshot]


def resolve_again(
    snapshot: Snapshot, asking: Gang, *, once: bool = True, **options: Any
) -> GangPart:
    how = ResolveOptions(lookup=SnapshotLookup(snapshot), **options)
    return (resolve_once if once else resolve)(UID, asking, how)


def give_away(snapshot: Snapshot) -> Snapshot:
    """Let another gang have the claim."""
    uid = DRAWN_UID.format(1)
    other = gang(member(member_claim(claim="c")), uid=uid)
    snapshot = apply(snapshot, submission(other, uid=uid), sequence=1)
    return apply(snapshot, gang_allocated(uid=uid), sequence=1)


def put(key: str, value: Any) -> Change:
    return partial(observe, key=key, value=value)


@pytest.mark.parametrize(
    ("asking", "change"),
    [
        (
            gang(member()),
            put(DEVICE_CLASS, device_class(DEVICE_CLASS, "device.driver == 'other'")),
        ),
        (
            gang(member(member_claim(template="t"))),
            put(f"{NAMESPACE}/t", claim_template(request(count=2), name="t")),
        ),
        (
            gang(member(member_claim(claim="c"))),
            put(f"{NAMESPACE}/c", claim(request(count=2), name="c")),
        ),
        (gang(member(member_claim(claim="c"))), give_away),
        (
            gang(member(resources={RESOURCE: 1})),
            put("serving", device_class("serving", extended_resource_name=RESOURCE)),
        ),
    ],
    ids=["class", "template", "claim", "holder", "extended resource"],
)
def test_what_it_refers_to_is_followed(asking: Gang, change: Change) -> None:
    """Whatever changed, the gang is what it would be if asked for the first time."""
    before = snapshot_of({})
    first = resolve_again(before, asking)
    assert resolve_again(before, asking) is first
    assert resolve_again(snapshot_of({}), asking) == first
    after = change(before)
    second = resolve_again(after, asking)
    assert second == resolve_again(after, asking, once=False) != first


def test_it_is_read_anew_by_other_features_and_of_other_words() -> None:
    """A submission that came again may say something else."""
    snapshot = snapshot_of({})
    asking = gang(member(resources={RESOURCE: 1}))
    offered = put("serving", device_class("serving", extended_resource_name=RESOURCE))
    snapshot = offered(snapshot)
    first = resolve_again(snapshot, asking)
    without = Features(extended_resource=False)
    assert resolve_again(snapshot, asking, features=without) != first
    other = structs.replace(asking, spec=gang(member(count=2)).spec)
    assert (
        resolve_again(snapshot, other)
        == resolve_again(snapshot, other, once=False)
        != first
    )


def test_few_are_remembered() -> None:
    """Those that were asked about last."""
    snapshot, asking = snapshot_of({}), gang(member())
    first = resolve_again(snapshot, asking)
    how = ResolveOptions(lookup=SnapshotLookup(snapshot))
    for number in range(MOST_RESOLVED):
        resolve_once(GangUID(f"gang {number}"), asking, how)
    assert resolve_again(snapshot, asking) is not first


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
    assert "beside its 1 placed pod" in reason.message


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
