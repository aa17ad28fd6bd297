"""All that is known of a cluster, changed by one message at a time.

`apply(snapshot, message)` is the only way to a new Snapshot; applied twice, a
message changes nothing. Each message costs what it is about: one node's page, one
gang's record. Knows no bus, no clock and no solver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct, structs

from contracts.allocation import AllocationResult
from contracts.claim import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
)
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.ids import ClaimRef, DeviceClassName, GangKey, NodeName
from contracts.kubernetes.decode import KubernetesObject, decode_object
from contracts.kueue import QueueObject
from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import (
    DevicesAnnounced,
    GangReleased,
    HealthJudged,
    ObjectGone,
    ObjectObserved,
)
from contracts.release import RELEASE, read_release
from contracts.workload import Namespace, Node, Pod
from solver.snapshot.events import (
    ANYTHING,
    ClusterEvent,
    claim_event,
    template_event,
)
from solver.snapshot.inventory import (
    Inventory,
    with_class,
    with_health,
    with_inventory,
    with_node,
    with_presence,
    with_taint_rule,
    without_inventory,
)
from solver.snapshot.maps import FrozenMap
from solver.snapshot.node_usage import (
    uses_of_gang,
    uses_of_pod,
    with_node_uses,
    without_node_users,
)
from solver.snapshot.queues import Held, QueueObjects, with_held
from solver.snapshot.slices import with_slice, without_slice
from solver.snapshot.usage import with_holder, without_holder, without_holders

KEPT_GANGS = 4096
"""So many gangs that ended last keep their records, for messages that come late."""


class NodePresence(Struct, frozen=True, kw_only=True):
    """A node's agent is heard of, or is not; the service judges it from heartbeats."""

    node: NodeName
    away: bool


class InventoryExpired(Struct, frozen=True, kw_only=True):
    """A node's inventory is too old to count any more."""

    node: NodeName


class GangForgotten(Struct, frozen=True, kw_only=True):
    """Only late messages about a gang are known: its submission is long gone."""

    gang: GangKey


class GangAged(Struct, frozen=True, kw_only=True):
    """A gang that waits has gained so many steps of priority by its age."""

    gang: GangKey
    steps: int


class EndedGangs(Struct, frozen=True, kw_only=True):
    """Which gangs are over, in the order in which they ended.

    The oldest is forgotten in the end. That is harmless: SUBMIT is write-once, so the
    server refuses the uid until all of the gang has left the streams, and then it is
    another gang's. One whose submission is still to come is none of these.
    """

    gangs: FrozenMap[str, GangKey] = FrozenMap()
    """By running number."""
    first: int = 0
    next: int = 0

    def with_gang(self, gang: GangKey) -> tuple[EndedGangs, GangKey | None]:
        """Note that a gang is over; returns whom to forget for it, too."""
        gangs = self.gangs.with_item(str(self.next), gang)
        if len(gangs) <= KEPT_GANGS:
            return EndedGangs(gangs=gangs, first=self.first, next=self.next + 1), None
        oldest = str(self.first)
        forgotten = gangs.get(oldest)
        gangs = gangs.without(oldest)
        ended = EndedGangs(gangs=gangs, first=self.first + 1, next=self.next + 1)
        return ended, forgotten


