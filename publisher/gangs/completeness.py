"""Whether the pods of a gang are all there.

By number where pods, a Gang object or a PodGroup say one; role by role where what made
the pods says how many of each it has at one time. Pods without our gate count where no
pod of their role has it: nobody decides for them, but they are there. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from contracts.allocation import Rule
from contracts.counts import counted
from contracts.gang import Gang
from contracts.pods.declared_sizes import UnknownSize, read_declared_size
from contracts.pods.gang_owners import GangOwner, OwnerRole
from contracts.pods.members import group_connected
from contracts.pods.membership import (
    Membership,
    OwnerKey,
    WorkloadAPI,
)
from contracts.workload import Pod
from publisher.gangs.compare import member_name_of
from publisher.gangs.gang_size import ALONE, Company, find_company
from publisher.gangs.readiness import NotReady
from publisher.gangs.view import View, claim_keys, is_gated, is_over, uids_of

_MISSING = "PodsMissing"
_TOGETHER = ""
"""No claim's key."""
_ONE_BY_ONE = {
    "StatefulSet": "it creates a pod only once the previous one runs: set its "
    "podManagementPolicy to Parallel",
}
"""Why more pods do not come, by the kind of what makes them."""
_WORKERS_LATER = (
    "with startupPolicy LeaderReady workers are created only once the leader "
    "runs: set it to LeaderCreated"
)


def find_shortage(
    pods: Sequence[Pod],
    view: View,
    *,
    gang: Gang | None,
    company: Company = ALONE,
) -> NotReady | None:
    """Say which pods of a gang are not there; None: all are.

    `pods` wait, `company` is who counts beside them.
    """
    membership = view.membership(pods[0])
    hint = _hint(pods, view)
    waits = ""
    if company.held:
        held = counted(company.held, "more waits", "more wait")
        waits = f"{held} already, and none of the gang runs"
        hint = hint or waits
    there = len(pods) + company.count
    if gang is not None:
        short = _compare(there, gang.spec.least, hint)
        if short is None and not company.count:
            short = _find_short_member(pods, gang)
        return short or _begun_already(waits)
    if membership.is_lone:
        return None
    declared = read_declared_size(pods, membership)
    if isinstance(declared, UnknownSize):
        return NotReady(reason=declared.reason, message=declared.message)
    owner = view.owners.owner_of(membership)
    there += sum(_count_ungated(pods, membership, view, owner).values())
    if declared is not None:
        return _compare(there, declared, hint) or _begun_already(waits)
    if owner is None:
        return _report_unknown(membership)
    if owner.not_modelled:
        return NotReady(
            reason=str(Rule.NOT_MODELLED),
            message=f"{owner.key.kind} {owner.key.name}: {owner.not_modelled}: this "
            "version cannot decide it yet",
        )
    if not owner.is_gang:
        return None
    if owner.minimum is not None:
        return _compare(there, owner.minimum, "") or _begun_already(waits)
    return _compare_roles(pods, owner, view, company)


def is_left_alone(
    pods: Sequence[Pod], view: View, gang: Gang | None, enough: Mapping[str, int]
) -> bool:
    """Whether these pods were to join others of their gang, and none of them runs.

    `enough`: by member, the pods with which their submission is content. Pods of an
    elastic gang were to join where a member has fewer than the gang begins with.
    """
    same_run = list_run(view.pods(view.group_of(pods[0])), pods, view)
    if find_company(same_run, pods).ran:
        return False
    if gang is not None and gang.spec.is_elastic:
        return any(
            enough.get(member.name, 0) < member.least for member in gang.spec.members
        )
    shortage = find_shortage(pods, view, gang=gang)
    return shortage is not None and shortage.reason == _MISSING


def list_run(pods: Iterable[Pod], run: Sequence[Pod], view: View) -> list[Pod]:
    """Choose the pods of a group that are of the same run as others."""
    membership = view.membership(run[0])
    owner = view.owners.owner_of(membership)
    return [
        pod
        for pod in pods
        if view.membership(pod).run == membership.run
        and not _is_of_another(pod, owner, view)
    ]


