"""What is known of the cluster: pods that waited for us or do, claims, Gangs, nodes.

Indexes that answer what a plan asks, changed by one object at a time. An older version
of an object never replaces a newer one, because answers to our own writes and the
watch come in any order. Knows no plan and no network.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from contracts.claim import ResourceClaim
from contracts.gang import Gang
from contracts.ids import DeviceID
from contracts.names import GANG_UID, GATE, OF_CLAIM
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import (
    APIS_BY_OWNER,
    Membership,
    OwnerKey,
    WorkloadAPI,
    pod_group_of,
    read_membership,
)
from contracts.workload import Pod
from publisher.gang_names import keep_valid_name
from publisher.gangs.bypassed_pods import BypassedPods
from publisher.gangs.claim_users import (
    FinishedUsers,
    ReservationFlips,
    UngatedUsers,
)
from publisher.gangs.claims import exclusive_devices_of, has_immediate_label
from publisher.gangs.ended_pods import EndedPods
from publisher.gangs.failed_devices import SeenFailures
from publisher.gangs.known_nodes import KnownNode, KnownNodes
from publisher.gangs.offered_devices import OfferedDevices
from publisher.gangs.owners import GangOwners, JoinedMembership
from publisher.gangs.stray_pods import StrayPods
from publisher.gangs.volumes import Volumes
from publisher.natural_order import order_naturally

_GONE = 10_000
"""So many uids of deleted objects are remembered: a late answer must not revive one."""
ENDED = ("Succeeded", "Failed")
_Object = Pod | ResourceClaim | Gang


class GroupKey(Struct, frozen=True, order=True):
    """Pods that are looked at together: those of one gang, or one lone pod.

    Or one claim that is allocated without a pod.
    """

    namespace: str
    name: str
    lone: bool = False
    api: str = ""
    """By what they belong together (WorkloadAPI); empty: by our label, or not.

    `OF_CLAIM`: they are no pods but the claim of that name."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class View:
    """Objects by key, and what refers to what."""

    def __init__(
        self,
        apis: Collection[WorkloadAPI] = (),
        late_gates: Iterable[str] = (),
        bypassed: BypassedPods | None = None,
        *,
        allocates_alone: bool = False,
    ) -> None:
        """`apis` put pods together that have no label of ours.

        `late_gates` are gates of others that open after devices are decided. Without
        `bypassed` no pod is ours that was bound without us. With `allocates_alone`
        nobody else allocates the claims that we own.
        """
        self._apis = apis
        self._without_groups = frozenset(apis) - {WorkloadAPI.POD_GROUP}
        self.late_gates = frozenset(late_gates)
        self._bypassed = bypassed
        self._pods: dict[str, Pod] = {}
        self._claims: dict[str, ResourceClaim] = {}
        self._gangs: dict[str, Gang] = {}
        self._groups: dict[GroupKey, set[str]] = {}
        self._group_by_pod: dict[str, GroupKey] = {}
        self._pod_groups: dict[str, OwnerKey] = {}
        """By pod, of ours and strays."""
        self._by_pod_group: dict[OwnerKey, set[str]] = {}
        self._users: dict[str, set[str]] = {}
        """Claim key -> keys of our pods that use it."""
        self._holders: dict[DeviceID, set[str]] = {}
        """Device -> keys of the claims that hold it alone."""
        self._made_by: Counter[str] = Counter()
        """Our pods by the uid of their controller."""
        self._unbound: set[str] = set()
        """Keys of our pods that are on no node yet."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        self.nodes = KnownNodes()
        """What is there to be pinned to."""
        self.reservation_flips = ReservationFlips()
        """Reservations of claims that come and go."""
        self.volumes = Volumes()
        """What their volumes ask of nodes; `waiting_groups` says who is concerned."""
        self.owners = GangOwners(
            joins_groups=WorkloadAPI.COMPOSITE_POD_GROUP in self._apis
        )
        """What says how many pods a gang has."""
        self.ungated_users = UngatedUsers()
        """Claims that pods use which are not ours."""
        self.finished_users = FinishedUsers()
        """Claims of pods, ours or not, that have ended."""
        self.strays: StrayPods[GroupKey] = StrayPods(by_claims=allocates_alone)
        """Pods that are meant for us and are not ours."""
        self.offered = OfferedDevices()
        """What slices offer; `groups_using` says whom its claims concern."""
        self.failures = SeenFailures()
        """Devices of claims that could not be attached."""
        self.ended: EndedPods[GroupKey] = EndedPods()
        """How pods ended that had passed our gate."""

    # --- what is there --------------------------------------------------------------

    def groups(self) -> Iterator[GroupKey]:
        """Go through all groups that have pods, immediate claims and Gang objects."""
        yield from self._groups
        yield from self._immediate_groups(self._claims)
        for gang in self._gangs.values():
            key = group_of_gang(gang)
            if key not in self._groups:
                yield key

    def has_group(self, group: GroupKey) -> bool:
        """True if a group has pods, if only stray ones, or an object that it is of."""
        is_seen = group in self._groups or self.strays.has(group)
        return is_seen or self.lead(group) is not None

    def pods(self, group: GroupKey) -> tuple[Pod, ...]:
        """Return our pods of a group, in the order of the numbers in their names."""
        pods = [self._pods[key] for key in self._groups.get(group, ())]
        return tuple(sorted(pods, key=lambda pod: order_naturally(pod.metadata.name)))

    def gang(self, group: GroupKey) -> Gang | None:
        """Return the Gang object of a group."""
        return None if group.lone or group.api else self._gangs.get(str(group))

    def lead(self, group: GroupKey) -> Gang | ResourceClaim | None:
        """Return the object that a group is of: its Gang, or an immediate claim."""
        if group.api != OF_CLAIM:
            return self.gang(group)
        claim = self._claims.get(str(group))
        return claim if has_immediate_label(claim) else None

    def membership(self, pod: Pod) -> Membership:
        """Return which gang a pod belongs to, and as what.

        One that was bound without us is alone, whatever it says.
        """
        meta = pod.metadata
        if self._bypassed is not None and self._bypassed.has(pod):
            return Membership(namespace=meta.namespace, group=meta.name, is_lone=True)
        return keep_valid_name(self.owners.join(self._read_membership(pod)), pod)

    def _read_membership(self, pod: Pod) -> JoinedMembership:
        found = read_membership(pod, self._apis)
        if found.api != WorkloadAPI.POD_GROUP:
            return found, None
        return found, read_membership(pod, self._without_groups)

    def group_of(self, pod: Pod) -> GroupKey:
        """Return the group of a pod."""
        return _group_of(self.membership(pod))

    def claim(self, key: str) -> ResourceClaim | None:
        """Return a claim by `namespace/name`."""
        return self._claims.get(key)

    def claims(self) -> Iterator[tuple[str, ResourceClaim]]:
        """Go through all claims."""
        return iter(self._claims.items())

    def pod(self, key: str) -> Pod | None:
        """Return one of our pods by `namespace/name`."""
        return self._pods.get(key)

    def pod_of(self, namespace: str, name: str, uid: str) -> Pod | None:
        """Return one of our pods, unless another has its name now."""
        pod = self._pods.get(f"{namespace}/{name}")
        return None if pod is None or pod.metadata.uid != uid else pod

    def users(self, claim: str) -> tuple[Pod, ...]:
        """Return our pods that use a claim."""
        return tuple(self._pods[key] for key in sorted(self._users.get(claim, ())))

    def count_siblings(self, pod: Pod) -> int:
        """Count our pods that have the controller of a pod, itself included."""
        return self._made_by[pod.metadata.controller.uid]

    def holders(self, device: DeviceID) -> frozenset[str]:
        """Name the claims that hold a device alone."""
        return frozenset(self._holders.get(device, ()))

    def has(self, kind: str, key: str, uid: str, version: str = "") -> bool:
        """True if exactly this pod of ours, or claim, is there (in this version)."""
        there = self._pods.get(key) if kind == "Pod" else self._claims.get(key)
        if there is None or there.metadata.uid != uid:
            return False
        return version in ("", there.metadata.resource_version)

    # --- changes --------------------------------------------------------------------

    def apply_pod(
        self, key: str, pod: Pod | None, uid: str = ""
    ) -> frozenset[GroupKey]:
        """Take a pod in; returns its group and those that share claims with it.

        None: the pod with that uid is gone; without a uid, whichever is there.
        """
        before = self._pods.get(key)
        if not self._is_news(before, pod, uid):
            return frozenset()
        self._note_end(before, pod)
        touched = self._note_finished(key, pod)
        if before is not None:
            touched |= self._list_neighbors(before)
            self._forget_pod(key, before)
        is_taken = self._take_bypassed(key, pod)
        after = pod if pod is not None and (is_ours(pod) or is_taken) else None
        touched |= self._apply_ungated(key, None if after is not None else pod)
        if after is not None:
            self._pods[key] = after
            self._file(key, self.group_of(after))
            self._made_by[after.metadata.controller.uid] += 1
            if not after.spec.node_name:
                self._unbound.add(key)
            for claim in claim_keys(after).values():
                self._users.setdefault(claim, set()).add(key)
            self.volumes.note_pod(key, after)
            touched |= self._list_neighbors(after)
        self._note_pod_group(key, after or self.strays.pod(key))
        return frozenset(touched)

    def apply_claim(
        self, key: str, claim: ResourceClaim | None, uid: str = ""
    ) -> frozenset[GroupKey]:
        """Take a claim in (None: it is gone); returns the groups concerned.

        They are those that use it or any other claim of the same device.
        """
        before = self._claims.get(key)
        if not self._is_news(before, claim, uid):
            return frozenset()
        self.reservation_flips.apply(key, before, claim)
        self.offered.note_claim(key, before, claim)
        self.failures.note_claim(key, claim)
        concerned = {key}
        for device in exclusive_devices_of(before):
            holders = self._holders[device]
            holders.discard(key)
            concerned |= holders
            if not holders:
                del self._holders[device]
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim
        for device in exclusive_devices_of(claim):
            holders = self._holders.setdefault(device, set())
            holders.add(key)
            concerned |= holders
        touched = self.groups_using(concerned)
        if has_immediate_label(before):
            touched |= {group_of_claim(key)}
        touched |= self.strays.groups_of(self.ungated_users.of(key))
        if self._bypassed is not None:
            users = {*self._users.get(key, ()), *self.ungated_users.of(key)}
            for pod_key, pod in self._bypassed.of(users):
                touched |= self.apply_pod(pod_key, pod)
        return touched

    def groups_using(self, claims: Iterable[str]) -> frozenset[GroupKey]:
        """Name the groups of our pods that use any of these claims.

        An immediate claim is a group itself.
        """
        keys = tuple(claims)
        users = (pod for key in keys for pod in self.users(key))
        return frozenset((*map(self.group_of, users), *self._immediate_groups(keys)))

    def _immediate_groups(self, claims: Iterable[str]) -> Iterator[GroupKey]:
        for key in claims:
            if has_immediate_label(self._claims.get(key)):
                yield group_of_claim(key)

    def apply_gang(
        self, key: str, gang: Gang | None, uid: str = ""
    ) -> frozenset[GroupKey]:
        """Take a Gang object in (None: it is gone); returns the groups concerned."""
        before = self._gangs.get(key)
        if not self._is_news(before, gang, uid):
            return frozenset()
        if gang is None:
            self._gangs.pop(key, None)
        else:
            self._gangs[key] = gang
        either = gang or before
        return frozenset() if either is None else frozenset({group_of_gang(either)})

    def apply_owner(
        self, key: OwnerKey, owner: GangOwner | None
    ) -> frozenset[GroupKey]:
        """Take in an object that says a gang's size; returns the groups concerned."""
        before = self._list_tops(key)
        if not self.owners.apply_owner(key, owner):
            return frozenset()
        maker = key if owner is None else owner.controller
        touched = self._regroup(self.owners.trees.list_pod_groups(key))
        names = (
            GroupKey(key.namespace, either.name, api=api)
            for either in (key, maker)
            for api in APIS_BY_OWNER.get(either.kind, ())
        )
        touched |= {*before, *self._list_tops(key), *names}
        return frozenset(group for group in touched if group in self._groups)

    def _list_tops(self, key: OwnerKey) -> set[GroupKey]:
        """Name the groups of all pods that are under a PodGroup or a group of such."""
        return {
            self._group_by_pod[pod]
            for group in self.owners.trees.list_pod_groups(key)
            for pod in self._by_pod_group.get(group, ())
            if pod in self._group_by_pod
        }

    def _note_pod_group(self, key: str, pod: Pod | None) -> None:
        """Note the PodGroup of a pod of ours or a stray (None: it is neither)."""
        before = self._pod_groups.pop(key, None)
        if before is not None:
            self._by_pod_group[before].discard(key)
            if not self._by_pod_group[before]:
                del self._by_pod_group[before]
        owner = None if pod is None else pod_group_of(pod)
        if owner is not None:
            self._pod_groups[key] = owner
            self._by_pod_group.setdefault(owner, set()).add(key)

    def _regroup(self, pod_groups: Iterable[OwnerKey]) -> set[GroupKey]:
        """File the pods of PodGroups anew, as these may be of another gang now."""
        touched: set[GroupKey] = set()
        for pod_group in pod_groups:
            for key in self._by_pod_group.get(pod_group, ()):
                pod = self._pods.get(key) or self.strays.pod(key)
                if pod is None:
                    continue
                group = self.group_of(pod)
                if key not in self._pods:
                    touched |= self.strays.apply(key, (group, pod))
                elif group != self._group_by_pod[key]:
                    touched |= {group, self._group_by_pod[key]}
                    self._unfile(key)
                    self._file(key, group)
        return touched

    def _file(self, key: str, group: GroupKey) -> None:
        self._groups.setdefault(group, set()).add(key)
        self._group_by_pod[key] = group

    def _unfile(self, key: str) -> None:
        group = self._group_by_pod.pop(key)
        members = self._groups[group]
        members.discard(key)
        if not members:
            del self._groups[group]

    def _take_bypassed(self, key: str, pod: Pod | None) -> bool:
        """Return True if a pod was bound without us, and is ours to tell of."""
        if self._bypassed is None:
            return False
        keys = () if pod is None else claim_keys(pod).values()
        claims = (self._claims[each] for each in keys if each in self._claims)
        return self._bypassed.take(key, pod, claims)

    def _apply_ungated(self, key: str, pod: Pod | None) -> set[GroupKey]:
        """Take in a pod that is not ours; returns the groups that it concerns."""
        used = () if pod is None or is_done(pod) else claim_keys(pod).values()
        touched = set(self.groups_using(self.ungated_users.apply(key, used)))
        is_stray = pod is not None and not is_over(pod) and self.strays.is_one(pod)
        stray = (self.group_of(pod), pod) if pod is not None and is_stray else None
        touched |= self.strays.apply(key, stray)
        membership = None if pod is None else self._read_membership(pod)
        if membership is not None and membership[0].api is None:
            membership = None
        concerned = self.owners.apply_ungated(key, pod, membership)
        group = None if concerned is None else _group_of(concerned)
        return touched | {group} if group in self._groups else touched

    def apply_node(self, name: str, node: KnownNode | None) -> frozenset[GroupKey]:
        """Take in how a node is (None: it is gone); returns the groups concerned.

        They are those whose pods are on no node yet: one may be pinned to this.
        """
        if not self.nodes.apply(name, node):
            return frozenset()
        return self.waiting_groups(self._unbound)

    def waiting_groups(self, pods: Iterable[str]) -> frozenset[GroupKey]:
        """Name the groups of those of our pods that are on no node yet."""
        return frozenset(
            self.group_of(self._pods[key]) for key in pods if key in self._unbound
        )

    def _note_end(self, before: Pod | None, pod: Pod | None) -> None:
        """Remember how a pod ended that had passed our gate: it is over, or gone."""
        if before is not None and (pod is None or _is_another(before, pod)):
            self._remember_end(before)
        if pod is not None and is_over(pod):
            self._remember_end(pod)

    def _note_finished(self, key: str, pod: Pod | None) -> set[GroupKey]:
        """Note whether a pod has ended; returns the claims concerned, as groups."""
        ended = pod if pod is not None and has_finished(pod) else None
        claims = () if ended is None else claim_keys(ended).values()
        changed = self.finished_users.apply(key, ended, claims)
        return set(self._immediate_groups(changed))

    def _remember_end(self, pod: Pod) -> None:
        if is_gated(pod) or GANG_UID not in pod.metadata.annotations:
            return
        found = self.membership(pod)
        has_ended = pod.status.phase in ENDED
        state = self.nodes.state(pod.spec.node_name or "")
        self.ended.note(_group_of(found), found, pod, has_ended=has_ended, state=state)

    def _list_neighbors(self, pod: Pod) -> set[GroupKey]:
        """Name the groups of a pod and of those that share claims with it."""
        keys = claim_keys(pod).values()
        users = (user for key in keys for user in self.users(key))
        return {self.group_of(pod), *map(self.group_of, users)}

    def _forget_pod(self, key: str, pod: Pod) -> None:
        del self._pods[key]
        self._unbound.discard(key)
        maker = pod.metadata.controller.uid
        self._made_by[maker] -= 1
        if not self._made_by[maker]:
            del self._made_by[maker]
        self._unfile(key)
        for claim in claim_keys(pod).values():
            users = self._users[claim]
            users.discard(key)
            if not users:
                del self._users[claim]
        self.volumes.forget_pod(key, pod)

    def _is_news(self, before: _Object | None, after: _Object | None, uid: str) -> bool:
        """True if nothing newer is known; remembers what is gone.

        An object may be read by name before the watch tells that its predecessor is
        gone: that is no news of the new one.
        """
        if after is not None and after.metadata.uid in self._gone:
            return False
        if before is None:
            return True
        if after is None and uid not in ("", before.metadata.uid):
            return False
        if (
            after is not None
            and after.metadata.version_number < before.metadata.version_number
        ):
            return False
        if after is None or _is_another(before, after):
            self._gone[before.metadata.uid] = None
            if len(self._gone) > _GONE:
                self._gone.popitem(last=False)
        return True