class Snapshot(Struct, frozen=True, kw_only=True):
    """The cluster and its gangs as the messages tell; see `apply`."""

    inventory: Inventory = Inventory()
    """Pools, nodes, classes, health and what is taken."""
    claims: FrozenMap[str, ResourceClaim] = FrozenMap()
    """By `namespace/name`."""
    claim_holders: FrozenMap[str, GangKey] = FrozenMap()
    """The gang that was given a claim which it names, by `namespace/name`."""
    templates: FrozenMap[str, ResourceClaimTemplate] = FrozenMap()
    """By `namespace/name`."""
    pod_nodes: FrozenMap[str, NodeName] = FrozenMap()
    """The node of each pod that uses one or will, by `namespace/name`."""
    gangs: FrozenMap[GangKey, GangRecord] = FrozenMap()
    waiting: FrozenMap[GangKey, GangRecord] = FrozenMap()
    """The gangs that want a decision."""
    promised: FrozenMap[GangKey, GangRecord] = FrozenMap()
    """Those of them that were told when they start."""
    placed: FrozenMap[GangKey, GangRecord] = FrozenMap()
    """The gangs that have a place, decided or said to run."""
    growing: FrozenMap[GangKey, GangRecord] = FrozenMap()
    """The gangs that are in and want places for more pods."""
    ending: FrozenMap[GangKey, GangRecord] = FrozenMap()
    """The gangs whose life should end now."""
    unknown: FrozenMap[GangKey, GangRecord] = FrozenMap()
    """The gangs of which no submission was read."""
    ended: EndedGangs = EndedGangs()
    queues: QueueObjects = QueueObjects()
    held: Held = FrozenMap()
    """What gangs hold of the quotas of ClusterQueues."""
    release: str = ""
    """Version of the cluster's API server, such as `1.37`; empty: unknown."""

    @property
    def grown(self) -> frozenset[ClusterEvent]:
        """Events since `without_grown` that may turn a no into a yes."""
        return self.inventory.grown

    def without_grown(self) -> Snapshot:
        """Return the Snapshot without what grew, once it was read."""
        if not self.grown:
            return self
        inventory = structs.replace(self.inventory, grown=frozenset())
        return structs.replace(self, inventory=inventory)


SnapshotMessage = (
    DevicesAnnounced
    | HealthJudged
    | NodePresence
    | InventoryExpired
    | ObjectObserved
    | ObjectGone
    | GangForgotten
    | GangAged
    | LifecycleMessage
)


def apply(
    snapshot: Snapshot,
    message: SnapshotMessage,
    *,
    sequence: int = 0,
    time_s: float = 0.0,
) -> Snapshot:
    """Apply what a message says.

    `sequence` is the message's place in its stream: of what is said of a gang the last
    counts, and a submission's is the gang's age. `time_s` is when it was stored there.

    Raises:
        DecodeError: an observed object is not what its kind demands.
        UnknownKindError: an observed object is of a kind we do not follow.
    """
    match message:
        case DevicesAnnounced():
            return _with_inventory(
                snapshot, with_inventory(snapshot.inventory, message)
            )
        case HealthJudged():
            return _with_inventory(snapshot, with_health(snapshot.inventory, message))
        case NodePresence(node=node, away=away):
            return _with_inventory(
                snapshot, with_presence(snapshot.inventory, node, away=away)
            )
        case InventoryExpired(node=node):
            return _with_inventory(
                snapshot, without_inventory(snapshot.inventory, node)
            )
        case ObjectObserved():
            return _with_object(snapshot, message)
        case ObjectGone():
            return _without_object(snapshot, message)
        case GangForgotten(gang=gang):
            return _without_gang(snapshot, gang)
        case GangAged(gang=gang, steps=steps):
            return _with_age(snapshot, gang, steps)
        case _:
            return _with_gang(snapshot, message, sequence, time_s)


def _with_inventory(snapshot: Snapshot, inventory: Inventory) -> Snapshot:
    if inventory is snapshot.inventory:
        return snapshot
    return structs.replace(snapshot, inventory=inventory)


