"""Which waiting pods are submitted now as a gang, or why not yet.

Pods wait until the gang is whole: as many as the Gang object needs (`minCount`) or the
annotation `moorings.dev/gang-size` says, those that run or have succeeded counted with
them, so that a pod that replaces a failed one is decided alone, and one that lets an
elastic gang grow with those of its member. A Gang object and its pods must say the
same. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct
from msgspec.structs import replace

from contracts.allocation import Reason
from contracts.counts import counted
from contracts.gang import MAX_MEMBERS, AvoidedNode, Gang, GangSpec, Member
from contracts.ids import GangUID
from contracts.joined import JoinedGang
from contracts.messages import Place
from contracts.meta import ObjectMeta
from contracts.names import GANG, RECOVERY, WORKLOAD
from contracts.pods.declared_rules import DeclaredRules
from contracts.validate.gangs import RECOVERIES
from contracts.validate.names import check_dns_subdomain
from contracts.workload import Pod
from publisher.gang_names import shorten_gang_name
from publisher.gangs.compare import default_member_of, find_difference
from publisher.gangs.completeness import find_shortage
from publisher.gangs.elastic import let_shrink, split_by_member
from publisher.gangs.gang_rules import find_rules, keep_rules
from publisher.gangs.gang_size import ALONE, Company
from publisher.gangs.joined_pods import JoinedPods
from publisher.gangs.joining import JoiningPods, split_by_group
from publisher.gangs.members import ONLY, GroupedPods, Owns, group_pods, leave_out
from publisher.gangs.readiness import NotReady, find_contention, find_missing
from publisher.gangs.view import View, is_gated, is_over

_UUIDS = uuid5(NAMESPACE_URL, GANG)


class ReadyGang(Struct, frozen=True, kw_only=True):
    """What to submit."""

    gang: Gang
    places: dict[str, tuple[Place, ...]]
    avoided: tuple[AvoidedNode, ...] = ()
    """What its members leave out."""
    joins: JoinedGang | None = None
    """Pods that run, where rules are about their devices, too."""


class UnsubmittedPods(Struct, frozen=True, kw_only=True):
    """The pods of one gang that are not submitted yet, and what is known beside."""

    pods: tuple[Pod, ...]
    """Gated, not over."""
    company: Company = ALONE
    """Who makes the gang whole beside these."""
    before: tuple[Pod, ...] = ()
    """Others that join it too: they wait, and are asked for before these."""
    alone: bool = False
    """Whether they do not wait for others: their gates are open already."""
    gang: Gang | None = None
    """The Gang object."""
    generation: int = 1
    """Greater than that of every submission that asked for one of the pods before."""
    avoided: tuple[AvoidedNode, ...] = ()
    """Nodes that they should not go to."""


def split_joining(
    pods: Sequence[Pod],
    company: Company,
    gang: Gang | None,
    view: View,
    before: Sequence[Pod] = (),
) -> Iterator[UnsubmittedPods]:
    """Split pods into those that are asked for together beside those that run.

    `before`: others of the gang that wait, and were asked for before these.
    """
    rules: DeclaredRules | NotReady = DeclaredRules()
    if company.ran:
        owner = view.owners.owner_of(view.membership(pods[0]))
        rules = find_rules(pods, gang, owner, None)
    topology = rules.topology if isinstance(rules, DeclaredRules) else ()
    by_member = [list(pods)]
    if company.ran and gang is not None:
        by_member = split_by_member(gang, pods, view)
    parts = [
        part for some in by_member for part in split_by_group(some, topology, view)
    ]
    earlier = list(before)
    for part in parts:
        others = tuple(pod for other in parts if other is not part for pod in other)
        beside = replace(company, stand_ins=(*company.stand_ins, *others))
        yield UnsubmittedPods(
            pods=tuple(part),
            company=beside if others else company,
            before=tuple(earlier) if company.ran else (),
        )
        earlier += part


def assemble(
    unsubmitted: UnsubmittedPods, view: View, owns: Owns
) -> ReadyGang | NotReady:
    """Make these pods a gang to submit, or say why not yet."""
    pods, gang = unsubmitted.pods, unsubmitted.gang
    obstacle = _find_obstacle(unsubmitted, view, owns)
    if obstacle is not None:
        return obstacle
    grouped = group_pods(pods, view, owns, default_member_of(gang))
    if isinstance(grouped, Reason):
        return _wait_for(grouped)
    is_whole = not unsubmitted.company.count and not unsubmitted.alone
    owner = view.owners.owner_of(view.membership(pods[0]))
    rules = find_rules(pods, gang, owner, grouped.members if is_whole else None)
    if isinstance(rules, NotReady):
        return rules
    unequal = _find_unequal(unsubmitted, grouped, rules, view)
    if unequal:
        return NotReady(reason="ClaimsDiffer", message=unequal)
    recovery = _read_recovery(pods) if gang is None else gang.spec.recovery
    if isinstance(recovery, NotReady):
        return recovery
    running = _list_running(unsubmitted, view)
    joined = _join(unsubmitted, running, grouped, rules, view)
    if isinstance(joined, NotReady):
        return joined
    members, joins = joined
    if gang is not None:
        counts = None if is_whole else Counter(name for name, _ in running)
        members = let_shrink(gang, members, counts)
    rules = rules if is_whole else keep_rules(rules, members)
    if joins is not None:
        of_pods = (rule for rule in rules.constraints if rule.scope == "Pod")
        rules = replace(rules, constraints=tuple(of_pods))
    avoided = unsubmitted.avoided
    spec = replace(
        GangSpec(recovery=recovery) if gang is None else gang.spec,
        priority=_find_priority(unsubmitted, view),
        members=tuple(
            replace(member, node=leave_out(member.node, avoided)) for member in members
        ),
        constraints=rules.constraints,
        topology=rules.topology,
        hold=False,
    )
    made = Gang(metadata=_name_gang(unsubmitted, view), spec=spec)
    return ReadyGang(gang=made, places=grouped.places, avoided=avoided, joins=joins)


def _join(
    unsubmitted: UnsubmittedPods,
    running: Sequence[tuple[str, Pod]],
    grouped: GroupedPods,
    rules: DeclaredRules,
    view: View,
) -> tuple[tuple[Member, ...], JoinedGang | None] | NotReady:
    """Bind pods that join a gang to the rules that it keeps already."""
    if not running or not (rules.constraints or rules.topology):
        return grouped.members, None
    new, before = (
        _name(some, unsubmitted, view)
        for some in (unsubmitted.pods, unsubmitted.before)
    )
    joining = JoiningPods(new, running, view, before)
    first = joining.find_first(rules)
    if first is not None:
        pod, field = first
        return NotReady(
            reason="Queued",
            message=f"{field} also applies to pod {pod.metadata.name}, which was "
            "submitted before: waits until that pod may run",
        )
    joined = JoinedPods(new, running, grouped.members, rules, view)
    field = joined.find_field()
    if field:
        described = joined.describe(field)
        if isinstance(described, JoinedGang):
            return grouped.members, described
        return _wait_for(described)
    narrowed = joining.narrow(grouped.members, rules)
    return _wait_for(narrowed) if isinstance(narrowed, Reason) else (narrowed, None)


def _wait_for(reason: Reason) -> NotReady:
    return NotReady(reason=str(reason.rule), message=str(reason), cause=reason)


def _list_running(unsubmitted: UnsubmittedPods, view: View) -> list[tuple[str, Pod]]:
    """List the pods that these join and that are not over, each with its member."""
    pods, running = unsubmitted.pods, unsubmitted.company.ran
    if unsubmitted.alone:
        of_gang = view.pods(view.group_of(pods[0]))
        running = tuple(p for p in of_gang if p not in pods and not is_gated(p))
    return _name((pod for pod in running if not is_over(pod)), unsubmitted, view)


def _name(
    pods: Iterable[Pod], unsubmitted: UnsubmittedPods, view: View
) -> list[tuple[str, Pod]]:
    unnamed = default_member_of(unsubmitted.gang)
    return [(view.membership(pod).member or unnamed, pod) for pod in pods]


def _find_obstacle(
    unsubmitted: UnsubmittedPods, view: View, owns: Owns
) -> NotReady | None:
    """Say what keeps pods from being asked for yet; None: nothing."""
    pods, gang = unsubmitted.pods, unsubmitted.gang
    name = pods[0].metadata.labels.get(GANG)
    for violation in () if name is None else check_dns_subdomain(name, f"label {GANG}"):
        return NotReady(reason="GangNameInvalid", message=str(violation))
    invalid = view.membership(pods[0]).invalid
    if invalid:
        return NotReady(reason="GangNameInvalid", message=invalid)
    shortage = None if unsubmitted.alone else _find_shortage(unsubmitted, view)
    if shortage is not None:
        return shortage
    if len(pods) > MAX_MEMBERS:
        wait = counted(len(pods), "pod waits", "pods wait")
        message = f"{wait}; a gang has at most {MAX_MEMBERS}"
        return NotReady(reason="PodsTooMany", message=message)
    busy = find_missing(pods, view) or find_contention(pods, view, owns)
    if busy is not None or gang is None:
        return busy
    whole = not unsubmitted.company.count
    differs = find_difference(gang, pods, view, owns, whole=whole)
    return NotReady(reason="ClaimsDiffer", message=differs) if differs else None


def gang_uid(name: str, generation: int, pods: Iterable[str]) -> GangUID:
    """Derive the uid of a gang from its name (`namespace/name`) and its pods' uids.

    So two publishers submit the same. What is asked for again is another gang.
    """
    text = "/".join((name, str(generation), *sorted(pods)))
    return GangUID(str(uuid5(_UUIDS, text)))


def _name_gang(unsubmitted: UnsubmittedPods, view: View) -> ObjectMeta:
    membership = view.membership(unsubmitted.pods[0])
    api, group = membership.api, membership.group
    name = shorten_gang_name(group)
    return ObjectMeta(
        name=name,
        namespace=membership.namespace,
        labels={} if membership.is_lone else {GANG: name},
        annotations={WORKLOAD: f"{api}/{group}"} if api else {},
        generation=unsubmitted.generation,
    )


def _find_priority(unsubmitted: UnsubmittedPods, view: View) -> int:
    """Return what the Gang object says, else what made the pods, else they do."""
    gang = unsubmitted.gang
    if gang is None:
        owner = view.owners.owner_of(view.membership(unsubmitted.pods[0]))
        said = None if owner is None else owner.priority
        return _own_priority(unsubmitted) if said is None else said
    if _is_beyond(unsubmitted, gang):
        # Who made the Gang said who may outrank others: so many pods, and no more.
        return _own_priority(unsubmitted)
    return gang.spec.priority


def _is_beyond(unsubmitted: UnsubmittedPods, gang: Gang) -> bool:
    """Whether with these pods there are more than the Gang object asks for."""
    size = sum(member.count for member in gang.spec.members)
    return len(unsubmitted.pods) + unsubmitted.company.count > size


def _own_priority(unsubmitted: UnsubmittedPods) -> int:
    """Return what the pods' own priority classes say."""
    return max(pod.spec.priority or 0 for pod in unsubmitted.pods)


