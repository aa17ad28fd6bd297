"""Finds out which pods of a gang are still missing.

Pods, a Gang object or a PodGroup may say how many there are; otherwise they are counted
role by role, as whatever made them says. Pods without our gate count if no pod of their
role has it: nobody decides for them, but they are there. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from contracts.allocation import Rule
from contracts.counts import counted
from contracts.gang import Gang, GangSpec
from contracts.names import GATE, TOPOLOGY
from contracts.pods.declared_sizes import UnknownSize, read_declared_size
from contracts.pods.gang_owners import GangOwner, OwnerRole
from contracts.pods.group_trees import GroupNode
from contracts.pods.membership import EXCLUSIVE, Membership, OwnerKey, WorkloadAPI
from contracts.workload import Pod
from publisher.gangs.context import PlanContext
from publisher.gangs.members import member_name_of
from publisher.gangs.running.growth import GROWING
from publisher.gangs.sizes import read_sizes
from publisher.gangs.submit.company import ALONE, Company, find_company
from publisher.gangs.submit.joined_groups import describe_shortage
from publisher.gangs.submit.readiness import NotReady
from publisher.gangs.submit.scale import find_mismatch
from publisher.gangs.view import is_gated, is_over, uids_of

GROUPS_INVALID = "GroupsInvalid"
_MISSING = "PodsMissing"
_ONE_BY_ONE = {
    "StatefulSet": "it creates a pod only once the previous one runs: set its "
    "podManagementPolicy to Parallel",
}
"""Why more pods do not come, by the kind of what makes them."""
_WORKERS_LATER = (
    "with startupPolicy LeaderReady workers are created only once the leader "
    "runs: set it to LeaderCreated"
)
_WORKERS_FOLLOW = (
    f"with the annotation {EXCLUSIVE} workers are created only once the leader is on "
    f"a node: say {TOPOLOGY} instead"
)


def find_shortage(
    pods: Sequence[Pod], context: PlanContext, company: Company = ALONE
) -> NotReady | None:
    """Return which pods of a gang are missing; None: all are there.

    `pods` wait, `company` is who counts beside them.
    """
    membership, gang = context.membership(pods[0]), context.gang
    mismatch = find_mismatch(pods, context)
    scaled = "" if mismatch is None else mismatch.message
    hint = "; ".join(filter(None, (scaled, _explain_delay(pods, context))))
    waits = held = ""
    if company.held:
        held = f"{counted(company.held, 'more waits', 'more wait')} already"
        waits = f"{held}, and none of the gang runs"
        hint = hint or waits
    there = len(pods) + company.count
    if gang is not None:
        short = _compare_count(there, gang.spec.least, hint)
        if short is None and not company.count:
            short = _find_short_member(pods, gang)
        return short or _begun_already(waits)
    if membership.is_lone:
        return None
    declared = read_declared_size(pods, membership)
    if isinstance(declared, UnknownSize):
        return NotReady(reason=declared.reason, message=declared.message)
    owner = context.owner_of(pods[0])
    there += sum(_count_ungated(pods, context).values())
    if declared is not None:
        hint = hint or _name_unmarked(pods, context).strip(" ()")
        return _compare_count(there, declared, hint) or _begun_already(waits)
    if owner is None:
        return _report_unknown(membership.owner)
    if owner.unseen is not None:
        return _report_unknown(owner.unseen)
    if owner.fault:
        message = f"{owner.fault}: kube-scheduler binds no pod of such groups"
        return NotReady(reason=GROUPS_INVALID, message=message)
    if owner.not_modelled:
        return NotReady(
            reason=str(Rule.NOT_MODELLED),
            message=f"{owner.not_modelled}: this version cannot decide it yet",
        )
    if not owner.is_gang:
        return None
    if owner.tree is not None:
        if company.held:
            message = f"{held}, and these come once the gang runs"
            return NotReady(reason=GROWING, message=message)
        return _compare_groups(owner.tree, pods, owner, context, company)
    if owner.minimum is not None:
        return _compare_count(there, owner.minimum, "") or _begun_already(waits)
    short = _compare_roles(pods, owner, context, company)
    is_elastic = any(role.least is not None for role in owner.roles)
    return short or (_begun_already(waits) if is_elastic else None)


def is_left_alone(
    pods: Sequence[Pod], context: PlanContext, enough: Mapping[str, int]
) -> bool:
    """True if these pods were submitted beside others of their gang, and none runs.

    `enough`: how many pods of each member are enough for their submission. Pods of an
    elastic gang were to grow it if that is fewer than the gang begins with.
    """
    same_run = list_run(context.pods, pods, context)
    if find_company(same_run, pods).ran:
        return False
    sizes = read_sizes(context, pods[0])
    if sizes is not None and sizes.is_elastic:
        owner = context.owner_of(pods[0])
        if _is_short(sizes, owner, context, enough):
            return True
    shortage = find_shortage(pods, context)
    return shortage is not None and shortage.reason == _MISSING


def _is_short(
    sizes: GangSpec,
    owner: GangOwner | None,
    context: PlanContext,
    enough: Mapping[str, int],
) -> bool:
    """True if an elastic gang does not begin with so many pods of each member."""
    members = sizes.members
    if owner is not None and owner.tree is not None:
        is_known = enough.keys() <= set(owner.tree.members)
        return is_known and not owner.tree.is_whole(enough)
    if context.gang is not None:
        return any(enough.get(each.name, 0) < each.least for each in members)
    if owner is not None and owner.minimum is not None:
        return sum(enough.values()) < owner.minimum
    # Roles of pods without our gate are not submitted; unequal pods are all needed.
    if enough.keys() - {each.name for each in members}:
        return False
    return any(enough.get(each.name, each.least) < each.least for each in members)


def list_run(
    pods: Iterable[Pod], run: Sequence[Pod], context: PlanContext
) -> list[Pod]:
    """Choose the pods of a group that are of the same run as others."""
    membership, owner = context.membership(run[0]), context.owner_of(run[0])
    return [
        pod
        for pod in pods
        if context.membership(pod).run == membership.run
        and not is_of_another(pod, owner, context)
    ]


def _compare_count(there: int, size: int, hint: str) -> NotReady | None:
    if there >= size:
        return None
    message = f"{there} of {_are_there(size)}"
    return NotReady(reason=_MISSING, message=f"{message} ({hint})" if hint else message)


def _are_there(number: int, role: str = "") -> str:
    pod = f" {role}" if role else ""
    return counted(number, f"pod{pod} is there", f"pods{pod} are there")


def _begun_already(waits: str) -> NotReady | None:
    """Let enough pods wait all the same while others of their gang wait.

    A gang begins once, not in two parts that keep its rules apart.
    """
    return NotReady(reason=_MISSING, message=waits) if waits else None


def _find_short_member(pods: Iterable[Pod], gang: Gang) -> NotReady | None:
    """Return the members of an elastic gang that have fewer pods than they need.

    Others may have more, so the sum does not tell. A pod of no member is reported
    elsewhere.
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


