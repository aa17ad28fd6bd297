"""From chosen devices to AllocationResults, as kube-scheduler would write them.

Results stand in the order of the requests; configuration of classes comes before that
of the claim; a device of one node pins the claim to that node. Names that nobody gave
yet are derived from the gang, so a repeated decision makes the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid5

from contracts.allocation import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResultToleration,
)
from contracts.claim import DeviceConfiguration
from contracts.device import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.ids import (
    ClaimRef,
    ClaimUID,
    DeviceClassName,
    DeviceID,
    GangUID,
    NodeName,
)
from contracts.messages import ClaimAllocated, MemberAllocated
from solver.places import Place, Placed
from solver.problem.problem import ClaimPart, GangPart, MemberPart, RequestPart

ClassConfigs = Mapping[DeviceClassName, tuple[DeviceConfiguration, ...]]
NAMESPACE = UUID("6c0d7a3e-98c5-5a0e-9a55-2f1f3cf1a3d0")
"""Of gang uids that are no UUIDs themselves."""


def members_allocated(
    gang: GangPart, placed: Placed, configs: ClassConfigs
) -> tuple[MemberAllocated, ...]:
    """Write down what every pod of a gang gets."""
    return tuple(
        MemberAllocated(
            member=member.name,
            index=index,
            node=place.node,
            claims=tuple(_claims(gang, member, index, place, configs)),
        )
        for member, places in zip(gang.members, placed.members, strict=True)
        for index, place in enumerate(places)
    )


def claim_ref(
    gang: GangPart, member: MemberPart, index: int, claim: ClaimPart
) -> ClaimRef:
    """Name a pod's claim; one that does not exist yet gets a derived name and uid."""
    name = claim.claim_name or f"{gang.name}-{member.name}-{index}-{claim.name}"
    uid = claim.claim_uid or str(
        uuid5(_namespace(gang.uid), f"{member.name}/{index}/{claim.name}")
    )
    return ClaimRef(gang.namespace, name, ClaimUID(uid))


def _namespace(uid: GangUID) -> UUID:
    try:
        return UUID(uid)
    except ValueError:
        return uuid5(NAMESPACE, uid)


def _claims(
    gang: GangPart, member: MemberPart, index: int, place: Place, configs: ClassConfigs
) -> list[ClaimAllocated]:
    claims, first = [], 0
    for claim in member.claims:
        devices = place.devices[first : first + len(claim.requests)]
        first += len(claim.requests)
        claims.append(
            ClaimAllocated(
                claim=claim.name,
                ref=claim_ref(gang, member, index, claim),
                allocation=_allocation(claim, devices, place.node, configs),
            )
        )
    return claims


def _allocation(
    claim: ClaimPart,
    devices: tuple[tuple[DeviceID, ...], ...],
    node: NodeName,
    configs: ClassConfigs,
) -> AllocationResult:
    results = tuple(
        _result(request, device)
        for request, chosen in zip(claim.requests, devices, strict=True)
        for device in chosen
    )
    return AllocationResult(
        devices=DeviceAllocationResult(results=results, config=_config(claim, configs)),
        node_selector=_on_node(node) if results else None,
    )


def _result(request: RequestPart, device: DeviceID) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(
        request=request.name,
        driver=device.driver,
        pool=device.pool,
        device=device.device,
        tolerations=tuple(
            ResultToleration(
                key=toleration.key,
                operator=toleration.operator,
                value=toleration.value,
                effect=toleration.effect,
                toleration_seconds=toleration.toleration_seconds,
            )
            for toleration in request.tolerations
        ),
    )


def _on_node(node: NodeName) -> NodeSelector:
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))


def _config(
    claim: ClaimPart, configs: ClassConfigs
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Put the configuration together: classes first, then the claim's own.

    An entry that covers every request of the claim names none.
    Source: kubernetes 1.37, structured allocator.
    """
    names = {request.name for request in claim.requests}
    entries: list[tuple[str, tuple[str, ...], DeviceConfiguration]] = []
    by_class: dict[DeviceClassName, list[str]] = {}
    for request in claim.requests:
        by_class.setdefault(request.device_class, []).append(request.name)
    for name, requests in by_class.items():
        entries.extend(
            ("FromClass", tuple(requests), item) for item in configs.get(name, ())
        )
    entries.extend(
        ("FromClaim", item.requests, item)
        for item in claim.config
        if not item.requests or names & set(item.requests)
    )
    return tuple(
        DeviceAllocationConfiguration(
            source=source,
            requests=() if names <= set(requests) else requests,
            opaque=item.opaque,
        )
        for source, requests, item in entries
    )
