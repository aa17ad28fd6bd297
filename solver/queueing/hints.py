"""Which gangs may profit from what grew, so that no others are tried again.

A gang names what it needs when it is tried in vain; what grew is then put in the same
terms. Whatever cannot be told apart concerns everybody: a gang is tried once too often
rather than left waiting. Knows neither turns nor batches.

Source: KEP-4247, queueing hints of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.claim import DeviceClaim
from contracts.gang import Gang, Member, MemberClaim
from contracts.ids import object_key
from contracts.lifecycle import GangRecord
from contracts.pods.node_affinity import POD_AFFINITIES
from solver.selectors.drivers import driver_of
from solver.snapshot.events import (
    ANYTHING,
    EXTENDED_RESOURCES,
    NODE_EVENT,
    POD_EVENT,
    ClusterEvent,
    claim_event,
    class_event,
    driver_event,
    template_event,
)
from solver.snapshot.parts import ClassPart, PoolPart
from solver.snapshot.snapshot import Snapshot


def events_for(snapshot: Snapshot, record: GangRecord) -> frozenset[ClusterEvent]:
    """List what may turn a no to this gang into a yes; see `widen_events`."""
    events = {ANYTHING}
    if record.submission is not None:
        gang = record.submission.gang
        for member in gang.spec.members:
            events.update(_list_member_events(snapshot, gang, member))
    return frozenset(events)


def _list_member_events(
    snapshot: Snapshot, gang: Gang, member: Member
) -> Iterator[ClusterEvent]:
    extended = any("/" in name for name in member.node.resources)
    if extended:
        yield EXTENDED_RESOURCES
    if not member.claims or looks_at_pods(member):
        yield NODE_EVENT
    if looks_at_pods(member):
        yield POD_EVENT
    for claim in member.claims:
        yield from _list_claim_events(snapshot, gang, claim)


def looks_at_pods(member: Member) -> bool:
    """True if a member looks at other pods: to be near, apart or spread among them.

    Of those it is apart from, one may lose the label that it was meant by.
    """
    return bool(member.node.topology_spread_constraints) or any(
        member.node.affinity.get(part) for part in POD_AFFINITIES
    )


def _list_claim_events(
    snapshot: Snapshot, gang: Gang, claim: MemberClaim
) -> Iterator[ClusterEvent]:
    """Name the object that a claim refers to, and the classes that it asks for."""
    namespace = gang.metadata.namespace
    spec = claim.spec
    if claim.claim_name:
        key = object_key(namespace, claim.claim_name)
        yield claim_event(key)
        existing = snapshot.claims.get(key)
        spec = spec or (existing.spec if existing is not None else None)
    elif spec is None:
        key = object_key(namespace, claim.template_name or "")
        yield template_event(key)
        template = snapshot.templates.get(key)
        spec = template.spec.spec if template is not None else None
    if spec is not None:
        yield from map(class_event, _list_classes(spec.devices))


def _list_classes(devices: DeviceClaim) -> Iterator[str]:
    for request in devices.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        for alternative in request.first_available:
            yield alternative.device_class_name


def widen_events(
    snapshot: Snapshot, events: Iterable[ClusterEvent]
) -> frozenset[ClusterEvent]:
    """Add to what grew the classes that it concerns; costs what classes there are."""
    grown = set(events)
    parts = list(snapshot.inventory.pages.of("")) if grown else []
    if NODE_EVENT in grown:
        # Devices that no node owns may be used from any.
        grown |= {driver_event(p.driver) for p in parts if isinstance(p, PoolPart)}
    if not any(event.startswith(("driver/", "class/")) for event in grown):
        return frozenset(grown)
    drivers = {event for event in grown if event.startswith("driver/")}
    for part in parts:
        if isinstance(part, ClassPart) and drivers and _may_choose(part, drivers):
            grown.add(class_event(part.name))
    grown.add(EXTENDED_RESOURCES)
    return frozenset(grown)


def _may_choose(device_class: ClassPart, grown: set[ClusterEvent]) -> bool:
    """True if a class may choose devices of one of the drivers that grew."""
    insisted = {driver_of(expression) for expression in device_class.selectors}
    return all(driver_event(driver) in grown for driver in insisted if driver)
