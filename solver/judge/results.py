"""Whether what is written down says what was decided: results, config, node selector.

Source: AllocationResult of resource.k8s.io/v1, as kube-scheduler 1.37 fills it.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.allocation import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResultToleration,
)
from contracts.claim import DeviceToleration
from contracts.device import Device, NodeSelectorRequirement, NodeSelectorTerm
from contracts.features import Features
from contracts.ids import NodeName
from solver.judge.amounts import consumption_of
from solver.judge.facts import DeviceFacts, Facts, Violations
from solver.problem.gangs import ClaimPart, SubrequestPart
from solver.snapshot.parts import PoolSlice

Written = tuple[NodeName, AllocationResult, str]
"""(node, what is written in the claim, how violations call the claim)."""


def results_are_written(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    devices: list[DeviceFacts],
    written: Written,
) -> Violations:
    """Judge one claim's AllocationResult.

    `chosen` holds the alternative of each request, with its rank; `devices` those of
    the claim, request by request.
    """
    yield from _results(facts, claim, chosen, written)
    yield from _config(facts, claim, chosen, written)
    yield from _node_selector(devices, written)


def _results(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    written: Written,
) -> Violations:
    node, allocation, where = written
    features = facts.features
    subrequests = {
        request.result_name(rank): subrequest
        for request, (subrequest, rank) in zip(claim.requests, chosen, strict=True)
    }
    for result in allocation.devices.results:
        name, subrequest = result.device_id, subrequests[result.request]
        device = facts.find_device(node, name)
        if device is not None:
            subject = f"{where} {name}"
            yield from _copied(features, subrequest, device, result, subject)
            yield from _share(features, subrequest, device, result, subject)


def _copied(
    features: Features,
    subrequest: SubrequestPart,
    device: DeviceFacts,
    result: DeviceRequestAllocationResult,
    subject: str,
) -> Violations:
    """What the request and the device say is copied, as far as it is switched on."""
    if bool(result.admin_access) != subrequest.admin_access:
        yield f"adminWritten: {subject} says otherwise"
    tolerations = (result.tolerations, subrequest.tolerations)
    if any(tolerations):
        written, asked = (list(map(_toleration, each)) for each in tolerations)
        if written != asked:
            yield f"tolerationsWritten: {subject} has others"
    binds = features.device_binding
    conditions = (device.device.binding_conditions if binds else None) or ()
    failures = (device.device.binding_failure_conditions if binds else None) or ()
    if (
        result.binding_conditions != conditions
        or result.binding_failure_conditions != failures
    ):
        yield f"bindingWritten: {subject} has other conditions"
    skips = device.pool_slice.skip_node_operations
    if result.skip_node_operations != (
        skips if features.optional_node_operations else None
    ):
        yield f"operationsWritten: {subject} skips other operations"


def _share(
    features: Features,
    subrequest: SubrequestPart,
    device: DeviceFacts,
    result: DeviceRequestAllocationResult,
    subject: str,
) -> Violations:
    """A share has an id and says what it consumes; whole devices do neither."""
    if bool(result.share_id) != device.shareable:
        yield f"shareId: {subject} has one where it should not, or lacks it"
    amounts: dict[str, int] = {}
    if device.shareable:
        fractional = features.fractional_capacity_range
        requested = subrequest.capacity
        consumed = consumption_of(device.device, requested, fractional=fractional)
        amounts = consumed or {}
    says = {name: amount.nano for name, amount in result.consumed_capacity.items()}
    if says != amounts:
        yield f"consumedWritten: {subject} says {says}, consumes {amounts}"


def _toleration(each: DeviceToleration | ResultToleration) -> tuple[object, ...]:
    return (each.key, each.operator, each.value, each.effect, each.toleration_seconds)


def _config(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    written: Written,
) -> Violations:
    """Configuration of classes comes first, then the claim's that means anything."""
    _, allocation, where = written
    classes = (facts.classes.get(each.device_class) for each, _ in chosen)
    of_classes = any(each.config for each in classes if each is not None)
    if not (allocation.devices.config or claim.config or of_classes):
        return
    names_by_request = [
        {request.name, request.result_name(rank)}
        for request, (_, rank) in zip(claim.requests, chosen, strict=True)
    ]
    expected: list[tuple[str, tuple[str, ...], object]] = []
    for name in dict.fromkeys(subrequest.device_class for subrequest, _ in chosen):
        requests = [
            request.result_name(rank)
            for request, (subrequest, rank) in zip(claim.requests, chosen, strict=True)
            if subrequest.device_class == name
        ]
        device_class = facts.classes.get(name)
        meant = _requests_meant(requests, names_by_request)
        configs = device_class.config if device_class is not None else ()
        expected.extend(("FromClass", meant, config.opaque) for config in configs)
    expected.extend(
        (
            "FromClaim",
            _requests_meant(config.requests, names_by_request),
            config.opaque,
        )
        for config in claim.config
        if not config.requests
        or any(names & set(config.requests) for names in names_by_request)
    )
    entries = [
        (config.source, config.requests, config.opaque)
        for config in allocation.devices.config
    ]
    if entries != expected:
        yield f"configWritten: {where} has other configuration"


def _requests_meant(
    requests: Iterable[str], names_by_request: list[set[str]]
) -> tuple[str, ...]:
    """Name the requests that an entry means; none: all of them."""
    listed = tuple(requests)
    return () if all(names & set(listed) for names in names_by_request) else listed


def _node_selector(devices: list[DeviceFacts], written: Written) -> Violations:
    """The selector says what the devices' own selections say together."""
    node, allocation, where = written
    device_terms: list[NodeSelectorTerm] = []
    pinned = False
    for facts in devices:
        source: Device | PoolSlice = facts.pool_slice
        if facts.pool_slice.per_device_node_selection:
            source = facts.device
        terms = source.node_selector.node_selector_terms if source.node_selector else ()
        local = source.node_name is not None or facts.device.binds_to_node
        pinned = pinned or bool(local) or len(terms) > 1
        device_terms.extend(terms)
    if pinned:
        if not _is_pinned(written):
            yield f"nodeSelectorWritten: {where} is not pinned to {node}"
        return
    selector = allocation.node_selector
    written_terms = selector.node_selector_terms if selector is not None else ()
    if _meaning(written_terms) != _meaning(device_terms) or len(written_terms) > 1:
        yield f"nodeSelectorWritten: {where} means other nodes than its devices"


Requirement = tuple[str, str, frozenset[str]]


def _meaning(
    terms: Iterable[NodeSelectorTerm],
) -> tuple[set[Requirement], set[Requirement]]:
    """Collect what terms ask of names and of labels, whatever their order."""
    listed = tuple(terms)
    return (
        {_requirement(field) for term in listed for field in term.match_fields},
        {_requirement(label) for term in listed for label in term.match_expressions},
    )


def _requirement(each: NodeSelectorRequirement) -> Requirement:
    return (each.key, each.operator, frozenset(each.values))


def _is_pinned(written: Written) -> bool:
    node, allocation, _ = written
    selector = allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    return len(terms) == 1 and any(
        (field.key, field.operator, field.values) == ("metadata.name", "In", (node,))
        for field in terms[0].match_fields
    )