def _explain_delay(pods: Sequence[Pod], context: PlanContext) -> str:
    """Return why other pods do not come; empty: nothing is known."""
    controller = pods[0].metadata.controller
    membership = context.membership(pods[0])
    if membership.api == WorkloadAPI.LEADER_WORKER_SET:
        is_leader = membership.role == "leader" and len(pods) == 1
        follow = EXCLUSIVE in pods[0].metadata.annotations
        return (_WORKERS_FOLLOW if follow else _WORKERS_LATER) if is_leader else ""
    key = OwnerKey(controller.kind, pods[0].metadata.namespace, controller.name)
    owner = context.view.owners.find(key, controller.uid)
    if owner is None or owner.is_gang or controller.kind not in _ONE_BY_ONE:
        return ""
    return f"{controller.kind} {controller.name}: {_ONE_BY_ONE[controller.kind]}"


def _report_unknown(owner: OwnerKey | None) -> NotReady:
    what = "" if owner is None else f"{owner.kind} {owner.namespace}/{owner.name}"
    return NotReady(
        reason="GangSizeUnknown",
        message=f"the pods belong together by {what}, which the publisher cannot see: "
        "it is gone, or the publisher may not read it",
    )


# --- role by role ---------------------------------------------------------------------


def _compare_groups(
    tree: GroupNode,
    pods: Sequence[Pod],
    owner: GangOwner,
    context: PlanContext,
    company: Company,
) -> NotReady | None:
    """Return what PodGroups that are one gang lack."""
    there = count_roles(pods, owner, context, company)
    text = describe_shortage(tree, pods, company.ran, there, context)
    return NotReady(reason=_MISSING, message=text) if text else None