def _with_gang(
    snapshot: Snapshot, message: LifecycleMessage, sequence: int, time_s: float
) -> Snapshot:
    """Change one gang's record, and with it what is taken and who waits."""
    gang = message.key
    before = snapshot.gangs.get(gang) or GangRecord.of(message)
    after = before.apply(message, sequence, time_s)
    records = snapshot.gangs.with_item(gang, after)
    ended = snapshot.ended
    if _is_complete(after) and not _is_complete(before):
        ended, oldest = ended.with_gang(gang)
        # Who was submitted again since lives.
        forgotten = None if oldest is None else records.get(oldest)
        if forgotten is not None and _is_complete(forgotten):
            records = records.without(forgotten.key)
    return structs.replace(
        _with_quota_held(_with_claims_held(snapshot, before, after), before, after),
        gangs=records,
        ended=ended,
        unknown=_keep_if(snapshot.unknown, after, keep=after.submission is None),
        waiting=_keep_if(snapshot.waiting, after, keep=after.wants_decision),
        promised=_keep_if(
            snapshot.promised,
            after,
            keep=after.wants_decision and after.expected is not None,
        ),
        placed=_keep_if(snapshot.placed, after, keep=after.placed is not None),
        growing=_keep_if(snapshot.growing, after, keep=after.wants_growth),
        ending=_keep_if(snapshot.ending, after, keep=after.ending is not None),
    )


def _with_age(snapshot: Snapshot, gang: GangKey, steps: int) -> Snapshot:
    """Note the age of a gang that waits; of others it changes nothing."""
    record = snapshot.waiting.get(gang)
    if record is None or record.aged == steps:
        return snapshot
    aged = structs.replace(record, aged=steps)
    is_promised = gang in snapshot.promised
    return structs.replace(
        snapshot,
        gangs=snapshot.gangs.with_item(gang, aged),
        waiting=snapshot.waiting.with_item(gang, aged),
        promised=_keep_if(snapshot.promised, aged, keep=is_promised),
    )


def without_ended(
    snapshot: Snapshot,
    ended: Iterable[GangReleased],
    claims: Collection[str],
    pods: Collection[str],
) -> Snapshot:
    """Return the cluster once gangs have ended, and claims and pods are gone.

    What `apply` makes of a message for each, with every page and map changed once; but
    events, and which gangs have ended, are not noted. Claims and pods are named by
    `namespace/name`.
    """
    records = [
        (before, before.apply(message, before.decision_sequence))
        for message in ended
        for before in (snapshot.gangs.get(message.key) or GangRecord.of(message),)
    ]
    had = {f"gang/{gang.key}": _collect_allocations(gang) for gang, _ in records}
    freed: dict[str, Iterable[AllocationResult]] = {
        holder: allocations.values() for holder, allocations in had.items()
    }
    freed |= {f"claim/{k}": _allocation_of(snapshot.claims.get(k)) for k in claims}
    users: dict[NodeName, set[str]] = {}
    for gang, _ in records:
        for pod in () if gang.allocated is None else gang.allocated.members:
            users.setdefault(pod.node, set()).add(f"gang/{gang.key}")
    for key in pods:
        node = snapshot.pod_nodes.get(key)
        if node is not None:
            users.setdefault(node, set()).add(f"pod/{key}")
    holders, held = snapshot.claim_holders, snapshot.held
    for gang, _ in records:
        named = (key for key in _claims_of(gang) if holders.get(key) == gang.key)
        holders = holders.without_items(list(named))
        quota = None if gang.placed is None else gang.placed.quota
        held = with_held(held, quota, -1)
    after = {record.key: record for _, record in records}
    unknown = {key: each for key, each in after.items() if each.submission is None}
    inventory = without_holders(snapshot.inventory, freed)
    return structs.replace(
        snapshot,
        inventory=without_node_users(inventory, users),
        claims=snapshot.claims.without_items(claims),
        claim_holders=holders,
        pod_nodes=snapshot.pod_nodes.without_items(pods),
        gangs=snapshot.gangs.with_items(after),
        placed=snapshot.placed.without_items(after),
        growing=snapshot.growing.without_items(after),
        ending=snapshot.ending.without_items(after),
        waiting=snapshot.waiting.without_items(after),
        promised=snapshot.promised.without_items(after),
        unknown=snapshot.unknown.with_items(unknown),
        held=held,
    )


def _is_complete(record: GangRecord) -> bool:
    """True if the whole life of a gang is known, and nothing can follow."""
    return record.submission is not None and record.is_over