def split_by_run(pods: Sequence[Pod], view: View) -> Iterator[list[Pod]]:
    """Split waiting pods of a group into those that can be one gang.

    Pods of two runs cannot, nor can pods that come one after the other, nor any with
    those of an object that had the owner's name before.
    """
    runs: dict[str, list[Pod]] = {}
    for pod in pods:
        membership = view.membership(pod)
        owner = view.owners.owner_of(membership)
        is_alone = owner is not None and (
            not owner.is_gang or _is_of_another(pod, owner, view)
        )
        key = f"pod {pod.metadata.uid}" if is_alone else membership.run
        runs.setdefault(key, []).append(pod)
    yield from runs.values()


def split_replacements(
    run: Sequence[Pod], view: View, *, gang: Gang | None, company: Company
) -> list[list[Pod]]:
    """Split pods that wait beside `company` into those that are asked for at once.

    A gang that begins is one. Of one that runs each pod of a ReplicaSet comes by
    itself, if that makes the gang whole: a Deployment that rolls ends fewer pods than
    it makes, and goes on only when some of the new ones run. Pods that share a claim
    stay together.
    """
    if not company.ran:
        return [list(run)]

    def ties(pod: Pod) -> list[str]:
        is_single = pod.metadata.controller.kind == "ReplicaSet"
        return [*claim_keys(pod).values(), *(() if is_single else (_TOGETHER,))]

    parts = group_connected(run, ties)
    short = (find_shortage(part, view, gang=gang, company=company) for part in parts)
    return [list(run)] if any(short) else parts


def _compare(there: int, size: int, hint: str) -> NotReady | None:
    if there >= size:
        return None
    message = f"{there} of {_are_there(size)}"
    return NotReady(reason=_MISSING, message=f"{message} ({hint})" if hint else message)


def _are_there(number: int, role: str = "") -> str:
    pod = f" {role}" if role else ""
    return counted(number, f"pod{pod} is there", f"pods{pod} are there")


def _begun_already(waits: str) -> NotReady | None:
    """Let pods that would do by themselves wait for those of their gang that wait.

    It begins once, not in two parts whose rules are kept apart.
    """
    return NotReady(reason=_MISSING, message=waits) if waits else None


def _find_short_member(pods: Iterable[Pod], gang: Gang) -> NotReady | None:
    """Say of which member of an elastic gang fewer pods are there than it needs.

    Others may have more, so their sum does not tell. Where a pod is of no member that
    is what is wrong.
    """
    counts = Counter(member_name_of(pod, gang) for pod in pods)
    members = gang.spec.members
    if not gang.spec.is_elastic or counts.keys() - {each.name for each in members}:
        return None
    missing = [
        f"{counts[each.name]} of {_are_there(each.least, each.name)}"
        for each in members
        if counts[each.name] < each.least
    ]
    return NotReady(reason=_MISSING, message=", ".join(missing)) if missing else None


def _hint(pods: Sequence[Pod], view: View) -> str:
    """Say why other pods do not come; empty: nothing is known against it."""
    controller = pods[0].metadata.controller
    membership = view.membership(pods[0])
    if membership.api == WorkloadAPI.LEADER_WORKER_SET:
        is_leader = membership.role == "leader" and len(pods) == 1
        return _WORKERS_LATER if is_leader else ""
    key = OwnerKey(controller.kind, pods[0].metadata.namespace, controller.name)
    owner = view.owners.find(key, controller.uid)
    if owner is None or owner.is_gang or controller.kind not in _ONE_BY_ONE:
        return ""
    return f"{controller.kind} {controller.name}: {_ONE_BY_ONE[controller.kind]}"


def _report_unknown(membership: Membership) -> NotReady:
    owner = membership.owner
    what = "" if owner is None else f"{owner.kind} {owner.namespace}/{owner.name}"
    return NotReady(
        reason="GangSizeUnknown",
        message=f"the pods belong together by {what}, which the publisher cannot see: "
        "it is gone, or the publisher may not read it",
    )


# --- role by role ---------------------------------------------------------------------


