"""What is told of pods that run, beside which others of their gang are asked for.

Where a rule is about devices of both, the solver keeps it: it is told where those that
run are, and which devices they have. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaim, ResourceClaimSpec
from contracts.codec import encode
from contracts.counts import counted
from contracts.gang import Member
from contracts.gang_rules import DevicePath
from contracts.ids import NodeName
from contracts.joined import (
    MAX_JOINED_DEVICES,
    JoinedDevice,
    JoinedGang,
    JoinedPod,
)
from contracts.messages import MAX_BYTES, SubmitGang
from contracts.pods.declared_rules import DeclaredRules
from contracts.workload import Pod
from publisher.gangs.gang_rules import keep_rules
from publisher.gangs.members import pinned_node_of
from publisher.gangs.view import View, claim_keys, is_over, uids_of

_MOST_BYTES = MAX_BYTES // 2
"""The rest of a message is for the pods that are asked for."""
Derived = tuple[tuple[str, str], ...]
"""(attribute, expression) of a request."""


class JoinedPods:
    """Pods of a gang that run, each with its member, as rules see them."""

    def __init__(
        self,
        new: Sequence[tuple[str, Pod]],
        running: Sequence[tuple[str, Pod]],
        members: Sequence[Member],
        rules: DeclaredRules,
        view: View,
    ) -> None:
        """Pods as (member, pod); `new` ones are asked for as `members`.

        Pods whose nodes are gone are lost.
        """
        self._new = new
        self._view = view
        self._running = [
            (member, pod) for member, pod in running if _node_of(pod) in view.nodes
        ]
        self._names = {member for member, _ in self._running}
        self._rules = keep_rules(rules, members, self._names)
        self._asked = {
            (member.name, claim.name): _list_derived(claim.spec)
            for member in members
            for claim in member.claims
        }

    def find_field(self) -> str:
        """Name the first rule about devices of both; empty: there is none."""
        for number, constraint in enumerate(self._rules.constraints):
            named = {path.partition("/")[0] for path in constraint.requests}
            is_about_old = not named or named & self._names
            if constraint.scope != "Pod" and self._names and is_about_old:
                return f"spec.constraints[{number}]"
        for number, rule in enumerate(self._rules.topology):
            is_devices = rule.attribute is not None and rule.mode == "Required"
            if is_devices and any(map(rule.is_about, self._names)):
                return f"spec.topology[{number}]"
        return ""

    def describe(self, field: str) -> JoinedGang | Reason:
        """Tell of them what rules look at; a Reason: what cannot be told.

        `field` is the rule that asks for it.
        """
        for number, rule in enumerate(self._rules.topology):
            is_grouped = rule.group_size is not None and rule.mode == "Required"
            if is_grouped and any(rule.is_about(member) for member, _ in self._new):
                what = "cannot be decided yet beside running pods of the gang"
                return _refuse(f"spec.topology[{number}].groupSize", "", what)
        told: set[tuple[str, str]] = set()
        pods = []
        for member, pod in self._running:
            devices = self._list_devices(member, pod, told)
            if isinstance(devices, str):
                return _refuse(field, pod.metadata.name, devices)
            pods.append(
                JoinedPod(
                    member=member,
                    name=pod.metadata.name,
                    uid=pod.metadata.uid,
                    node=_node_of(pod),
                    devices=tuple(devices),
                )
            )
        holding = self._find_holding(told)
        if holding is not None:
            pod, name = holding
            return _refuse(field, pod.metadata.name, f"its claim {name} has devices")
        count = sum(len(pod.devices) for pod in pods)
        if count > MAX_JOINED_DEVICES or len(encode(pods)) > _MOST_BYTES:
            devices = counted(count, "device")
            message = f"{counted(len(pods), 'pod')} with {devices}: too many run"
            return _refuse(field, "", message)
        return JoinedGang(
            pods=tuple(pods),
            constraints=self._rules.constraints,
            topology=self._rules.topology,
        )

    def _list_devices(
        self, member: str, pod: Pod, told: set[tuple[str, str]]
    ) -> list[JoinedDevice] | str:
        """List what a pod has, but for claims `told` of its member; a str: why not."""
        devices: list[JoinedDevice] = []
        for name, key in sorted(self._list_claims(member, pod)):
            claim = self._view.claim(key)
            if claim is None or claim.allocation is None:
                return f"its claim {name} holds nothing, although the pod runs"
            if self._derives_otherwise(member, name, claim):
                return f"its claim {name} derives attributes, and it runs"
            if (member, key) in told:
                continue
            told.add((member, key))
            devices += (
                JoinedDevice(
                    claim=name, request=result.request, device=result.device_id
                )
                for result in claim.allocation.devices.results
            )
        return devices

    def _find_holding(self, told: Container[tuple[str, str]]) -> tuple[Pod, str] | None:
        """Find a new pod with a claim that rules look at, and that has its devices.

        Nobody would compare these, but where a claim was `told` and is of the set.
        """
        for member, pod in self._new:
            for name, key in self._list_claims(member, pod):
                is_told = (member, key) in told and not self._has_rules_of_pods
                if not is_told and (member, name) not in self._asked:
                    return pod, name
        return None

    @property
    def _has_rules_of_pods(self) -> bool:
        return any(rule.scope == "Pod" for rule in self._rules.constraints)

    def _list_claims(self, member: str, pod: Pod) -> Iterator[tuple[str, str]]:
        """List the claims of a pod that rules look at: its name, and `namespace/name`.

        Where a domain is an attribute, any device may say in which a pod is.
        """
        keys = claim_keys(pod)
        looks_at_all = any(
            rule.attribute is not None and rule.is_about(member)
            for rule in self._rules.topology
        ) or any(
            not constraint.requests and constraint.scope != "Pod"
            for constraint in self._rules.constraints
        )
        for claim in pod.spec.resource_claims:
            if looks_at_all or self._is_named(member, claim.name):
                yield claim.name, keys.get(claim.name, "")

    def _is_named(self, member: str, claim: str) -> bool:
        paths = (
            DevicePath.parse(text)
            for constraint in self._rules.constraints
            for text in constraint.requests
        )
        return any(
            path.member == member and path.claim in ("", claim) for path in paths
        )

    def _derives_otherwise(self, member: str, name: str, claim: ResourceClaim) -> bool:
        """Whether a claim derives attributes that the new pods' claim does not."""
        derived = _list_derived(claim.spec)
        return bool(derived) and derived != self._asked.get((member, name))