def _with_claims_held(
    snapshot: Snapshot, before: GangRecord, after: GangRecord
) -> Snapshot:
    """Let a gang take what it was given, the claims that it names too, or give back."""
    inventory = _with_holdings(snapshot.inventory, before, after)
    holders, had, has = snapshot.claim_holders, _claims_of(before), _claims_of(after)
    for key in sorted(had - has):
        if holders.get(key) == after.key:
            holders = holders.without(key)
            inventory = inventory.with_grown(claim_event(key))
    for key in sorted(has):
        holders = holders.with_item(key, after.key)
    return structs.replace(snapshot, inventory=inventory, claim_holders=holders)


def _with_quota_held(
    snapshot: Snapshot, before: GangRecord, after: GangRecord
) -> Snapshot:
    """Let a gang hold quota as long as it has a place, also while it runs."""
    had = None if before.placed is None else before.placed.quota
    has = None if after.placed is None else after.placed.quota
    if had == has:
        return snapshot
    inventory = snapshot.inventory
    if had is not None:
        inventory = inventory.with_grown(snapshot.queues.quota_event(had.cluster_queue))
    held = with_held(with_held(snapshot.held, had, -1), has, 1)
    return structs.replace(snapshot, inventory=inventory, held=held)


def _claims_of(record: GangRecord) -> frozenset[str]:
    """Name the ResourceClaims that a gang names and has, by `namespace/name`."""
    if record.allocated is None or record.submission is None:
        return frozenset()
    return record.submission.gang.named_claims


def _with_holdings(
    inventory: Inventory, before: GangRecord, after: GangRecord
) -> Inventory:
    """Let a gang take devices, and what its pods need of nodes, or give it back."""
    holder = f"gang/{after.key}"
    if before.allocated != after.allocated:
        # What stays is not touched: no gang could profit from it.
        held, wanted = _collect_allocations(before), _collect_allocations(after)
        freed = [a for ref, a in held.items() if wanted.get(ref) != a]
        taken = [a for ref, a in wanted.items() if held.get(ref) != a]
        inventory = without_holder(inventory, holder, freed)
        inventory = with_holder(inventory, holder, taken)
    if (before.allocated, before.submission) != (after.allocated, after.submission):
        nodes, uses = uses_of_gang(before), uses_of_gang(after)
        inventory = with_node_uses(inventory, holder, nodes, uses)
    return inventory


def _without_gang(snapshot: Snapshot, gang: GangKey) -> Snapshot:
    """Forget a gang of which no submission is known and which has no place."""
    record = snapshot.unknown.get(gang)
    if record is None or record.placed is not None:
        return snapshot
    return structs.replace(
        snapshot,
        gangs=snapshot.gangs.without(gang),
        unknown=snapshot.unknown.without(gang),
    )


def _keep_if(
    records: FrozenMap[GangKey, GangRecord], record: GangRecord, *, keep: bool
) -> FrozenMap[GangKey, GangRecord]:
    if keep:
        return records.with_item(record.key, record)
    return records.without(record.key)


def _collect_allocations(record: GangRecord) -> dict[ClaimRef, AllocationResult]:
    decision = record.allocated
    if decision is None:
        return {}
    return {claim.ref: claim.allocation for m in decision.members for claim in m.claims}


def _with_object(snapshot: Snapshot, message: ObjectObserved) -> Snapshot:
    if message.kind == RELEASE:
        return _with_release(snapshot, read_release(message.object))
    return observe(snapshot, message.key, decode_object(message.object).value)


