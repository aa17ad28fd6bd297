"""Rules of a gang that grows: they hold for the new pods and those that run.

What runs is never moved. So a rule about labels of nodes becomes part of what the new
pods ask of their nodes. A rule about devices of both is kept by the solver: it is told
where the running pods are and which devices they have. Pods wait if neither is
possible, and are told which rule they wait for; no rule is broken. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec.structs import replace

from contracts.allocation import Reason, Rule
from contracts.claim import ResourceClaim, ResourceClaimSpec
from contracts.codec import encode
from contracts.counts import counted
from contracts.device import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from contracts.gang import Member
from contracts.gang_rules import DevicePath, GangTopology
from contracts.joined import MAX_JOINED_DEVICES, JoinedDevice, JoinedGang, JoinedPod
from contracts.messages import MAX_BYTES, SubmitGang
from contracts.pods.declared_rules import DeclaredRules
from contracts.pods.membership import COMPLETION_INDEX
from contracts.workload import Pod
from publisher.gangs.node_affinity import narrow_affinity, pinned_node_of
from publisher.gangs.view import View, claim_keys, is_over, uids_of

POD_INDEX = "apps.kubernetes.io/pod-index"
"""Label of the pods of a StatefulSet: the number that each has for good."""
_BESIDE = "cannot be decided yet beside running pods of the gang"
_MOST_BYTES = MAX_BYTES // 2
"""The rest of a message is for the pods that are asked for."""
Derived = tuple[tuple[str, str], ...]
"""(attribute, expression) of a request."""


class NodeRules:
    """Rules of a gang that grows, as what its new pods ask of their nodes."""

    def __init__(
        self,
        new: Sequence[tuple[str, Pod]],
        running: Sequence[tuple[str, Pod]],
        view: View,
        before: Sequence[tuple[str, Pod]] = (),
    ) -> None:
        """Pods as (member, pod); those `before` were asked for, and do not run."""
        self._new = new
        self._running = running
        self._view = view
        self._before = before

    def find_earlier_pod(self, rules: DeclaredRules) -> tuple[Pod, str] | None:
        """Find a pod that must run before these are asked for, and the rule's field.

        Nothing keeps a rule over pods that are decided apart but what already runs: a
        most per domain is counted, a domain is shared.
        """
        new = {member for member, _ in self._new}
        for number, constraint in enumerate(rules.constraints):
            named = {path.partition("/")[0] for path in constraint.requests}
            before = [pod for of, pod in self._before if not named or of in named]
            if constraint.scope != "Pod" and before and (not named or named & new):
                return before[0], f"spec.constraints[{number}]"
        for number, rule in enumerate(rules.topology):
            if rule.mode != "Required" or not any(map(rule.is_about, new)):
                continue
            before = [pod for of, pod in self._before if rule.is_about(of)]
            if before and not self._is_kept_apart(rule, before):
                return before[0], f"spec.topology[{number}]"
        return None

    def _is_kept_apart(self, rule: GangTopology, before: Sequence[Pod]) -> bool:
        """True if a rule is kept though others are decided at the same time."""
        if rule.max_per_domain is not None:
            return False
        if rule.group_size is None:
            return any(rule.is_about(of) for of, _ in self._running)
        if rule.size is None:
            return False
        size = rule.size

        def list_groups(pods: Iterable[Pod]) -> set[int | None]:
            numbers = map(number_of, pods)
            return {None if number is None else number // size for number in numbers}

        both = list_groups(pod for _, pod in self._new) & list_groups(before)
        return both <= list_groups(
            pod for of, pod in self._running if rule.is_about(of)
        )

    def narrow_members(
        self, members: Sequence[Member], rules: DeclaredRules
    ) -> tuple[Member, ...] | Reason:
        """Ask of the nodes of these members what the rules leave to them."""
        narrowed = []
        for member in members:
            affinity = member.node.affinity
            for number, rule in enumerate(rules.topology):
                if rule.mode != "Required" or not rule.is_about(member.name):
                    continue
                selector = self._find_selector(rule, member.name, number)
                if isinstance(selector, Reason):
                    return selector
                if selector is not None:
                    affinity = narrow_affinity(affinity, selector)
            node = replace(member.node, affinity=affinity)
            narrowed.append(replace(member, node=node))
        return tuple(narrowed)

    def _refuse_group(self, field: str) -> Reason:
        name = self._new[0][1].metadata.name
        return Reason(
            rule=Rule.NOT_MODELLED, subject=name, field=field, message=_BESIDE
        )

    def _find_selector(
        self, rule: GangTopology, member: str, number: int
    ) -> NodeSelector | Reason | None:
        """Find the nodes on which pods of a member keep a rule; None: any."""
        old = [pod for of, pod in self._running if rule.is_about(of)]
        terms: list[NodeSelectorRequirement] = []
        if rule.max_per_domain is not None:
            coming = sum(rule.is_about(of) for of, _ in self._new)
            terms += self._exclude_full_domains(rule, old, coming)
        if rule.is_even:
            least = self._find_least_filled(rule, member)
            if least is None:
                return self._refuse_group(f"spec.topology[{number}].groupSize")
            terms += self._require_domains(rule, least)
        elif rule.size is not None:
            group = self._find_running_group(rule.size, member)
            if group is None:
                return self._refuse_group(f"spec.topology[{number}].groupSize")
            terms += self._require_domains(rule, group)
        elif rule.max_per_domain is None:
            terms += self._require_domains(rule, old)
        if not terms:
            return None
        term = NodeSelectorTerm(match_expressions=tuple(terms))
        return NodeSelector(node_selector_terms=(term,))

    def _require_domains(
        self, rule: GangTopology, pods: Sequence[Pod]
    ) -> Iterator[NodeSelectorRequirement]:
        """Require the domain of pods that run."""
        domains = tuple(sorted(self._count_domains(rule, pods)))
        if domains:
            yield NodeSelectorRequirement(key=rule.key, operator="In", values=domains)

    def _exclude_full_domains(
        self, rule: GangTopology, pods: Sequence[Pod], coming: int
    ) -> Iterator[NodeSelectorRequirement]:
        """Exclude domains that have no room for all that come."""
        most = rule.max_per_domain or 0
        wanted = min(coming, most)
        domains = self._count_domains(rule, pods)
        full = tuple(sorted(d for d, count in domains.items() if count + wanted > most))
        if full:
            yield NodeSelectorRequirement(key=rule.key, operator="NotIn", values=full)

    def _count_domains(self, rule: GangTopology, pods: Iterable[Pod]) -> Counter[str]:
        domains: Counter[str] = Counter()
        for pod in pods:
            node = pinned_node_of(pod)
            value = self._view.nodes.labels(node).get(rule.key)
            if value is not None:
                domains[value] += 1
        return domains

    def _find_least_filled(self, rule: GangTopology, member: str) -> list[Pod] | None:
        """List the running pods of the domains that have fewest of a member.

        None: the new ones are too many to be sure that none gets more than the others.
        """
        old = [pod for of, pod in self._running if of == member]
        domains = self._count_domains(rule, old)
        least = min(domains.values(), default=0)
        fewest = {domain for domain, count in domains.items() if count == least}
        new = sum(of == member for of, _ in self._new)
        if new > 1 and len(domains) > 1:
            return None
        return [pod for pod in old if self._count_domains(rule, [pod]).keys() & fewest]

    def _find_running_group(self, size: int, member: str) -> list[Pod] | None:
        """List the running pods of the one group that the new ones are of.

        None: the pods have no numbers of their own, or are of several groups.
        """
        new = {number_of(pod) for of, pod in self._new if of == member}
        old = {number_of(pod): pod for of, pod in self._running if of == member}
        groups = {None if number is None else number // size for number in new}
        if len(groups) != 1 or None in groups or None in old:
            return None
        (group,) = groups
        return [pod for number, pod in old.items() if number // size == group]  # type: ignore[operator]  # none is None


def number_of(pod: Pod) -> int | None:
    """Return the number that whoever makes a pod gives it for good; None: none."""
    meta = pod.metadata
    for text in (
        meta.labels.get(POD_INDEX),
        meta.labels.get(COMPLETION_INDEX),
        meta.annotations.get(COMPLETION_INDEX),
    ):
        if text and text.isascii() and text.isdecimal() and len(text) < len("10000"):
            return int(text)
    return None


def keep_rules(
    rules: DeclaredRules, members: Sequence[Member], beside: Container[str] = ()
) -> DeclaredRules:
    """Keep what is about these members, which are but some of a gang's.

    Of that also what is about members `beside` them, of which pods run.
    """
    names = {member.name for member in members}
    constraints = []
    for constraint in rules.constraints:
        paths = [(path.partition("/")[0], path) for path in constraint.requests]
        if not paths or any(member in names for member, _ in paths):
            kept = (path for of, path in paths if of in names or of in beside)
            constraints.append(replace(constraint, requests=tuple(kept)))
    topology = []
    for rule in rules.topology:
        if not rule.members or any(name in names for name in rule.members):
            kept = (name for name in rule.members if name in names or name in beside)
            topology.append(replace(rule, members=tuple(kept)))
    return DeclaredRules(constraints=tuple(constraints), topology=tuple(topology))


class DeviceRules:
    """Rules of a gang that grows about devices of new pods and of those that run."""

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
            (member, pod)
            for member, pod in running
            if pinned_node_of(pod) in view.nodes
        ]
        self._names = {member for member, _ in self._running}
        self._rules = keep_rules(rules, members, self._names)
        self._asked = {
            (member.name, claim.name): _list_derived(claim.spec)
            for member in members
            for claim in member.claims
        }

    def find_rule(self) -> str:
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

    def describe_running(self, field: str) -> JoinedGang | Reason:
        """Tell of them what rules look at; a Reason: what cannot be told.

        `field` is the rule that asks for it.
        """
        for number, rule in enumerate(self._rules.topology):
            is_grouped = rule.group_size is not None and rule.mode == "Required"
            if is_grouped and any(rule.is_about(member) for member, _ in self._new):
                what = "cannot be decided yet beside running pods of the gang"
                return _refuse_rule(f"spec.topology[{number}].groupSize", "", what)
        told: set[tuple[str, str]] = set()
        pods = []
        for member, pod in self._running:
            devices = self._list_devices(member, pod, told)
            if isinstance(devices, str):
                return _refuse_rule(field, pod.metadata.name, devices)
            pods.append(
                JoinedPod(
                    member=member,
                    name=pod.metadata.name,
                    uid=pod.metadata.uid,
                    node=pinned_node_of(pod),
                    devices=tuple(devices),
                )
            )
        holding = self._find_holding(told)
        if holding is not None:
            pod, name = holding
            return _refuse_rule(
                field, pod.metadata.name, f"its claim {name} has devices"
            )
        count = sum(len(pod.devices) for pod in pods)
        if count > MAX_JOINED_DEVICES or len(encode(pods)) > _MOST_BYTES:
            devices = counted(count, "device")
            message = f"{counted(len(pods), 'pod')} with {devices}: too many run"
            return _refuse_rule(field, "", message)
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
        """True if a claim derives attributes that the new pods' claim does not."""
        derived = _list_derived(claim.spec)
        return bool(derived) and derived != self._asked.get((member, name))


def find_gone_pod(message: SubmitGang, pods: Iterable[Pod]) -> str:
    """Name a pod beside which others were asked for and that is over; empty: none.

    What is left to them may be more by then.
    """
    if message.joins is None:
        return ""
    there = uids_of(pod for pod in pods if not is_over(pod))
    gone = (pod.name for pod in message.joins.pods if pod.uid not in there)
    return next((f"pod {name}, which these would join, is gone" for name in gone), "")


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


def _refuse_rule(field: str, pod: str, message: str) -> Reason:
    return Reason(rule=Rule.NOT_MODELLED, subject=pod, field=field, message=message)
