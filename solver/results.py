"""From chosen devices to AllocationResults, as kube-scheduler would write them.

Results stand in the order of the requests; configuration of classes comes before that
of the claim; a device of one node pins the claim to that node. Names that nobody gave
yet are derived from the gang, so a repeated decision makes the same ones.

Source: k8s.io/dynamic-resource-allocation/structured, Allocate, createNodeSelector.
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
    Device,
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
from contracts.quantity import Quantity
from solver.devices.candidates import is_shareable
from solver.devices.capacity_amounts import consumed_amounts
from solver.devices.gather import Cluster
from solver.errors import ResultError
from solver.placement import GangPlacement, PodPlacement
from solver.problem.problem import (
    ClaimPart,
    GangPart,
    MemberPart,
    Problem,
    SubrequestPart,
)
from solver.snapshot.parts import ClassPart, PoolSlice

NAMESPACE = UUID("6c0d7a3e-98c5-5a0e-9a55-2f1f3cf1a3d0")
"""Of gang uids that are no UUIDs themselves."""


class Results:
    """Writes down what pods get.

    `narrow` pins a claim to its node where the node selectors of its devices cannot be
    merged, instead of giving up as kube-scheduler does.
    """

    def __init__(self, problem: Problem, cluster: Cluster, *, narrow: bool) -> None:
        self._cluster = cluster
        self._features = problem.parameters.features
        self._configs = _class_configs(problem)
        self._narrow = narrow

    def gang(
        self, gang: GangPart, placed: GangPlacement
    ) -> tuple[MemberAllocated, ...]:
        """Write down what every pod of a gang gets.

        Raises:
            ResultError: node selectors that cannot be merged.
        """
        return tuple(
            self.pod(gang, member, index, place)
            for member, places in zip(gang.members, placed.members, strict=True)
            for index, place in enumerate(places)
        )

    def pod(
        self, gang: GangPart, member: MemberPart, index: int, place: PodPlacement
    ) -> MemberAllocated:
        """Write down what one pod gets.

        Raises:
            ResultError: node selectors that cannot be merged.
        """
        claims, first = [], 0
        for claim in member.claims:
            last = first + len(claim.requests)
            ref = claim_ref(gang, member, index, claim)
            part = PodPlacement(
                place.node, place.devices[first:last], place.alternatives[first:last]
            )
            claims.append(
                ClaimAllocated(
                    claim=claim.name,
                    ref=ref,
                    allocation=self._allocation(claim, ref, part),
                )
            )
            first = last
        return MemberAllocated(
            member=member.name, index=index, node=place.node, claims=tuple(claims)
        )

    def _allocation(
        self, claim: ClaimPart, ref: ClaimRef, place: PodPlacement
    ) -> AllocationResult:
        results: list[DeviceRequestAllocationResult] = []
        slices: list[tuple[Device, PoolSlice]] = []
        for request, devices, alternative in zip(
            claim.requests, place.devices, place.alternatives, strict=True
        ):
            asked = request.alternatives[alternative]
            name = request.result_name(alternative)
            for device_id in devices:
                found = self._cluster.nodes[place.node].find(device_id)
                if found is None:
                    raise ResultError(f"{device_id} is not on {place.node}")
                share = None
                if is_shareable(found[0], self._features):
                    text = f"{len(results)}/{device_id}"
                    share = str(uuid5(_namespace(ref.uid), text))
                results.append(self._result(asked, name, device_id, found, share))
                slices.append(found)
        names = [
            request.result_name(alternative)
            for request, alternative in zip(
                claim.requests, place.alternatives, strict=True
            )
        ]
        return AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(results),
                config=_config(claim, place.alternatives, names, self._configs),
            ),
            node_selector=self._node_selector(claim, place.node, slices),
        )

    def _result(
        self,
        asked: SubrequestPart,
        request: str,
        device_id: DeviceID,
        found: tuple[Device, PoolSlice],
        share_id: str | None,
    ) -> DeviceRequestAllocationResult:
        device, item = found
        features, consumed = self._features, dict[str, Quantity]()
        if share_id is not None:
            fractional = features.fractional_capacity_range
            amounts = consumed_amounts(device, asked.capacity, fractional=fractional)
            consumed = amounts or {}
        lists = features.device_binding
        skips = features.optional_node_operations
        return DeviceRequestAllocationResult(
            request=request,
            driver=device_id.driver,
            pool=device_id.pool,
            device=device_id.device,
            admin_access=True if asked.admin_access else None,
            tolerations=_tolerations(asked),
            binding_conditions=(device.binding_conditions or ()) if lists else (),
            binding_failure_conditions=(
                (device.binding_failure_conditions or ()) if lists else ()
            ),
            share_id=share_id,
            consumed_capacity=consumed,
            skip_node_operations=item.skip_node_operations if skips else None,
        )

    def _node_selector(
        self, claim: ClaimPart, node: NodeName, found: list[tuple[Device, PoolSlice]]
    ) -> NodeSelector | None:
        fields: list[NodeSelectorRequirement] = []
        expressions: list[NodeSelectorRequirement] = []
        for device, item in found:
            name, selector = item.node_name, item.node_selector
            if item.per_device_node_selection:
                name, selector = device.node_name, device.node_selector
            if name is not None or device.binds_to_node:
                return NodeSelector.of_node(node)
            terms = selector.node_selector_terms if selector is not None else ()
            if len(terms) > 1:
                if self._narrow:
                    return NodeSelector.of_node(node)
                raise ResultError(
                    f"create NodeSelector for claim {claim.claim_name or claim.name}: "
                    f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
                )
            for term in terms:
                _add_new(term.match_fields, fields)
                _add_new(term.match_expressions, expressions)
        if not fields and not expressions:
            return None
        term = NodeSelectorTerm(
            match_fields=tuple(fields), match_expressions=tuple(expressions)
        )
        return NodeSelector(node_selector_terms=(term,))


def claim_ref(
    gang: GangPart, member: MemberPart, index: int, claim: ClaimPart
) -> ClaimRef:
    """Name a pod's claim; one that does not exist yet gets a derived name and uid."""
    name = claim.claim_name or f"{gang.name}-{member.name}-{index}-{claim.name}"
    uid = claim.claim_uid or str(
        uuid5(_namespace(gang.uid), f"{member.name}/{index}/{claim.name}")
    )
    return ClaimRef(gang.namespace, name, ClaimUID(uid))