def observe(snapshot: Snapshot, key: str, value: KubernetesObject) -> Snapshot:
    """Apply an object as it is now, decoded already.

    `key` is its name, or `namespace/name`; kinds that are not followed change nothing.
    """
    inventory = snapshot.inventory
    match value:
        case ResourceSlice():
            return _with_inventory(snapshot, with_slice(inventory, key, value))
        case DeviceClass():
            return _with_inventory(
                snapshot, with_class(inventory, DeviceClassName(key), value)
            )
        case DeviceTaintRule():
            return _with_inventory(snapshot, with_taint_rule(inventory, key, value))
        case Node():
            return _with_inventory(snapshot, with_node(inventory, NodeName(key), value))
        case ResourceClaim():
            return _with_claim(snapshot, key, value)
        case Pod():
            return _with_pod(snapshot, key, value)
        case ResourceClaimTemplate():
            if snapshot.templates.get(key) == value:
                return snapshot
            templates = snapshot.templates.with_item(key, value)
            return structs.replace(
                snapshot,
                templates=templates,
                inventory=inventory.with_grown(template_event(key)),
            )
        case Namespace():
            return _with_queues(
                snapshot, snapshot.queues.with_namespace(key, value.metadata.labels)
            )
        case _ if isinstance(value, QueueObject):
            return _with_queues(snapshot, snapshot.queues.with_object(key, value))
        case _:
            return snapshot


def _with_queues(snapshot: Snapshot, queues: QueueObjects) -> Snapshot:
    """Follow the queues: with others everybody may have another turn."""
    if queues is snapshot.queues:
        return snapshot
    inventory = snapshot.inventory.with_grown(ANYTHING)
    return structs.replace(snapshot, inventory=inventory, queues=queues)


def _with_release(snapshot: Snapshot, release: str) -> Snapshot:
    """Follow the release: with other features a no may become a yes."""
    if release == snapshot.release:
        return snapshot
    inventory = snapshot.inventory.with_grown(ANYTHING)
    return structs.replace(snapshot, inventory=inventory, release=release)


def _without_object(snapshot: Snapshot, message: ObjectGone) -> Snapshot:
    inventory, key = snapshot.inventory, message.key
    match message.kind:
        case "ResourceSlice":
            return _with_inventory(snapshot, without_slice(inventory, key))
        case "DeviceClass":
            return _with_inventory(
                snapshot, with_class(inventory, DeviceClassName(key), None)
            )
        case "DeviceTaintRule":
            return _with_inventory(snapshot, with_taint_rule(inventory, key, None))
        case "Node":
            return _with_inventory(snapshot, with_node(inventory, NodeName(key), None))
        case "ResourceClaim":
            return _with_claim(snapshot, key, None)
        case "Pod":
            return _with_pod(snapshot, key, None)
        case "ResourceClaimTemplate":
            return structs.replace(snapshot, templates=snapshot.templates.without(key))
        case "Namespace":
            return _with_queues(snapshot, snapshot.queues.with_namespace(key, None))
        case kind:
            return _with_queues(snapshot, snapshot.queues.without_object(kind, key))


def _with_claim(snapshot: Snapshot, key: str, claim: ResourceClaim | None) -> Snapshot:
    """Follow a claim of Kubernetes; its allocation counts as taken."""
    inventory, holder = snapshot.inventory, f"claim/{key}"
    before, after = _allocation_of(snapshot.claims.get(key)), _allocation_of(claim)
    if before != after:
        inventory = without_holder(inventory, holder, before)
        inventory = with_holder(inventory, holder, after)
    if claim is None:
        claims = snapshot.claims.without(key)
    else:
        claims = snapshot.claims.with_item(key, claim)
        inventory = inventory.with_grown(claim_event(key))
    return structs.replace(snapshot, inventory=inventory, claims=claims)


def _with_pod(snapshot: Snapshot, key: str, pod: Pod | None) -> Snapshot:
    """Follow a pod: once it has a node, less of it is left for others."""
    pods = snapshot.pod_nodes
    previous_node, uses = pods.get(key), uses_of_pod(pod)
    previous_nodes = () if previous_node is None else (previous_node,)
    inventory = with_node_uses(snapshot.inventory, f"pod/{key}", previous_nodes, uses)
    pods = pods.without(key)
    for node in uses:
        pods = pods.with_item(key, node)
    return structs.replace(snapshot, inventory=inventory, pod_nodes=pods)


def _allocation_of(claim: ResourceClaim | None) -> list[AllocationResult]:
    if claim is None or claim.allocation is None:
        return []
    return [claim.allocation]
