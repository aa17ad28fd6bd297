"""Whether what is written down says what was decided: results, config, node selector.

Source: AllocationResult of resource.k8s.io/v1, as kube-scheduler 1.37 fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.allocation import AllocationResult, ResultToleration
from contracts.claim import DeviceToleration
from contracts.device import Device, NodeSelectorRequirement, NodeSelectorTerm
from contracts.ids import NodeName
from solver.judge.amounts import consumed
from solver.judge.facts import DeviceFacts, Facts
from solver.problem.problem import ClaimPart, SubrequestPart
from solver.snapshot.parts import PoolSlice

Violations = Iterator[str]
Place = tuple[NodeName, AllocationResult, str]


def results_are_written(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    known: list[DeviceFacts],
    place: Place,
) -> Violations:
    """Judge one claim's AllocationResult; `known`: its devices, request by request."""
    yield from _results(facts, claim, chosen, place)
    yield from _config(facts, claim, chosen, place)
    yield from _node_selector(known, place)


def _results(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    place: Place,
) -> Violations:
    node, allocation, where = place
    features = facts.features
    asked_by = {
        request.result_name(rank): asked
        for request, (asked, rank) in zip(claim.requests, chosen, strict=True)
    }
    for result in allocation.devices.results:
        name, asked = result.device_id, asked_by[result.request]
        known = facts.device(node, name)
        if known is None:
            continue
        if bool(result.admin_access) != asked.admin_access:
            yield f"adminWritten: {where} {name} says otherwise"
        if list(map(_toleration, result.tolerations)) != list(
            map(_toleration, asked.tolerations)
        ):
            yield f"tolerationsWritten: {where} {name} has others"
        if bool(result.share_id) != known.shareable:
            yield f"shareId: {where} {name} has one where it should not, or lacks it"
        amounts: dict[str, int] = {}
        if known.shareable:
            fractional = features.fractional_capacity_range
            found = consumed(known.device, asked.capacity, fractional=fractional)
            amounts = found or {}
        written = {n: amount.nano for n, amount in result.consumed_capacity.items()}
        if written != amounts:
            says = f"says {written}, consumes {amounts}"
            yield f"consumedWritten: {where} {name} {says}"
        device, binds = known.device, features.device_binding
        lists = (
            (device.binding_conditions if binds else None) or (),
            (device.binding_failure_conditions if binds else None) or (),
        )
        if (result.binding_conditions, result.binding_failure_conditions) != lists:
            yield f"bindingWritten: {where} {name} has other conditions"
        skips = known.item.skip_node_operations
        if result.skip_node_operations != (
            skips if features.optional_node_operations else None
        ):
            yield f"operationsWritten: {where} {name} skips other operations"


def _toleration(item: DeviceToleration | ResultToleration) -> tuple[object, ...]:
    return (item.key, item.operator, item.value, item.effect, item.toleration_seconds)


def _config(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    place: Place,
) -> Violations:
    """Configuration of classes comes first, then the claim's that means anything."""
    _, allocation, where = place
    names = [
        {request.name, request.result_name(rank)}
        for request, (_, rank) in zip(claim.requests, chosen, strict=True)
    ]
    wanted: list[tuple[str, tuple[str, ...], object]] = []
    for name in dict.fromkeys(asked.device_class for asked, _ in chosen):
        requests = [
            request.result_name(rank)
            for request, (asked, rank) in zip(claim.requests, chosen, strict=True)
            if asked.device_class == name
        ]
        known = facts.classes.get(name)
        mine = _means(requests, names)
        config = known.config if known is not None else ()
        wanted.extend(("FromClass", mine, item.opaque) for item in config)
    wanted.extend(
        ("FromClaim", _means(item.requests, names), item.opaque)
        for item in claim.config
        if not item.requests or any(both & set(item.requests) for both in names)
    )
    found = [
        (item.source, item.requests, item.opaque) for item in allocation.devices.config
    ]
    if found != wanted:
        yield f"configWritten: {where} has other configuration"


def _means(requests: Iterable[str], names: list[set[str]]) -> tuple[str, ...]:
    """Name the requests that an entry means; none: all of them."""
    listed = tuple(requests)
    return () if all(mine & set(listed) for mine in names) else listed


def _node_selector(known: list[DeviceFacts], place: Place) -> Violations:
    """The selector says what the devices' own selections say together."""
    node, allocation, where = place
    asked: list[NodeSelectorTerm] = []
    pinned = False
    for facts in known:
        source: Device | PoolSlice = facts.item
        if facts.item.per_device_node_selection:
            source = facts.device
        terms = source.node_selector.node_selector_terms if source.node_selector else ()
        local = source.node_name is not None or facts.device.binds_to_node
        pinned = pinned or bool(local) or len(terms) > 1
        asked.extend(terms)
    if pinned:
        if not _is_pinned(place):
            yield f"nodeSelectorWritten: {where} is not pinned to {node}"
        return
    wanted = (
        {_said(r) for term in asked for r in term.match_fields},
        {_said(r) for term in asked for r in term.match_expressions},
    )
    selector = allocation.node_selector
    written = selector.node_selector_terms if selector is not None else ()
    found = (
        {_said(r) for term in written for r in term.match_fields},
        {_said(r) for term in written for r in term.match_expressions},
    )
    if found != wanted or len(written) > 1:
        yield f"nodeSelectorWritten: {where} means other nodes than its devices"


def _said(item: NodeSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    return (item.key, item.operator, frozenset(item.values))


def _is_pinned(place: Place) -> bool:
    node, allocation, _ = place
    selector = allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    return len(terms) == 1 and any(
        (item.key, item.operator, item.values) == ("metadata.name", "In", (node,))
        for item in terms[0].match_fields
    )