def _is_another(before: _Object, after: _Object) -> bool:
    return before.metadata.uid != after.metadata.uid


def is_ours(pod: Pod) -> bool:
    """True if a pod waits for us, or waited until we opened its gate."""
    return is_gated(pod) or GANG_UID in pod.metadata.annotations


def is_bypassed(pod: Pod) -> bool:
    """True if a pod, one of ours, was bound without us."""
    return not is_gated(pod) and GANG_UID not in pod.metadata.annotations


def is_gated(pod: Pod) -> bool:
    """True if our gate holds the pod back."""
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates)


def is_over(pod: Pod) -> bool:
    """True if the pod will not run any more."""
    return pod.status.phase in ENDED or pod.metadata.deletion_timestamp is not None


def has_finished(pod: Pod) -> bool:
    """True if the pod has ended on a node, and nobody deletes it."""
    has_ended = pod.status.phase in ENDED and bool(pod.spec.node_name)
    return has_ended and pod.metadata.deletion_timestamp is None


def is_done(pod: Pod) -> bool:
    """True if kube-controller-manager considers the pod's devices as no longer used.

    A pod that is being deleted runs for its grace period, unless it is on no node.
    """
    never_runs = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return pod.status.phase in ENDED or never_runs


def uids_of(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the uids of pods."""
    return frozenset(pod.metadata.uid for pod in pods)


def _group_of(found: Membership) -> GroupKey:
    return GroupKey(
        found.namespace, found.group, lone=found.is_lone, api=found.api or ""
    )


def group_of_gang(gang: Gang) -> GroupKey:
    """Return the pods that belong to a Gang object."""
    return GroupKey(gang.metadata.namespace, gang.metadata.name)


def group_of_claim(key: str) -> GroupKey:
    """Return the group that an immediate claim is, by its `namespace/name`."""
    namespace, _, name = key.partition("/")
    return GroupKey(namespace, name, api=OF_CLAIM)


def claim_keys(pod: Pod) -> dict[str, str]:
    """Name the ResourceClaims of a pod that are known to exist, by claim of the pod.

    Only the pod's status has the name of a generated claim.
    """
    generated = {
        status.name: status.resource_claim_name or ""
        for status in pod.status.resource_claim_statuses
    }
    keys = {}
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name or generated.get(claim.name, "")
        if name:
            keys[claim.name] = f"{pod.metadata.namespace}/{name}"
    return keys


def claims_of(pods: Iterable[Pod]) -> list[str]:
    """Name the ResourceClaims of pods that are known to exist."""
    return [key for pod in pods for key in claim_keys(pod).values()]
