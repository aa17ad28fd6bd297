"""Whether what is written down says what was decided: results, config, node selector.

Source: AllocationResult of resource.k8s.io/v1, as kube-scheduler 1.37 fills it.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.allocation import AllocationResult
from contracts.ids import NodeName
from solver.judge.amounts import consumed
from solver.judge.facts import Facts
from solver.judge.pools import selects
from solver.problem.problem import ClaimPart, SubrequestPart

Violations = Iterator[str]
Place = tuple[NodeName, AllocationResult, str]


def results_are_written(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    place: Place,
) -> Violations:
    """Judge one claim's AllocationResult."""
    yield from _results(facts, claim, chosen, place)
    yield from _config(facts, claim, chosen, place)
    yield from _node_selector(facts, place)


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
    shares = [r.share_id for r in allocation.devices.results if r.share_id]
    if len(set(shares)) < len(shares):
        yield f"shareId: {where} repeats a share id"
    for result in allocation.devices.results:
        known, asked = facts.device(node, result.device_id), asked_by[result.request]
        if known is None:
            continue
        subject = f"{where} {result.device_id}"
        if bool(result.admin_access) != asked.admin_access:
            yield f"adminWritten: {subject} says otherwise"
        if len(result.tolerations) != len(asked.tolerations):
            yield f"tolerationsWritten: {subject} has others"
        if bool(result.share_id) != known.shareable:
            yield f"shareId: {subject} has one where it should not, or lacks it"
        amounts: dict[str, int] = {}
        if known.shareable:
            fractional = features.fractional_capacity_range
            found = consumed(known.device, asked.capacity, fractional=fractional)
            amounts = found or {}
        written = {n: amount.nano for n, amount in result.consumed_capacity.items()}
        if written != amounts:
            yield f"consumedWritten: {subject} says {written}, consumes {amounts}"
        lists = known.device.binding_conditions if features.device_binding else ()
        if result.binding_conditions != (lists or ()):
            yield f"bindingWritten: {subject} has other conditions"


def _config(
    facts: Facts,
    claim: ClaimPart,
    chosen: list[tuple[SubrequestPart, int]],
    place: Place,
) -> Violations:
    """Configuration of classes comes first, then the claim's that means anything."""
    _, allocation, where = place
    classes = dict.fromkeys(asked.device_class for asked, _ in chosen)
    wanted = [
        ("FromClass", item.opaque)
        for name in classes
        for item in (facts.classes[name].config if name in facts.classes else ())
    ]
    names = {
        name
        for request, (_, rank) in zip(claim.requests, chosen, strict=True)
        for name in (request.name, request.result_name(rank))
    }
    wanted += [
        ("FromClaim", item.opaque)
        for item in claim.config
        if not item.requests or names & set(item.requests)
    ]
    found = [(item.source, item.opaque) for item in allocation.devices.config]
    if found != wanted:
        yield f"configWritten: {where} has other configuration"


def _node_selector(facts: Facts, place: Place) -> Violations:
    """The selector lets the node in; a local device lets no other in."""
    node, allocation, where = place
    selector = allocation.node_selector
    if selector is not None and not selects(selector, facts.node(node)):
        yield f"nodeSelectorWritten: {where} may not be used on {node}"
    for result in allocation.devices.results:
        known = facts.device(node, result.device_id)
        if known is None:
            continue
        local = known.item.node_name is not None
        if known.item.per_device_node_selection:
            local = known.device.node_name is not None
        if (local or known.device.binds_to_node) and not _is_pinned(place):
            yield f"nodeSelectorWritten: {where} is not pinned to {node}"
            return


def _is_pinned(place: Place) -> bool:
    node, allocation, _ = place
    selector = allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    return len(terms) == 1 and any(
        (item.key, item.values) == ("metadata.name", (node,))
        for item in terms[0].match_fields
    )