def _compare_roles(
    pods: Sequence[Pod], owner: GangOwner, context: PlanContext, company: Company
) -> NotReady | None:
    for pod in pods:
        if is_of_another(pod, owner, context):
            name = f"{owner.key.kind} {owner.key.name}"
            message = f"pod {pod.metadata.name} belongs to an earlier {name}"
            return NotReady(reason=_MISSING, message=message)
    present = count_roles(pods, owner, context, company)
    waiting = {_role_of(context.membership(pod), owner) for pod in pods}
    missing = [
        f"{present[role.name]} of {_are_there(least, role.name)}"
        for role in _needed_roles(owner, present, waiting)
        if present[role.name] < (least := _least_of(role))
    ]
    if not missing:
        return None
    unmarked = _name_unmarked(pods, context)
    return NotReady(reason=_MISSING, message=f"{', '.join(missing)}{unmarked}")


def _least_of(role: OwnerRole) -> int:
    """Count the pods of a role without which its gang does not begin."""
    return role.count if role.least is None else role.least


def count_roles(
    pods: Sequence[Pod], owner: GangOwner, context: PlanContext, company: Company
) -> Counter[str]:
    """Count the pods of a run that are there, by role."""
    run = context.membership(pods[0])
    counts: Counter[str] = Counter()
    waiting = uids_of((*pods, *company.stand_ins))
    for pod in context.pods:
        membership = context.membership(pod)
        if pod.metadata.uid in waiting or (
            not is_gated(pod)
            and membership.run == run.run
            and _is_there(pod, owner)
            and not is_of_another(pod, owner, context)
        ):
            counts[_role_of(membership, owner)] += 1
    for name, count in _count_ungated(pods, context).items():
        if not counts[name]:
            counts[name] = count
    return counts


def _count_ungated(pods: Sequence[Pod], context: PlanContext) -> Counter[str]:
    """Count pods of a run that are there without a gate, by role.

    Roles whose pods have a gate do not count: those without had theirs removed by hand.
    """
    run, owner = context.membership(pods[0]), context.owner_of(pods[0])
    gated = {context.membership(pod).role for pod in pods}
    counts: Counter[str] = Counter()
    for found, pod in context.view.owners.ungated(run):
        if found.run != run.run or found.role in gated:
            continue
        if _is_there(pod, owner) and not is_of_another(pod, owner, context):
            counts[_role_of(found, owner)] += 1
    return counts


def _name_unmarked(pods: Sequence[Pod], context: PlanContext) -> str:
    """Name pods that run and do not count, as nobody decided for them; empty: none."""
    run = context.membership(pods[0])
    gated = {context.membership(pod).role for pod in pods}
    names = [
        pod.metadata.name
        for found, pod in context.view.owners.ungated(run)
        if found.run == run.run and found.role in gated and not is_over(pod)
    ]
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    verb = "do" if more else "does"
    return f" (pod {min(names)}{more} had no gate {GATE} and {verb} not count)"


def _is_there(pod: Pod, owner: GangOwner | None) -> bool:
    """True if a pod runs, will run, or has succeeded.

    A pod that is being deleted will be replaced, even if it ends as a success.
    """
    if not is_over(pod):
        return True
    if pod.metadata.deletion_timestamp is not None:
        return False
    counts = owner is None or owner.counts_succeeded
    return counts and pod.status.phase == "Succeeded"


def is_of_another(pod: Pod, owner: GangOwner | None, context: PlanContext) -> bool:
    """True if a pod is of an object that had the owner's name before.

    Its owner tells, or the owner of that (a launcher is a Job's), or else its age: an
    owner that we do not see may be gone, and no object has pods older than itself.
    """
    controller = pod.metadata.controller
    if owner is None or not owner.roles or controller.uid == owner.uid:
        return False
    if controller.kind == owner.key.kind and controller.name == owner.key.name:
        return True
    key = OwnerKey(controller.kind, pod.metadata.namespace, controller.name)
    maker = context.view.owners.find(key, "")
    if maker is not None:
        above = maker.controller
        is_anothers = above.kind == owner.key.kind and above.uid != owner.uid
        if is_anothers or maker.uid != controller.uid:
            return True
    return (pod.metadata.creation_timestamp or owner.created) < owner.created


def _role_of(membership: Membership, owner: GangOwner | None) -> str:
    """Return the role of a pod; an owner's only role may have no name."""
    if owner is not None and len(owner.roles) == 1 and not owner.roles[0].name:
        return ""
    return membership.role


def _needed_roles(
    owner: GangOwner, present: Counter[str], waiting: Collection[str]
) -> Iterator[OwnerRole]:
    """Go through the roles whose pods must be there now.

    Roles whose pods are made later are left out, and so are roles that waiting pods
    come after: their owner has seen those pods run or end.
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