def _find_shortage(unsubmitted: UnsubmittedPods, view: View) -> NotReady | None:
    return find_shortage(
        unsubmitted.pods,
        view,
        gang=unsubmitted.gang,
        company=unsubmitted.company,
    )


def _read_recovery(pods: Sequence[Pod]) -> str | NotReady:
    """Read what becomes of pods that cannot run where they were placed."""
    values = {pod.metadata.annotations.get(RECOVERY, RECOVERIES[0]) for pod in pods}
    value = min(values)
    if len(values) == 1 and value in RECOVERIES:
        return value
    text = f"{value[:40]!r} is not one of {', '.join(RECOVERIES)}"
    if len(values) > 1:
        text = f"the pods disagree: {', '.join(sorted(values))[:100]}"
    return NotReady(reason="RecoveryInvalid", message=f"annotation {RECOVERY}: {text}")


def _find_unequal(
    unsubmitted: UnsubmittedPods, grouped: GroupedPods, rules: DeclaredRules, view: View
) -> str:
    """Name a member whose pods are not equal; empty: all are, or nobody minds.

    A Gang object says what each of its members is, and rules name members.
    """
    names: set[str] = set()
    if unsubmitted.gang is not None:
        names = {member.name for member in unsubmitted.gang.spec.members}
    elif rules.constraints or rules.topology:
        names = {view.membership(pod).member or ONLY for pod in unsubmitted.pods}
    for member in grouped.members:
        if names and member.name not in names:
            return f"pods of member {member.name} differ in what they request"
    return ""
