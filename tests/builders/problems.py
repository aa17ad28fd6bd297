"""Problems for tests, through the real path: messages, Snapshot, resolve, assemble.

Selectors are judged by a few Python predicates instead of the sandbox, so a test of
the models starts no process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from contracts.allocation import AllocationResult, DeviceAllocationResult
from contracts.claim import ResourceClaimStatus
from contracts.codec import to_builtins
from contracts.device import Device, DeviceTaint, ResourcePool
from contracts.gang import Gang, Member
from contracts.ids import ClusterName, DeviceID, GangUID, NodeName, object_key
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.messages import (
    DeviceHealth,
    DevicesAnnounced,
    HealthJudged,
    ObjectObserved,
    SubmitGang,
)
from contracts.workload import Node, Pod
from solver.problem.assemble import (
    SnapshotLookup,
    assemble,
    find_missing_verdicts,
    resolve_gangs,
)
from solver.problem.problem import ExpectedPart, Parameters, Problem
from solver.problem.quota.quotas import keep_quotas
from solver.problem.resolve import ResolveOptions, resolve
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.selectors.table import SelectorTable, Verdict
from solver.snapshot.snapshot import NodePresence, Snapshot, apply
from tests.builders import DEVICE_CLASS, claim, device_class, gang, result

CLUSTER = ClusterName("test")
PARAMETERS = Parameters(version="test")
_EQUALS = re.compile(r'device\.attributes\["([^"]+)"\]\.(\w+) == "([^"]*)"')
_DERIVED = re.compile(r'=device\.attributes\["([^"]+)"\]\.(\w+)')
_DRIVER = re.compile(r'device\.driver == "([^"]*)"')


def evaluate(expression: str, driver: str, device: Device) -> Verdict:
    """Judge the forms of selectors and derived attributes that these tests use."""
    if expression == "true":
        return Verdict(value=True)
    found = _DRIVER.fullmatch(expression)
    if found is not None:
        return Verdict(value=driver == found[1])
    derived = _DERIVED.fullmatch(expression)
    if derived is not None:
        own = device.attributes.get(derived[2] if derived[1] == driver else "")
        return Verdict(attribute=own) if own else Verdict(error="no such key")
    equals = _EQUALS.fullmatch(expression)
    if equals is None:
        return Verdict(error=f"CEL compile error: {expression}")
    domain, name, text = equals.groups()
    attribute = device.attributes.get(f"{domain}/{name}")
    if attribute is None and domain == driver:
        attribute = device.attributes.get(name)
    if attribute is None:
        return Verdict(error=f"CEL runtime error: no such key: {name}")
    return Verdict(value=attribute.string_value == text)


class PlainEvaluator:
    """Judges the selectors of tests without a sandbox."""

    def evaluate(self, rows: list[tuple[str, str, Device]]) -> list[Verdict]:
        """Judge (expression, driver, device) rows."""
        return [evaluate(*row) for row in rows]


def snapshot_of(
    nodes: Mapping[str, Sequence[ResourcePool]],
    gangs: Iterable[Gang] = (),
    *,
    taken: Iterable[DeviceID] = (),
    taints: Mapping[DeviceID, DeviceTaint] | None = None,
    away: Iterable[str] = (),
    classes: Mapping[str, Sequence[str]] | None = None,
) -> Snapshot:
    """Believe in nodes, gangs in the order of their age, and who holds what."""
    snapshot = Snapshot()
    for name, selectors in (classes or {DEVICE_CLASS: ("true",)}).items():
        snapshot = observe(snapshot, name, device_class(name, *selectors))
    for node, pools in nodes.items():
        announced = DevicesAnnounced(
            cluster=CLUSTER, node=NodeName(node), pools=tuple(pools)
        )
        snapshot = apply(snapshot, announced)
        sick = tuple(
            DeviceHealth(device=name, verdict="Unhealthy", taints=(taint,))
            for name, taint in (taints or {}).items()
            if name.pool in {pool.name for pool in pools}
        )
        health = HealthJudged(cluster=CLUSTER, node=NodeName(node), devices=sick)
        snapshot = apply(snapshot, health)
    for node in away:
        snapshot = apply(snapshot, NodePresence(node=NodeName(node), away=True))
    held = tuple(result(d.device, pool=d.pool, driver=d.driver) for d in taken)
    if held:
        allocation = AllocationResult(devices=DeviceAllocationResult(results=held))
        holder = structs.replace(
            claim(name="holder"), status=ResourceClaimStatus(allocation=allocation)
        )
        snapshot = observe(snapshot, "default/holder", holder)
    for age, item in enumerate(gangs, start=1):
        uid = GangUID(item.metadata.uid)
        message = SubmitGang(cluster=CLUSTER, uid=uid, gang=item)
        snapshot = apply(snapshot, message, sequence=age)
    return snapshot


def observe(snapshot: Snapshot, key: str, value: WritableObject) -> Snapshot:
    raw = to_builtins(to_kubernetes(value))
    message = ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)
    return apply(snapshot, message)


def observe_core(snapshot: Snapshot, *values: Node | Pod) -> Snapshot:
    """Believe in Nodes and Pods, which nobody here writes."""
    for value in values:
        kind, meta = type(value).__name__, value.metadata
        raw = {"apiVersion": "v1", "kind": kind, **to_builtins(value)}
        key = meta.name if kind == "Node" else object_key(meta.namespace, meta.name)
        message = ObjectObserved(cluster=CLUSTER, kind=kind, key=key, object=raw)
        snapshot = apply(snapshot, message)
    return snapshot


def expected_of(
    snapshot: Snapshot, *pods: Member, weight: int = 1, size: int = 1000
) -> tuple[ExpectedPart, ...]:
    """Expect pods like these, with what the snapshot knows of classes."""
    how = ResolveOptions(lookup=SnapshotLookup(snapshot), features=PARAMETERS.features)
    found = resolve(GangUID("expected"), gang(*pods), how)
    assert not found.refused
    return tuple(
        ExpectedPart(member=m, weight=weight, size=size) for m in found.members
    )


def problem_of(
    snapshot: Snapshot,
    parameters: Parameters = PARAMETERS,
    expected: tuple[ExpectedPart, ...] = (),
) -> Problem:
    """Make the Problem of everything that waits."""
    batch = choose_batch(snapshot, BatchLimits(gangs=10_000, pods=1_000_000))
    gangs = resolve_gangs(snapshot, batch, parameters.features)
    within = keep_quotas(snapshot, gangs)
    gangs, quotas = within.gangs, within.quotas
    table = SelectorTable()
    while wanted := find_missing_verdicts(snapshot, gangs, table, expected):
        table = table.with_verdicts(wanted, [evaluate(*row) for row in wanted])
    return assemble(snapshot, gangs, table, parameters, expected, quotas=quotas)
