"""What allocations must say of what was decided: results, config, node selector.

Source: AllocationResult of resource.k8s.io/v1, as kube-scheduler 1.37 fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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

Given = tuple[SubrequestPart, DeviceRequestAllocationResult, DeviceFacts]
"""(what is asked, what is written of a device, what there is to know of it)."""
Written = tuple[NodeName, AllocationResult, str]
"""(node, what is written in the claim, how violations call the claim)."""


def results_are_written(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    given: Sequence[Given],
    written: Written,
) -> Violations:
    """Judge the AllocationResult of one claim.

    `chosen` holds the alternative of each request, with its rank; `given` the devices
    of the claim, request by request.
    """
    yield from _fields_are_copied(facts.features, given, written[2])
    yield from _config_is_written(facts, claim, chosen, written)
    yield from _node_selector(given, written)


def _fields_are_copied(
    features: Features, given: Iterable[Given], where: str
) -> Violations:
    """What the request and the device say is copied, as far as it is switched on.

    A share has an id and says what it consumes; whole devices do neither.
    """
    binds, skips = features.device_binding, features.optional_node_operations
    for subrequest, result, facts in given:
        device = facts.device
        if bool(result.admin_access) != subrequest.admin_access:
            yield f"adminWritten: {where} {result.device_id} says otherwise"
        if result.tolerations or subrequest.tolerations:
            said = list(map(_toleration_key, result.tolerations))
            if said != list(map(_toleration_key, subrequest.tolerations)):
                yield f"tolerationsWritten: {where} {result.device_id} has others"
        conditions = (device.binding_conditions if binds else None) or ()
        failures = (device.binding_failure_conditions if binds else None) or ()
        if (
            result.binding_conditions != conditions
            or result.binding_failure_conditions != failures
        ):
            yield f"bindingWritten: {where} {result.device_id} has other conditions"
        operations = facts.pool_slice.skip_node_operations if skips else None
        if result.skip_node_operations != operations:
            yield f"operationsWritten: {where} {result.device_id} skips other ones"
        if bool(result.share_id) != facts.shareable:
            has = "has one and is whole" if result.share_id else "has none"
            yield f"shareId: {where} {result.device_id} {has}"
        if facts.shareable or result.consumed_capacity:
            yield from _consumption_is_written(
                features, (subrequest, result, facts), where
            )


def _consumption_is_written(features: Features, given: Given, where: str) -> Violations:
    """What is consumed of a device is what its share says; a whole one says nothing."""
    subrequest, result, facts = given
    amounts: dict[str, int] = {}
    if facts.shareable:
        driver = result.driver
        consumed = consumption_of(facts.device, subrequest.capacity, features, driver)
        amounts = consumed or {}
    says = {name: amount.nano for name, amount in result.consumed_capacity.items()}
    if says != amounts:
        what = f"says {says}, consumes {amounts}"
        yield f"consumedWritten: {where} {result.device_id} {what}"


def _toleration_key(each: DeviceToleration | ResultToleration) -> tuple[object, ...]:
    return (each.key, each.operator, each.value, each.effect, each.toleration_seconds)


def _config_is_written(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    written: Written,
) -> Violations:
    """Configuration of classes comes first, then the claim's that means anything."""
    _, allocation, where = written
    if not (allocation.devices.config or claim.config or facts.classes_configure):
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


def _node_selector(given: Iterable[Given], written: Written) -> Violations:
    """The selector says what the devices' own selections say together."""
    node, allocation, where = written
    device_terms: list[NodeSelectorTerm] = []
    pinned = False
    for _, _, facts in given:
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
    if (
        _selector_meaning(written_terms) != _selector_meaning(device_terms)
        or len(written_terms) > 1
    ):
        yield f"nodeSelectorWritten: {where} means other nodes than its devices"


Requirement = tuple[str, str, frozenset[str]]


def _selector_meaning(
    terms: Iterable[NodeSelectorTerm],
) -> tuple[set[Requirement], set[Requirement]]:
    """Collect what terms ask of names and of labels, whatever their order."""
    listed = tuple(terms)
    return (
        {_requirement_key(field) for term in listed for field in term.match_fields},
        {
            _requirement_key(label)
            for term in listed
            for label in term.match_expressions
        },
    )


def _requirement_key(each: NodeSelectorRequirement) -> Requirement:
    return (each.key, each.operator, frozenset(each.values))


def _is_pinned(written: Written) -> bool:
    node, allocation, _ = written
    selector = allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    if len(terms) != 1:
        return False
    for field in terms[0].match_fields:
        said = (field.key, field.operator)
        if said == ("metadata.name", "In") and field.values == (node,):
            return True
    return False
