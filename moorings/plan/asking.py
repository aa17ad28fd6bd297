"""Finds which gangs of a View are submitted, and which wait and why.

Nothing is decided here twice: the publisher's own plan is asked, as if it had just
come up and nothing had been submitted yet. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.gang import Gang
from contracts.ids import GangKey, GangUID
from contracts.messages import SubmitGang
from contracts.reports import WAITING
from contracts.workload import Pod
from moorings.plan.state import CLUSTER
from publisher.gangs.context import PlanContext, StatusReport
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.submit.plan_submission import DECIDED_ALONE
from publisher.gangs.view import GroupKey, View, claim_keys, is_gated, is_over

LOST = "PlacementLost"
SHARED = "ClaimShared"


class WaitReason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why pods are not asked for yet, as the status of their gang would say."""

    rule: str
    subject: str = ""
    field: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.message else self.rule


class WaitingGang(Struct, frozen=True, kw_only=True):
    """Pods of which nothing is decided now."""

    group: GroupKey
    pods: tuple[Pod, ...]
    reasons: tuple[Reason | WaitReason, ...]
    verdict: str = "waits"
    """`waits`, or `error` where waiting does not help."""

    @property
    def is_shared(self) -> bool:
        """True if it waits for a claim that another gang requests now."""
        return any(str(reason.rule) == SHARED for reason in self.reasons)


class Asked(Struct, kw_only=True):
    """Collects what is submitted and what waits."""

    gangs: list[SubmitGang] = []
    groups: dict[GangKey, GroupKey] = {}
    """The group of each gang."""
    waiting: list[WaitingGang] = []
    remarks: list[WaitingGang] = []
    """What authors of gangs that are submitted may not expect; notes name it, too."""
    notes: list[str] = []


def ask(view: View, groups: Iterable[GroupKey]) -> Asked:
    """Ask the publisher's plan of each group what it would submit now."""
    asked = Asked()
    for group in groups:
        gang = view.gang(group)
        if gang is not None and _is_before_pods(view, group, gang):
            _take_gang_object(asked, group, gang)
            continue
        context = PlanContext(
            cluster=CLUSTER,
            group=group,
            view=view,
            records=(),
            owns=lambda _: True,
            now="",
        )
        plan = plan_gang(context)
        for message in plan.messages:
            if isinstance(message, SubmitGang):
                _take_gang(asked, group, message)
        for report in plan.reports:
            _take_report(asked, group, report)
    return asked


def submit_before_pods(gang: Gang) -> SubmitGang:
    """Submit a gang as a platform does over the bus, before its pods.

    Raises:
        ValueError: it breaks a rule of gangs.
    """
    return SubmitGang(cluster=CLUSTER, uid=GangUID(gang.metadata.uid), gang=gang)


def _is_before_pods(view: View, group: GroupKey, gang: Gang) -> bool:
    """True if a Gang object is submitted before its pods.

    One that holds its devices is, and one that no cluster has yet: a what-if.
    """
    if view.pods(group):
        return False
    return gang.spec.hold or not gang.metadata.resource_version


def _take_gang(asked: Asked, group: GroupKey, message: SubmitGang) -> None:
    asked.gangs.append(message)
    asked.groups[message.key] = group


def _take_gang_object(asked: Asked, group: GroupKey, gang: Gang) -> None:
    try:
        _take_gang(asked, group, submit_before_pods(gang))
    except ValueError as error:
        reason = Reason(rule=Rule.INVALID, subject=group.name, message=str(error))
        asked.waiting.append(
            WaitingGang(group=group, pods=(), reasons=(reason,), verdict="error")
        )


def _take_report(asked: Asked, group: GroupKey, report: StatusReport) -> None:
    if not report.reason:
        return
    if report.reason == DECIDED_ALONE:
        return  # said once for all pods of their maker
    reason = report.cause or WaitReason(rule=report.reason, message=report.message)
    found = WaitingGang(
        group=group,
        pods=report.pods,
        reasons=(reason,),
        verdict="waits" if report.cause is None else "error",
    )
    if report.phase != WAITING and report.reason != LOST:
        names = ", ".join(pod.metadata.name for pod in report.pods[:3])
        asked.notes.append(f"{group} ({names}): {report.reason}: {report.message}")
        asked.remarks.append(found)
        return
    asked.waiting.append(found)


def name_unknown(waiting: WaitingGang, unknown: dict[str, Reason]) -> WaitingGang:
    """Name the missing object that pods refer to, if that is why they wait."""
    for pod in waiting.pods:
        reason = unknown.get(pod.metadata.uid)
        if reason is not None:
            return structs.replace(waiting, reasons=(reason,), verdict="error")
    return waiting


def find_bound_without(view: View, pods: Iterable[Pod]) -> Iterator[WaitingGang]:
    """Find bound pods without devices, to which nothing is allocated any longer."""
    for pod in pods:
        if not pod.spec.node_name or is_over(pod) or is_gated(pod):
            continue
        without = next(_list_unallocated(view, pod), None)
        if without is not None:
            message = (
                f"it is on node {pod.spec.node_name}, but {without} holds no "
                "devices: claims are allocated before a pod is bound; to choose "
                "a node, select it by its label"
            )
            reason = WaitReason(rule=LOST, message=message)
            group = view.group_of(pod)
            yield WaitingGang(group=group, pods=(pod,), reasons=(reason,))


def _list_unallocated(view: View, pod: Pod) -> Iterator[str]:
    """Go through the claims of a bound pod that are not allocated.

    One that runs has had its claims, whether the input has them or not.
    """
    keys = claim_keys(pod)
    for key in keys.values():
        claim = view.claim(key)
        if claim is None or claim.allocation is None:
            yield f"ResourceClaim {key}"
    for named in () if pod.status.phase == "Running" else pod.spec.resource_claims:
        template = named.resource_claim_template_name
        if named.name not in keys and template:
            yield f"claim {named.name} of ResourceClaimTemplate {template}"