def find_gone(message: SubmitGang, pods: Iterable[Pod]) -> str:
    """Name a pod beside which others were asked for and that is over; empty: none.

    What is left to them may be more by then.
    """
    if message.joins is None:
        return ""
    there = uids_of(pod for pod in pods if not is_over(pod))
    gone = (pod.name for pod in message.joins.pods if pod.uid not in there)
    return next((f"pod {name}, which these would join, is gone" for name in gone), "")


def _node_of(pod: Pod) -> NodeName:
    return pod.spec.node_name or pinned_node_of(pod)


def _list_derived(spec: ResourceClaimSpec | None) -> dict[tuple[str, str], Derived]:
    """List what requests derive, by request and subrequest; those that do."""
    derived: dict[tuple[str, str], Derived] = {}
    for request in () if spec is None else spec.devices.requests:
        exactly = () if request.exactly is None else (("", request.exactly),)
        listed = ((sub.name, sub) for sub in request.first_available)
        for name, part in (*exactly, *listed):
            if part.derived_attributes:
                derived[request.name, name] = tuple(
                    (each.name, each.expression) for each in part.derived_attributes
                )
    return derived


def _refuse(field: str, pod: str, message: str) -> Reason:
    return Reason(rule=Rule.NOT_MODELLED, subject=pod, field=field, message=message)