def _namespace(uid: GangUID | ClaimUID) -> UUID:
    try:
        return UUID(uid)
    except ValueError:
        return uuid5(NAMESPACE, uid)


def _tolerations(asked: SubrequestPart) -> tuple[ResultToleration, ...]:
    return tuple(
        ResultToleration(
            key=toleration.key,
            operator=toleration.operator,
            value=toleration.value,
            effect=toleration.effect,
            toleration_seconds=toleration.toleration_seconds,
        )
        for toleration in asked.tolerations
    )


def _add_new(
    found: tuple[NodeSelectorRequirement, ...], known: list[NodeSelectorRequirement]
) -> None:
    for item in found:
        key = (item.key, item.operator, frozenset(item.values))
        if all((k.key, k.operator, frozenset(k.values)) != key for k in known):
            known.append(item)


def _class_configs(
    problem: Problem,
) -> Mapping[DeviceClassName, tuple[DeviceConfiguration, ...]]:
    return {
        value.name: value.config
        for page in problem.pages
        for value in page.values_of("")
        if isinstance(value, ClassPart) and value.config
    }


def _config(
    claim: ClaimPart,
    alternatives: tuple[int, ...],
    names: list[str],
    configs: Mapping[DeviceClassName, tuple[DeviceConfiguration, ...]],
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Put the configuration together: classes first, then the claim's own.

    An entry that covers every request of the claim names none.
    """
    entries: list[tuple[str, tuple[str, ...], DeviceConfiguration]] = []
    by_class: dict[DeviceClassName, list[str]] = {}
    for request, alternative, name in zip(
        claim.requests, alternatives, names, strict=True
    ):
        chosen = request.alternatives[alternative].device_class
        by_class.setdefault(chosen, []).append(name)
    for class_name, requests in by_class.items():
        entries.extend(
            ("FromClass", tuple(requests), item) for item in configs.get(class_name, ())
        )
    covers = [{r.name, name} for r, name in zip(claim.requests, names, strict=True)]
    entries.extend(
        ("FromClaim", item.requests, item)
        for item in claim.config
        if not item.requests or any(set(item.requests) & both for both in covers)
    )
    return tuple(
        DeviceAllocationConfiguration(
            source=source,
            requests=() if _covers_all(requests, covers) else requests,
            opaque=item.opaque,
        )
        for source, requests, item in entries
    )


def _covers_all(requests: tuple[str, ...], covers: list[set[str]]) -> bool:
    return all(set(requests) & both for both in covers)
