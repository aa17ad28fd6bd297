"""Pods that wait become a gang to submit, or are told why not yet.

First comes what keeps them from being submitted (pods or claims are missing, the Gang
object says something else), then what they ask for, then how that fits beside pods of
the gang that run already. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.counts import counted
from contracts.gang import MAX_MEMBERS, Gang, GangSpec, Member
from contracts.joined import JoinedGang
from contracts.kueue import queue_label
from contracts.messages import Place, SubmitGang
from contracts.meta import ObjectMeta
from contracts.names import GANG, WORKLOAD
from contracts.pods.declared_rules import DeclaredRules
from contracts.validate.names import check_dns_subdomain
from contracts.workload import Pod
from publisher.gang_names import gang_uid, shorten_gang_name
from publisher.gangs.context import PlanContext
from publisher.gangs.members import ONLY, default_member_of, group_pods
from publisher.gangs.node_affinity import leave_out
from publisher.gangs.running.growth import set_min_counts
from publisher.gangs.running.growth_rules import DeviceRules, NodeRules, keep_rules
from publisher.gangs.sizes import read_sizes
from publisher.gangs.submit.compare import find_difference
from publisher.gangs.submit.completeness import find_shortage
from publisher.gangs.submit.durations import find_duration
from publisher.gangs.submit.pod_groups import find_disagreement
from publisher.gangs.submit.readiness import NotReady, find_contention, find_missing
from publisher.gangs.submit.recovery import DeclaredRecovery, find_recovery
from publisher.gangs.submit.rules import find_rules
from publisher.gangs.submit.split import UnsubmittedGang
from publisher.gangs.view import is_over, uids_of


class _Demand(Struct, frozen=True, kw_only=True):
    """What pods ask for as a gang, or as a part of one."""

    members: tuple[Member, ...]
    places: dict[str, tuple[Place, ...]]
    rules: DeclaredRules
    recovery: DeclaredRecovery
    duration: str
    joins: JoinedGang | None = None
    """Pods that run, where rules are about their devices, too."""


def assemble(
    unsubmitted: UnsubmittedGang, context: PlanContext
) -> SubmitGang | NotReady:
    """Make pods that wait a gang to submit, or say why not yet."""
    demand = _find_obstacle(unsubmitted, context) or _read_demand(unsubmitted, context)
    if isinstance(demand, NotReady):
        return demand
    if unsubmitted.begins:
        return _make_submission(demand, unsubmitted, context, None)
    running = _list_running(unsubmitted, context)
    fitted = _fit_beside_running(demand, unsubmitted, running, context)
    if isinstance(fitted, NotReady):
        return fitted
    counts = Counter(member for member, _ in running)
    return _make_submission(fitted, unsubmitted, context, counts)


# --- what keeps pods from being asked for ---------------------------------------------


def _find_obstacle(
    unsubmitted: UnsubmittedGang, context: PlanContext
) -> NotReady | None:
    """Return what keeps pods from being submitted yet; None: nothing does."""
    pods, gang = unsubmitted.pods, context.gang
    name = pods[0].metadata.labels.get(GANG)
    for violation in () if name is None else check_dns_subdomain(name, f"label {GANG}"):
        return NotReady(reason="GangNameInvalid", message=str(violation))
    invalid = context.membership(pods[0]).invalid
    if invalid:
        return NotReady(reason="GangNameInvalid", message=invalid)
    disagreement = find_disagreement(pods, context)
    if disagreement is not None:
        return disagreement
    if not unsubmitted.is_displaced:
        shortage = find_shortage(pods, context, unsubmitted.company)
        if shortage is not None:
            return shortage
    if len(pods) > MAX_MEMBERS:
        wait = counted(len(pods), "pod waits", "pods wait")
        message = f"{wait}; a gang has at most {MAX_MEMBERS}"
        return NotReady(reason="PodsTooMany", message=message)
    busy = find_missing(pods, context.view) or find_contention(pods, context)
    if busy is not None or gang is None:
        return busy
    whole = not unsubmitted.company.count
    differs = find_difference(gang, pods, context, whole=whole)
    return NotReady(reason="ClaimsDiffer", message=differs) if differs else None


# --- what they ask for ----------------------------------------------------------------


def _read_demand(
    unsubmitted: UnsubmittedGang, context: PlanContext
) -> _Demand | NotReady:
    """Read what pods ask for, as if none of their gang ran."""
    pods, gang = unsubmitted.pods, context.gang
    grouped = group_pods(pods, context, default_member_of(gang))
    if isinstance(grouped, Reason):
        return _wait_for(grouped)
    members = grouped.members
    owner = context.owner_of(pods[0])
    rules = find_rules(pods, gang, owner, members if unsubmitted.begins else None)
    if isinstance(rules, NotReady):
        return rules
    unequal = _find_unequal(unsubmitted, members, rules, context)
    if unequal:
        message = f"pods of member {unequal} differ in what they request"
        return NotReady(reason="ClaimsDiffer", message=message)
    recovery = find_recovery(pods, gang)
    if isinstance(recovery, NotReady):
        return recovery
    duration = find_duration(pods, gang, owner)
    if isinstance(duration, NotReady):
        return duration
    return _Demand(
        members=members,
        places=grouped.places,
        rules=rules,
        recovery=recovery,
        duration=duration,
    )


def _find_unequal(
    unsubmitted: UnsubmittedGang,
    members: Sequence[Member],
    rules: DeclaredRules,
    context: PlanContext,
) -> str:
    """Name a member whose pods are not equal; empty: all are, or nobody minds.

    A Gang object says what each of its members is, and rules name members.
    """
    names: set[str] = set()
    if context.gang is not None:
        names = {member.name for member in context.gang.spec.members}
    elif rules.constraints or rules.topology:
        names = {context.membership(pod).member or ONLY for pod in unsubmitted.pods}
    strange = (member.name for member in members if names and member.name not in names)
    return next(strange, "")


# --- beside pods that run -------------------------------------------------------------


def _list_running(
    unsubmitted: UnsubmittedGang, context: PlanContext
) -> list[tuple[str, Pod]]:
    """List the pods beside which these are asked for, each with its member."""
    running = (pod for pod in unsubmitted.company.ran if not is_over(pod))
    if unsubmitted.is_displaced:
        running = (pod for pod in context.running if pod not in unsubmitted.pods)
    return _name_members(running, context)


def _name_members(pods: Iterable[Pod], context: PlanContext) -> list[tuple[str, Pod]]:
    unnamed = default_member_of(context.gang)
    return [(context.membership(pod).member or unnamed, pod) for pod in pods]


def _fit_beside_running(
    demand: _Demand,
    unsubmitted: UnsubmittedGang,
    running: Sequence[tuple[str, Pod]],
    context: PlanContext,
) -> _Demand | NotReady:
    """Bind new pods to the rules that the running ones keep."""
    rules, members = demand.rules, demand.members
    kept = keep_rules(rules, members)
    fitted = replace(demand, rules=kept)
    if not running or not (rules.constraints or rules.topology):
        return fitted
    new = _name_members(unsubmitted.pods, context)
    before = _name_members(unsubmitted.before, context)
    node_rules = NodeRules(new, running, context.view, before)
    earlier = node_rules.find_earlier_pod(rules)
    if earlier is not None:
        pod, field = earlier
        return NotReady(
            reason="Queued",
            message=f"{field} also applies to pod {pod.metadata.name}, which was "
            "submitted before: waits until that pod may run",
        )
    device_rules = DeviceRules(new, running, members, rules, context.view)
    field = device_rules.find_rule()
    if not field:
        narrowed = node_rules.narrow_members(members, rules)
        if isinstance(narrowed, Reason):
            return _wait_for(narrowed)
        return replace(fitted, members=narrowed)
    joins = device_rules.describe_running(field)
    if isinstance(joins, Reason):
        return _wait_for(joins)
    of_pods = tuple(rule for rule in kept.constraints if rule.scope == "Pod")
    return replace(fitted, rules=replace(kept, constraints=of_pods), joins=joins)


def _wait_for(reason: Reason) -> NotReady:
    return NotReady(reason=str(reason.rule), message=str(reason), cause=reason)


# --- what is submitted ----------------------------------------------------------------


def _make_submission(
    demand: _Demand,
    unsubmitted: UnsubmittedGang,
    context: PlanContext,
    running: Counter[str] | None,
) -> SubmitGang:
    """Submit what pods demand; `running`: pods by member beside these, if any run."""
    gang, members = context.gang, demand.members
    spec = GangSpec() if gang is None else gang.spec
    sizes = read_sizes(context, unsubmitted.pods[0])
    if sizes is not None:
        members = set_min_counts(sizes, members, running)
    spec = replace(
        spec,
        priority=_find_priority(unsubmitted, context),
        members=tuple(
            replace(member, node=leave_out(member.node, unsubmitted.avoided))
            for member in members
        ),
        constraints=demand.rules.constraints,
        topology=demand.rules.topology,
        recovery=demand.recovery.recovery,
        on_device_failure=demand.recovery.on_device_failure,
        max_recreations=demand.recovery.max_recreations,
        duration=demand.duration,
        hold=False,
    )
    uids = uids_of(unsubmitted.pods)
    return SubmitGang(
        cluster=context.cluster,
        uid=gang_uid(str(context.group), unsubmitted.generation, uids),
        gang=Gang(metadata=_name_gang(unsubmitted, context), spec=spec),
        submitted_at=context.now,
        places=demand.places,
        avoided=unsubmitted.avoided,
        joins=demand.joins,
        restores=unsubmitted.restores,
    )


def _name_gang(unsubmitted: UnsubmittedGang, context: PlanContext) -> ObjectMeta:
    membership = context.membership(unsubmitted.pods[0])
    api, group = membership.api, membership.group
    name = shorten_gang_name(group)
    labels = {} if membership.is_lone else {GANG: name}
    said = {} if context.gang is None else context.gang.metadata.labels
    return ObjectMeta(
        name=name,
        namespace=membership.namespace,
        labels={**labels, **queue_label(said)},
        annotations={WORKLOAD: f"{api}/{group}"} if api else {},
        generation=unsubmitted.generation,
    )


def _find_priority(unsubmitted: UnsubmittedGang, context: PlanContext) -> int:
    """Return the priority of the Gang object, else of the owner, else of the pods."""
    gang = context.gang
    own = max(pod.spec.priority or 0 for pod in unsubmitted.pods)
    if gang is None:
        owner = context.owner_of(unsubmitted.pods[0])
        said = None if owner is None else owner.priority
        return own if said is None else said
    # The Gang's author gave its priority to so many pods, and no more. Pods that are
    # gone have left their places.
    size = sum(member.count for member in gang.spec.members)
    others = unsubmitted.company.count - unsubmitted.company.gone
    is_beyond = len(unsubmitted.pods) + others > size
    return own if is_beyond else gang.spec.priority
