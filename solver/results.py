"""From chosen devices to AllocationResults, as kube-scheduler would write them.

Results stand in the order of the requests; configuration of classes comes before that
of the claim; a device of one node pins the claim to that node. Names that nobody gave
yet are derived from the gang, so a repeated decision makes the same ones.

Source: k8s.io/dynamic-resource-allocation/structured, Allocate, createNodeSelector.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1
from uuid import UUID

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
from solver.cache import cached
from solver.devices.candidates import is_shareable
from solver.devices.capacity_amounts import compute_consumed, domain_of
from solver.devices.gather import Cluster
from solver.errors import ResultError
from solver.placement import GangPlacement, PodPlacement
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, SubrequestPart
from solver.problem.problem import Problem
from solver.snapshot.parts import ClassPart, PoolSlice

NAMESPACE = UUID("6c0d7a3e-98c5-5a0e-9a55-2f1f3cf1a3d0")
"""UUIDs are made in it from gang uids that are none themselves."""
_NOTHING: dict[str, Quantity] = {}
"""What whole devices say that they consume: one for all of them."""


class Results:
    """Writes down what pods get; made once a Problem.

    `narrow` pins a claim to its node where the node selectors of its devices cannot be
    merged, instead of giving up as kube-scheduler does.
    """

    def __init__(self, problem: Problem, cluster: Cluster, *, narrow: bool) -> None:
        self._cluster = cluster
        self._features = problem.parameters.features
        self._configs = _class_configs(problem)
        self._narrow = narrow
        self._selectors: dict[NodeName, NodeSelector] = {}
        """By the one node that they select: most claims of a node have the same."""

    def of_gang(
        self, gang: GangPart, placement: GangPlacement
    ) -> tuple[MemberAllocated, ...]:
        """Write down what every pod of a gang gets.

        Raises:
            ResultError: node selectors that cannot be merged.
        """
        return tuple(
            self.of_pod(gang, member, index, pod)
            for member, pods in zip(gang.members, placement.members, strict=True)
            for index, pod in enumerate(pods, member.first)
        )

    def of_pod(
        self, gang: GangPart, member: MemberPart, index: int, pod: PodPlacement
    ) -> MemberAllocated:
        """Write down what one pod gets.

        Raises:
            ResultError: node selectors that cannot be merged.
        """
        claims, first = [], 0
        for claim in member.claims:
            last = first + len(claim.requests)
            ref = claim_ref(gang, member, index, claim)
            of_claim = PodPlacement(
                pod.node, pod.devices[first:last], pod.alternatives[first:last]
            )
            claims.append(
                ClaimAllocated(
                    claim=claim.name,
                    ref=ref,
                    allocation=self._write_allocation(claim, ref, of_claim),
                )
            )
            first = last
        return MemberAllocated(
            member=member.name, index=index, node=pod.node, claims=tuple(claims)
        )

    def _write_allocation(
        self, claim: ClaimPart, ref: ClaimRef, pod: PodPlacement
    ) -> AllocationResult:
        """Write down one claim; `pod` holds its requests alone.

        Raises:
            ResultError: node selectors that cannot be merged.
        """
        results: list[DeviceRequestAllocationResult] = []
        devices_and_slices: list[tuple[Device, PoolSlice]] = []
        names: list[str] = []
        node = self._cluster.nodes[pod.node]
        for request, devices, alternative in zip(
            claim.requests, pod.devices, pod.alternatives, strict=True
        ):
            subrequest = request.alternatives[alternative]
            name = request.result_name(alternative)
            names.append(name)
            for device_id in devices:
                device_and_slice = node.find(device_id)
                if device_and_slice is None:
                    raise ResultError(f"{device_id} is not on {pod.node}")
                share_id = None
                if is_shareable(device_and_slice[0], self._features):
                    text = f"{len(results)}/{device_id}"
                    share_id = derive_uuid(ref.uid, text)
                results.append(
                    self._write_result(
                        subrequest, name, device_id, device_and_slice, share_id
                    )
                )
                devices_and_slices.append(device_and_slice)
        return AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(results),
                config=_write_config(claim, pod.alternatives, names, self._configs),
            ),
            node_selector=self._node_selector(claim, pod.node, devices_and_slices),
        )

    def _write_result(
        self,
        subrequest: SubrequestPart,
        name: str,
        device_id: DeviceID,
        device_and_slice: tuple[Device, PoolSlice],
        share_id: str | None,
    ) -> DeviceRequestAllocationResult:
        device, pool_slice = device_and_slice
        features, consumed = self._features, _NOTHING
        if share_id is not None:
            amounts = compute_consumed(
                device.capacity,
                subrequest.capacity,
                fractional=features.fractional_capacity_range,
                domain=domain_of(device_id.driver, features),
            )
            consumed = amounts or _NOTHING
        binds = features.device_binding
        skips = features.optional_node_operations
        return DeviceRequestAllocationResult(
            request=name,
            driver=device_id.driver,
            pool=device_id.pool,
            device=device_id.device,
            admin_access=True if subrequest.admin_access else None,
            tolerations=_write_tolerations(subrequest),
            binding_conditions=(device.binding_conditions or ()) if binds else (),
            binding_failure_conditions=(
                (device.binding_failure_conditions or ()) if binds else ()
            ),
            share_id=share_id,
            consumed_capacity=consumed,
            skip_node_operations=pool_slice.skip_node_operations if skips else None,
        )

    def _node_selector(
        self,
        claim: ClaimPart,
        node: NodeName,
        devices_and_slices: list[tuple[Device, PoolSlice]],
    ) -> NodeSelector | None:
        """Merge what the devices ask of nodes; None: they may be used everywhere."""
        fields: list[NodeSelectorRequirement] = []
        expressions: list[NodeSelectorRequirement] = []
        for device, pool_slice in devices_and_slices:
            name, selector = pool_slice.node_name, pool_slice.node_selector
            if pool_slice.per_device_node_selection:
                name, selector = device.node_name, device.node_selector
            # One device of a single node pins the claim, whatever the others say.
            if name is not None or device.binds_to_node:
                return self._select_node(node)
            # Alternatives of several devices cannot be merged into one term.
            terms = selector.node_selector_terms if selector is not None else ()
            if len(terms) > 1:
                if self._narrow:
                    return self._select_node(node)
                raise ResultError(
                    f"create NodeSelector for claim {claim.claim_name or claim.name}: "
                    f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
                )
            for term in terms:
                _add_new(term.match_fields, fields)
                _add_new(term.match_expressions, expressions)
        if not fields and not expressions:
            return None
        merged = NodeSelectorTerm(
            match_fields=tuple(fields), match_expressions=tuple(expressions)
        )
        return NodeSelector(node_selector_terms=(merged,))

    def _select_node(self, node: NodeName) -> NodeSelector:
        selector = self._selectors.get(node)
        if selector is None:
            selector = self._selectors[node] = NodeSelector.of_node(node)
        return selector


def claim_ref(
    gang: GangPart, member: MemberPart, index: int, claim: ClaimPart
) -> ClaimRef:
    """Name a pod's claim; one that does not exist yet gets a derived name and uid."""
    name, text = claim.claim_name, f"{gang.namespace}/{claim.claim_name}"
    if not name:
        name = f"{gang.name}-{member.name}-{index}-{claim.name}"
        text = f"{gang.namespace}/{member.name}/{index}/{claim.name}"
    uid = claim.claim_uid or derive_uuid(gang.uid, text)
    return ClaimRef(gang.namespace, name, ClaimUID(uid))


