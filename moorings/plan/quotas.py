"""ResourceQuotas of a plan: gangs whose pods or claims the API server would not create.

What a cluster has is used already; what gangs need to be created is added in the order
in which they are decided. Each pod and each claim is admitted for itself, so a gang
that is refused for one claim has used what its other claims need.

Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.counts import counted, listed
from contracts.features import Features
from contracts.ids import object_key
from contracts.messages import Place, SubmitGang
from contracts.quantity import NANO
from contracts.workload import ResourceQuota
from moorings.plan.lone_claims import is_of_claims
from moorings.plan.objects import PlanObject, unite_objects
from moorings.plan.pods import DEFAULT_NAMESPACE
from moorings.plan.quota_usage import (
    ALL_PODS,
    PODS,
    ClaimUsage,
    Usage,
    count_all_stored,
    count_extended,
    count_limited,
    is_counted,
    is_stored,
    without_pods_own,
)
from moorings.plan.work import PlanWork
from solver.problem.gangs import GangPart, MemberPart


class _Limit(Struct, kw_only=True):
    """One entry of a quota."""

    quota: str
    """Its `namespace/name`."""
    name: str
    hard: int
    used: int
    """By what the cluster has."""
    ahead: int = 0
    """By what gangs need that were decided before."""

    def refuses(self, asked: Usage) -> bool:
        """True if so much more is too much."""
        count = asked[self.name]
        return count > 0 and self.used + self.ahead + count > self.hard


class _PodNeeds(Struct, frozen=True):
    """What is to be created for one pod."""

    pod: Usage
    claims: list[Usage]

    @property
    def total(self) -> Usage:
        """All of it."""
        return sum(self.claims, self.pod)


class PlannedQuotas:
    """The quotas of an input, and what the gangs of its plan use of them."""

    def __init__(self, entries: Iterable[PlanObject], features: Features) -> None:
        values = [entry.decoded.value for entry in _list_if_limited(entries)]
        quotas = [value for value in values if isinstance(value, ResourceQuota)]
        self._claims = ClaimUsage(values, features)
        stored = count_all_stored(values, self._claims)
        self._limits: dict[str, list[_Limit]] = {}
        self._created: set[str] = set()
        """Claims by `namespace/name` that were counted, since several pods use them."""
        self.notes = tuple(_list_notes(quotas))
        for quota in quotas:
            if not _has_scopes(quota):
                namespace = quota.metadata.namespace or DEFAULT_NAMESPACE
                used = stored.get(namespace, Usage())
                limits = self._limits.setdefault(namespace, [])
                limits += _list_limits(namespace, quota, used)

    def refuse(self, gangs: Iterable[GangPart], work: PlanWork) -> tuple[GangPart, ...]:
        """Refuse, for now, the gangs that need more than is left; in their order.

        A gang that may do without some of its pods gets as many as there is quota for.
        """
        messages = {message.uid: message for message in work.gangs}
        return tuple(
            self._refuse_gang(gang, messages[gang.uid], work) for gang in gangs
        )

    def _refuse_gang(
        self, gang: GangPart, message: SubmitGang, work: PlanWork
    ) -> GangPart:
        limits = self._limits.get(gang.namespace or DEFAULT_NAMESPACE)
        if gang.refused or not limits:
            return gang
        needs = _GangNeeds(message, work, self._claims, self._created)
        core = [
            needs.list_pod(member, index)
            for member in gang.members
            for index in range(member.least)
        ]
        total = sum((pod.total for pod in core), Usage())
        reason = _find_reason(limits, total)
        for pod in core:
            _create(pod, limits)
        if reason is not None:
            return structs.replace(gang, refused=(reason,))
        return _grow_gang(gang, needs, limits) if gang.is_elastic else gang


def _grow_gang(gang: GangPart, needs: _GangNeeds, limits: list[_Limit]) -> GangPart:
    """Return a gang with as many of its extra pods as there is quota for.

    One that is in already, and may have none, is refused.
    """
    extra = 0
    for member in gang.members:
        for index in range(member.least, member.count):
            pod = needs.list_pod(member, index)
            reason = _find_reason(limits, pod.total)
            if reason is not None and gang.is_in and not extra:
                return structs.replace(gang, refused=(reason,))
            if reason is not None:
                return gang.with_extra(extra)
            _create(pod, limits)
            extra += 1
    return gang


class _GangNeeds:
    """What is to be created for the pods of a gang."""

    def __init__(
        self,
        message: SubmitGang,
        work: PlanWork,
        usage: ClaimUsage,
        created: set[str],
    ) -> None:
        self._message = message
        self._work = work
        self._usage = usage
        self._created = created
        self._namespace = message.gang.metadata.namespace
        self._has_pods = not is_of_claims(message.gang)
        self._members = {each.name: each for each in message.gang.spec.members}

    def list_pod(self, member: MemberPart, index: int) -> _PodNeeds:
        """List what the pod at an index of a member needs; claims of others once."""
        written = self._members[member.name]
        place = (
            self._message.places[member.name][index] if self._message.places else None
        )
        of_pod = count_extended(written.node.resources)
        new = self._count_new_pods(place)
        claims = []
        names = [claim.claim_name for claim in written.claims]
        if place is not None:
            names = list(place.claims)
        for number, claim in enumerate(member.claims):
            used = self._usage.count_part(claim)
            if number >= len(names):  # of extended resources; kube-scheduler makes it
                claims.append(without_pods_own(used, of_pod))
            elif self._is_created(names[number]):
                claims.append(used)
        pods = Usage({PODS: new, ALL_PODS: new})
        for name, count in of_pod.items():
            pods[name] = count * new
        return _PodNeeds(pods, claims)

    def _count_new_pods(self, place: Place | None) -> int:
        if place is None:
            return int(self._has_pods)
        found = (self._work.pod(self._namespace, ref) for ref in place.pods)
        return sum(pod is None for pod in found)

    def _is_created(self, name: str | None) -> bool:
        """True if a claim is still to be created, and no pod before named it."""
        if not name:
            return True  # each pod has its own
        key = object_key(self._namespace, name)
        claim = self._work.claim(key)
        if key in self._created or (claim is not None and is_stored(claim)):
            return False
        self._created.add(key)
        return True


def _list_if_limited(entries: Iterable[PlanObject]) -> list[PlanObject]:
    """List objects, each once; none where no quota limits them."""
    given = list(entries)
    if not any(isinstance(entry.decoded.value, ResourceQuota) for entry in given):
        return []
    return unite_objects(given)[0]


def _create(pod: _PodNeeds, limits: list[_Limit]) -> None:
    """Use what is left for a pod and then its claims; who is refused uses nothing."""
    for number, asked in enumerate([pod.pod, *pod.claims]):
        if not any(limit.refuses(asked) for limit in limits):
            for limit in limits:
                limit.ahead += asked[limit.name]
        elif number == 0:
            return


def _find_reason(limits: Iterable[_Limit], asked: Usage) -> Reason | None:
    """Return why the first limit refuses so much more; None: all allow it."""
    return next((_explain(each, asked) for each in limits if each.refuses(asked)), None)


def _explain(limit: _Limit, asked: Usage) -> Reason:
    count = asked[limit.name]
    ahead = f"gangs before it need {limit.ahead}, " if limit.ahead else ""
    return Reason(
        rule=Rule.RESOURCE_QUOTA,
        subject=f"ResourceQuota {limit.quota}",
        message=(
            f"{count_limited(limit.name, limit.hard)} allowed, "
            f"{counted(limit.used, 'is used', 'are used')}, "
            f"{ahead}{counted(count, 'more is needed', 'more are needed')}"
        ),
        facts={
            "asked": count,
            "used": limit.used,
            "ahead": limit.ahead,
            "limit": limit.hard,
        },
    )


def _list_limits(
    namespace: str, quota: ResourceQuota, stored: Usage
) -> Iterator[_Limit]:
    for name, amount in sorted(quota.spec.hard.items()):
        if is_counted(name):
            used = quota.status.used.get(name)
            yield _Limit(
                quota=f"{namespace}/{quota.metadata.name}",
                name=name,
                hard=amount.nano // NANO,
                used=stored[name] if used is None else -(-used.nano // NANO),
            )


def _has_scopes(quota: ResourceQuota) -> bool:
    return bool(quota.spec.scopes or quota.spec.scope_selector)


def _list_notes(quotas: Iterable[ResourceQuota]) -> Iterator[str]:
    """Note what of quotas is not decided."""
    for quota in quotas:
        namespace = quota.metadata.namespace or DEFAULT_NAMESPACE
        name = f"ResourceQuota {namespace}/{quota.metadata.name}"
        others = [each for each in sorted(quota.spec.hard) if not is_counted(each)]
        if _has_scopes(quota):
            yield f"{name} has scopes, which are not decided; it is not checked"
        elif others:
            verb = "is" if len(others) == 1 else "are"
            yield f"{name}: {listed(others)} {verb} not checked"
