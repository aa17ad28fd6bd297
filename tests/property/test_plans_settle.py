"""A plan over its own result is empty, and slices hold every device exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from contracts.device import (
    Device,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    ResourcePool,
    ResourceSlice,
)
from contracts.ids import DriverName, GangUID, NodeName, PoolID, PoolName
from contracts.messages import GangAllocated
from contracts.meta import ObjectMeta
from contracts.validate import validate
from contracts.workload import Node
from publisher.folder.manifests import build_claims
from publisher.folder.plan_claims import is_written, plan_claims
from publisher.folder.sources import find_sources
from publisher.ownership.ownership import Ownership
from publisher.ownership.plan_taint_rules import plan_taint_rules
from publisher.slices.known_slices import ForeignPool
from publisher.slices.layout import lay_out
from publisher.slices.plan_slices import plan_slices
from publisher.steps import Create, ObjectKey, Update, apply_steps, key_of
from tests import builders
from tests.builders import decisions

NODE = NodeName(builders.NODE)
COUNTERS = {"set-0": {"memory": 1}}


@st.composite
def pools(draw: st.DrawFn) -> ResourcePool:
    """Draw pools around the limits of a slice, with and without features."""
    count = draw(st.sampled_from([0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 257]))
    featured = draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=2))
    sets = draw(st.sampled_from([0, 1, 8, 9, 17]))
    devices = [_device(index, index in featured, sets > 0) for index in range(count)]
    pool = builders.pool(
        builders.device(),
        generation=draw(st.integers(0, 5)),
        counters=[
            builders.counter_set(f"set-{index}", memory=8) for index in range(sets)
        ],
    )
    return ResourcePool(
        driver=pool.driver,
        name=pool.name,
        generation=pool.generation,
        devices=tuple(devices),
        shared_counters=pool.shared_counters,
    )


def _device(index: int, featured: bool, counted: bool) -> Device:
    return builders.device(
        f"gpu-{index}",
        taints=(builders.taint(),) if featured else (),
        consumes=COUNTERS if featured and counted else None,
    )


@given(st.lists(st.none() | pools(), min_size=1, max_size=4))
def test_slices_settle_in_one_plan(history: Sequence[ResourcePool | None]) -> None:
    """Carried out, the same plan again has nothing to do."""
    there: dict[ObjectKey, ResourceSlice] = {}
    for time, pool in enumerate(history):
        wanted = None if pool is None else lay_out(pool, NODE, {}, owned=False)
        slices = list(there.values())
        now = f"2026-11-20T12:00:0{time}Z"
        steps = plan_slices(wanted, slices, now=now)
        kinds = [("Delete", "Update", "Create").index(type(s).__name__) for s in steps]
        assert kinds == sorted(kinds)
        there = apply_steps(there, steps)
        slices = sorted(there.values(), key=lambda item: item.metadata.name)
        assert plan_slices(wanted, slices, now="later") == ()
        assert all(validate(item) == () for item in slices)
        devices = [device.name for item in slices for device in item.spec.devices]
        assert devices == [device.name for device in (pool.devices if pool else ())]
        assert len({item.spec.pool.generation for item in slices}) <= 1
        counts = {item.spec.pool.resource_slice_count for item in slices}
        assert counts == ({len(slices)} if pool else set())


@given(st.lists(pools(), min_size=2, max_size=2))
def test_readers_never_see_two_versions_of_one_generation(
    pair: Sequence[ResourcePool],
) -> None:
    """Unless one slice alone changes, everything written has a new generation."""
    first, second = (lay_out(pool, NODE, {}, owned=False) for pool in pair)
    before = tuple(apply_steps({}, plan_slices(first, (), now="now")).values())
    steps = plan_slices(second, before, now="now")
    old = {item.spec.pool.generation for item in before}
    new = {
        step.object.spec.pool.generation
        for step in steps
        if isinstance(step, Create | Update)
    }
    assert len(steps) <= 1 or not old or min(new) > max(old)


def _read(there: Mapping[ObjectKey, ResourceSlice]) -> list[Device] | None:
    """Read a pool as kube-scheduler does; None: it is not complete."""
    pools = [item.spec.pool for item in there.values()]
    newest = max((pool.generation for pool in pools), default=0)
    found = [item for item in there.values() if item.spec.pool.generation == newest]
    if {item.spec.pool.resource_slice_count for item in found} != {len(found)}:
        return None
    found.sort(key=lambda item: item.metadata.name)
    return [device for item in found for device in item.spec.devices]


@given(st.lists(st.tuples(pools(), st.integers(0, 4)), min_size=1, max_size=5))
def test_readers_see_a_whole_pool_or_none_wherever_a_publisher_dies(
    history: Sequence[tuple[ResourcePool, int]],
) -> None:
    """Each plan is carried out only so far, then somebody plans anew."""
    there: dict[ObjectKey, ResourceSlice] = {}
    whole: list[Sequence[Device]] = []
    for pool, carried_out in history:
        whole.append(pool.devices)
        wanted = lay_out(pool, NODE, {}, owned=False)
        steps = plan_slices(wanted, there.values(), now="2026-11-20T12:00:00Z")
        for step in steps[:carried_out]:
            there = apply_steps(there, (step,))
            seen = _read(there)
            assert seen is None or _names(seen) in map(_names, whole)


def _names(devices: Sequence[Device]) -> list[tuple[str, int]]:
    """Tell devices apart by name and number of taints."""
    return [(device.name, len(device.taints)) for device in devices]


LABEL = ("pool", "training")


def ownerships() -> SearchStrategy[Ownership]:
    """Draw what is owned among a few drivers, with and without nodes and classes."""
    drivers = st.lists(st.sampled_from(["a.test", "b.test", "c.test"]), unique=True)
    return st.builds(
        Ownership.of,
        drivers,
        st.sampled_from([(), ("gpu",)]),
        st.sampled_from([(), ("pool=training",)]),
    )


@st.composite
def foreign_pools(draw: st.DrawFn) -> list[ForeignPool]:
    """Draw pools of some drivers, local to some nodes or to none."""
    pairs = st.tuples(
        st.sampled_from(["a.test", "b.test", "d.test"]),
        st.sampled_from(["node-0", "node-1", "fabric"]),
    )
    found = draw(st.lists(pairs, unique=True, max_size=5))
    return [
        ForeignPool(
            PoolID(DriverName(driver), PoolName(name)),
            None if name == "fabric" else NodeName(name),
        )
        for driver, name in found
    ]


def states() -> SearchStrategy[tuple[Ownership, list[ForeignPool], set[str]]]:
    """Draw what is owned, what is there, and which nodes have the label."""
    labelled = st.sets(st.sampled_from(["node-0", "node-1"]))
    return st.tuples(ownerships(), foreign_pools(), labelled)


def _nodes(labelled: set[str]) -> dict[NodeName, Node]:
    metadata = (
        ObjectMeta(name=name, uid=name, labels=dict([LABEL] * (name in labelled)))
        for name in ("node-0", "node-1")
    )
    return {NodeName(item.name): Node(metadata=item) for item in metadata}


@given(st.lists(states(), min_size=1, max_size=5))
def test_taint_rules_settle_and_never_taint_what_is_not_owned(
    history: Sequence[tuple[Ownership, list[ForeignPool], set[str]]],
) -> None:
    """And rules of others are not touched."""
    theirs = DeviceTaintRule(
        metadata=ObjectMeta(name="moorings-owned-theirs"),
        spec=DeviceTaintRuleSpec(taint=builders.taint()),
    )
    there = {key_of(theirs): theirs}
    for ownership, foreign, labelled in history:
        nodes = _nodes(labelled)
        steps = plan_taint_rules(ownership, foreign, (), nodes, there.values())
        there = apply_steps(there, steps)
        assert plan_taint_rules(ownership, foreign, (), nodes, there.values()) == ()
        assert there[key_of(theirs)] == theirs
        selectors = [
            rule.spec.device_selector for rule in there.values() if rule != theirs
        ]
        for item in foreign:
            node = nodes[item.node].metadata.labels if item.node is not None else {}
            owned = ownership.taints_driver(item.pool.driver) and (
                not ownership.node_labels
                or (item.node is not None and ownership.owns_node(node))
            )
            tainted = any(
                selector is not None
                and selector.driver == item.pool.driver
                and selector.pool in {None, item.pool.pool}
                for selector in selectors
            )
            assert tainted == owned
        assert all(selector and selector.driver for selector in selectors)


def attempts() -> SearchStrategy[GangAllocated]:
    """Draw decisions about one gang: other pods, devices and attempts."""
    members = st.lists(
        st.builds(
            lambda index, device: decisions.member_allocated(
                index=index, device=f"gpu-{device}"
            ),
            st.integers(0, 5),
            st.integers(0, 1),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda member: member.index,
    )
    return st.builds(
        lambda items, attempt: decisions.gang_allocated(*items, attempt=attempt),
        members,
        st.integers(1, 3),
    )


@given(st.lists(st.none() | attempts(), min_size=1, max_size=5))
def test_claims_settle_in_one_plan(history: Sequence[GangAllocated | None]) -> None:
    """Claims that others made stand in the way and stay."""
    gang = GangUID(builders.UID)
    submission = decisions.submission(builders.gang(builders.member(count=8)))
    sources = find_sources(submission, {})
    taken = builders.claim(name="train-worker-5-gpus", uid="of-kubernetes")
    there = {key_of(taken): taken}
    for time, decision in enumerate(history):
        now = f"2026-11-20T12:00:0{time}Z"
        claims = build_claims(decision, sources, now) if decision else ()
        found = list(there.values())
        there = apply_steps(there, plan_claims(claims, found, gang).steps)
        found = list(there.values())
        later = build_claims(decision, sources, "later") if decision else ()
        assert plan_claims(later, found, gang).steps == ()
        if decision is None:
            assert found == [taken]
        else:
            ours = [item for item in found if item.status is not None]
            assert is_written(decision, ours)