def derive_uuid(uid: GangUID | ClaimUID, text: str) -> str:
    """Derive a UUID from a uid and a text: as `uuid.uuid5`, in a third of its time.

    Source: RFC 9562, section 5.5.
    """
    return _name_based(_namespace_of(uid), text)


@cached(bound=256)
def _namespace_of(uid: GangUID | ClaimUID) -> bytes:
    try:
        return UUID(uid).bytes
    except ValueError:
        return UUID(_name_based(NAMESPACE.bytes, uid)).bytes


def _name_based(namespace: bytes, text: str) -> str:
    data = bytearray(sha1(namespace + text.encode(), usedforsecurity=False).digest())
    data[6] = data[6] & 0x0F | 0x50  # version 5
    data[8] = data[8] & 0x3F | 0x80  # variant of the RFC
    name = data.hex()
    return f"{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:32]}"


def _write_tolerations(subrequest: SubrequestPart) -> tuple[ResultToleration, ...]:
    if not subrequest.tolerations:
        return ()
    return tuple(
        ResultToleration(
            key=toleration.key,
            operator=toleration.operator,
            value=toleration.value,
            effect=toleration.effect,
            toleration_seconds=toleration.toleration_seconds,
        )
        for toleration in subrequest.tolerations
    )


def _add_new(
    requirements: tuple[NodeSelectorRequirement, ...],
    merged: list[NodeSelectorRequirement],
) -> None:
    """Add the requirements that are new; the order of values does not matter."""
    for requirement in requirements:
        if all(
            _selector_meaning(other) != _selector_meaning(requirement)
            for other in merged
        ):
            merged.append(requirement)


def _selector_meaning(
    requirement: NodeSelectorRequirement,
) -> tuple[str, str, frozenset[str]]:
    return (requirement.key, requirement.operator, frozenset(requirement.values))


def _class_configs(
    problem: Problem,
) -> Mapping[DeviceClassName, tuple[DeviceConfiguration, ...]]:
    return {
        value.name: value.config
        for page in problem.pages
        for value in page.values_of("")
        if isinstance(value, ClassPart) and value.config
    }


def _write_config(
    claim: ClaimPart,
    alternatives: tuple[int, ...],
    names: list[str],
    configs: Mapping[DeviceClassName, tuple[DeviceConfiguration, ...]],
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Put the configuration together: classes first, then the claim's own.

    An entry that covers every request of the claim names none.
    """
    if not (configs or claim.config):
        return ()
    entries: list[tuple[str, tuple[str, ...], DeviceConfiguration]] = []
    requests_by_class: dict[DeviceClassName, list[str]] = {}
    for request, alternative, name in zip(
        claim.requests, alternatives, names, strict=True
    ):
        device_class = request.alternatives[alternative].device_class
        requests_by_class.setdefault(device_class, []).append(name)
    for device_class, requests in requests_by_class.items():
        entries.extend(
            ("FromClass", tuple(requests), config)
            for config in configs.get(device_class, ())
        )
    # An entry of the claim may name a request with or without its alternative.
    names_by_request = [
        {request.name, name}
        for request, name in zip(claim.requests, names, strict=True)
    ]
    entries.extend(
        ("FromClaim", config.requests, config)
        for config in claim.config
        if not config.requests
        or any(set(config.requests) & both for both in names_by_request)
    )
    return tuple(
        DeviceAllocationConfiguration(
            source=source,
            requests=() if _covers_all(requests, names_by_request) else requests,
            opaque=config.opaque,
        )
        for source, requests, config in entries
    )


def _covers_all(requests: tuple[str, ...], names_by_request: list[set[str]]) -> bool:
    return all(set(requests) & both for both in names_by_request)
