"""From Kubernetes objects to the state they describe and the gangs to decide.

Which pods and claims belong together, and which of them wait, is answered by the plans
of the publisher (`asking.py`), so that this is what a cluster does. A claim that no pod
names is a gang of one, asked for after all others: nobody allocates it before a pod
uses it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from contracts.claim import ResourceClaim
from contracts.ids import object_key
from contracts.messages import PodRef, SubmitGang
from contracts.workload import Node, Pod
from moorings.plan.asking import (
    WaitingGang,
    ask,
    name_unknown,
    submit_before_pods,
)
from moorings.plan.cluster import PlannedCluster, make_cluster
from moorings.plan.lone_claims import make_claims_gang, make_lone_gangs
from moorings.plan.objects import PlanObject, unite_objects
from moorings.plan.one_node import check_one_node
from moorings.plan.pods import DEFAULT_NAMESPACE, key_of
from moorings.plan.state import apply_state, with_node
from publisher.gangs.records import uids_of_places
from publisher.gangs.view import is_over
from solver.snapshot.snapshot import Snapshot, apply


class Settled(Struct, frozen=True, kw_only=True):
    """Pods of the input that need no decision: they have what they need, or ended."""

    pods: int = 0
    claims: int = 0


class PlanWork(Struct, frozen=True, kw_only=True):
    """The state of the input, and the gangs to decide in the order of their age."""

    snapshot: Snapshot
    gangs: tuple[SubmitGang, ...]
    """With the places of their pods."""
    cluster: PlannedCluster | None = None
    """None: all is decided for one node."""
    waiting: tuple[WaitingGang, ...] = ()
    notes: tuple[str, ...] = ()
    settled: Settled = Settled()

    def claim(self, key: str) -> ResourceClaim | None:
        """Return a claim by `namespace/name`, made ones included."""
        return None if self.cluster is None else self.cluster.view.claim(key)

    def pod(self, namespace: str, ref: PodRef) -> Pod | None:
        """Return a pod that the cluster has, with its uid; None: it is not there."""
        if self.cluster is None or self.cluster.uids.get(ref.uid) != ref.uid:
            return None
        return self.cluster.view.pod_of(namespace, ref.name, ref.uid)


def prepare_work(
    objects: Iterable[PlanObject], node: str | None = None, *, as_stored: bool = False
) -> PlanWork:
    """Sort objects into state and gangs; with `node`, only that node may serve.

    `as_stored`: upstream's allocator tells claims of a node apart by their place.

    Raises:
        UsageError: more than claims is asked of `node`.
        BadInputError: `node` is not in the input.
    """
    if node is not None:
        return _prepare_for_node(list(objects), node, as_stored=as_stored)
    entries, notes = unite_objects(objects)
    snapshot = apply_state(entries)
    # First who asks now, by the publisher's own plans.
    cluster = make_cluster(entries)
    asked = ask(cluster.view, cluster.view.groups())
    gangs = sorted(asked.gangs, key=lambda each: cluster.ages[asked.groups[each.key]])
    # Then claims that nobody uses, behind all of them.
    last = min([0, *(message.gang.spec.priority for message in gangs)])
    priority = last - 1 if gangs or asked.waiting else 0
    gangs += map(submit_before_pods, make_lone_gangs(cluster.lone_claims, priority))
    waiting = [name_unknown(each, cluster.unknown) for each in asked.waiting]
    return PlanWork(
        snapshot=submit(snapshot, gangs, cluster, 0),
        gangs=tuple(gangs),
        cluster=cluster,
        waiting=(*cluster.waiting, *waiting),
        notes=(*notes, *cluster.notes, *asked.notes),
        settled=_count_settled(entries, gangs, (*cluster.waiting, *waiting)),
    )


def _prepare_for_node(
    objects: list[PlanObject], node: str, *, as_stored: bool
) -> PlanWork:
    """Ask for all claims of a namespace at once on one node, as if one pod had them."""
    entries, united = (objects, []) if as_stored else unite_objects(objects)
    notes = tuple(united)
    check_one_node(entries, node)
    snapshot = apply_state(entries)
    values = [entry.decoded.value for entry in entries]
    if node not in {value.name for value in values if isinstance(value, Node)}:
        snapshot = with_node(snapshot, node)
    claims = [
        value
        for value in values
        if isinstance(value, ResourceClaim) and value.allocation is None
    ]
    messages = tuple(
        submit_before_pods(make_claims_gang("plan", of_space, node=node))
        for of_space in _group_by_namespace(claims)
    )
    for sequence, message in enumerate(messages, start=1):
        snapshot = apply(snapshot, message, sequence=sequence)
    return PlanWork(snapshot=snapshot, gangs=messages, notes=notes)


def _group_by_namespace(
    claims: Iterable[ResourceClaim],
) -> Iterable[list[ResourceClaim]]:
    """Group claims as one pod each could use them, in the order of the first ones."""
    groups: dict[str, list[ResourceClaim]] = {}
    for claim in claims:
        namespace = claim.metadata.namespace or DEFAULT_NAMESPACE
        groups.setdefault(namespace, []).append(claim)
    return groups.values()


def submit(
    snapshot: Snapshot,
    gangs: Iterable[SubmitGang],
    cluster: PlannedCluster,
    last: int,
) -> Snapshot:
    """Submit gangs in the order of their age, after the `last` that were."""
    for age, message in enumerate(gangs, start=last + 1):
        submitted = message
        if not uids_of_places(message.places).isdisjoint(cluster.ungated):
            # kube-scheduler would bind them: it makes claims of extended resources.
            submitted = structs.replace(message, places={})
        snapshot = apply(snapshot, submitted, sequence=age)
    return snapshot


def _count_settled(
    entries: Iterable[PlanObject],
    gangs: Iterable[SubmitGang],
    waiting: Iterable[WaitingGang],
) -> Settled:
    asked = {uid for message in gangs for uid in uids_of_places(message.places)}
    held_up = {
        object_key(pod.metadata.namespace, pod.metadata.name)
        for each in waiting
        for pod in each.pods
    }
    values = [entry.decoded.value for entry in entries]
    return Settled(
        pods=sum(
            isinstance(value, Pod)
            and (bool(value.spec.node_name) or is_over(value))
            and value.metadata.uid not in asked
            and key_of(value.metadata) not in held_up
            for value in values
        ),
        claims=sum(
            isinstance(value, ResourceClaim) and value.allocation is not None
            for value in values
        ),
    )