def _compare_roles(
    pods: Sequence[Pod], owner: GangOwner, view: View, company: Company
) -> NotReady | None:
    for pod in pods:
        if _is_of_another(pod, owner, view):
            name = f"{owner.key.kind} {owner.key.name}"
            message = f"pod {pod.metadata.name} belongs to an earlier {name}"
            return NotReady(reason=_MISSING, message=message)
    present = _count_roles(pods, owner, view, company)
    missing = [
        f"{present[role.name]} of {_are_there(role.count, role.name)}"
        for role in _needed_roles(owner, present, _roles_of(pods, owner, view))
        if present[role.name] < role.count
    ]
    if not missing:
        return None
    return NotReady(reason=_MISSING, message=", ".join(missing))


def _count_roles(
    pods: Sequence[Pod], owner: GangOwner, view: View, company: Company
) -> Counter[str]:
    """Count the pods of a run that are there, by role."""
    run = view.membership(pods[0])
    gated: Counter[str] = Counter()
    waiting = uids_of((*pods, *company.stand_ins))
    for pod in view.pods(view.group_of(pods[0])):
        uid = pod.metadata.uid
        membership = view.membership(pod)
        if uid in waiting or (
            not is_gated(pod)
            and membership.run == run.run
            and _is_there(pod, owner)
            and not _is_of_another(pod, owner, view)
        ):
            gated[_role_of(membership, owner)] += 1
    for name, count in _count_ungated(pods, run, view, owner).items():
        if not gated[name]:
            gated[name] = count
    return gated


def _count_ungated(
    pods: Sequence[Pod],
    membership: Membership,
    view: View,
    owner: GangOwner | None = None,
) -> Counter[str]:
    """Count pods of a run that are there without a gate, by role.

    Not where pods of the role have it: their gate was taken off by hand.
    """
    gated = {view.membership(pod).role for pod in pods}
    counts: Counter[str] = Counter()
    for found, pod in view.owners.ungated(membership):
        if found.run != membership.run or found.role in gated:
            continue
        if _is_there(pod, owner) and not _is_of_another(pod, owner, view):
            counts[_role_of(found, owner)] += 1
    return counts


def _is_there(pod: Pod, owner: GangOwner | None) -> bool:
    """Whether a pod runs, will run, or has succeeded; none that is being deleted.

    That may end as a success as well, and will be replaced.
    """
    if not is_over(pod):
        return True
    if pod.metadata.deletion_timestamp is not None:
        return False
    counts = owner is None or owner.counts_succeeded
    return counts and pod.status.phase == "Succeeded"


def _is_of_another(pod: Pod, owner: GangOwner | None, view: View) -> bool:
    """Whether a pod is of an object that had the owner's name before.

    By what made it, or what made that (a launcher is a Job's), else by its age: what
    is not seen may be gone, and nobody has pods that are older.
    """
    controller = pod.metadata.controller
    if owner is None or not owner.roles or controller.uid == owner.uid:
        return False
    if controller.kind == owner.key.kind and controller.name == owner.key.name:
        return True
    key = OwnerKey(controller.kind, pod.metadata.namespace, controller.name)
    maker = view.owners.find(key, "")
    if maker is not None:
        above = maker.controller
        is_anothers = above.kind == owner.key.kind and above.uid != owner.uid
        if is_anothers or maker.uid != controller.uid:
            return True
    return (pod.metadata.creation_timestamp or owner.created) < owner.created


def _role_of(membership: Membership, owner: GangOwner | None) -> str:
    """Return the role of a pod: where there is only one without a name, that."""
    if owner is not None and len(owner.roles) == 1 and not owner.roles[0].name:
        return ""
    return membership.role


def _roles_of(pods: Iterable[Pod], owner: GangOwner, view: View) -> set[str]:
    return {_role_of(view.membership(pod), owner) for pod in pods}


def _needed_roles(
    owner: GangOwner, present: Counter[str], waiting: Collection[str]
) -> Iterator[OwnerRole]:
    """Go through the roles whose pods must be there now.

    Not those whose pods are made later, nor those that pods which wait came after:
    whoever made these has seen them run or end.
    """
    over: set[str] = set()
    todo = list(waiting)
    by_name = {role.name: role for role in owner.roles}
    while todo:
        role = by_name.get(todo.pop())
        for name in () if role is None else role.after:
            if name not in over:
                over.add(name)
                todo.append(name)
    for role in owner.roles:
        is_later = role.after and not present[role.name]
        if role.name not in over and not is_later:
            yield role
