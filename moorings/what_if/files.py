"""What-if of files: planned as they are, and as they would be, or with gangs moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from contracts.claim import ResourceClaim
from contracts.gang import Gang
from contracts.ids import object_key
from contracts.workload import Pod, Workload
from moorings.deciding import Evaluate, Judged
from moorings.errors import BadInputError, UnknownNameError
from moorings.plan.cluster import make_cluster
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.objects import PlanObject, unite_objects
from moorings.plan.plan import Plan
from moorings.plan.pods import DEFAULT_NAMESPACE, key_of
from moorings.plan.state import CLUSTER
from moorings.what_if.answer import (
    Forecasts,
    GangFate,
    WhatIfAnswer,
    compare_fates,
    count_pods,
)
from moorings.what_if.changes import Changes, change_cluster
from moorings.what_if.moves import Aim, MovesPlan, plan_moves
from moorings.what_if.running import read_running
from publisher.gangs.view import claim_keys
from solver.problem.problem import Parameters
from solver.versions import VERSION


def plan_what_if(
    planner: Planner,
    objects: Sequence[PlanObject],
    added: Sequence[PlanObject],
    changes: Changes,
    options: PlanOptions,
) -> WhatIfAnswer:
    """Plan objects as they are, and with some more in a cluster that has changed.

    Raises:
        UnknownNameError: something that changes is not there.
        BadInputError: something cannot be decided.
    """
    left = without_gangs(objects, changes.free)
    before = planner.plan(objects, options)
    changed = structs.replace(
        options, change=lambda snapshot: change_cluster(snapshot, changes, CLUSTER)
    )
    after = planner.plan([*left, *added], changed)
    for answer in (before, after):
        if answer.error is not None:
            raise BadInputError("plan", answer.error)
    hashes = Forecasts(before=(before.problem_hash,), after=(after.problem_hash,))
    return compare_fates(_list_fates(before), _list_fates(after), hashes)


def plan_file_moves(
    objects: Iterable[PlanObject], aim: Aim, evaluate: Evaluate
) -> MovesPlan:
    """Plan moves of the gangs that run in files.

    Raises:
        UnknownNameError: no gang of that name waits.
    """
    parameters = Parameters(version=VERSION)
    return plan_moves(read_running(objects), parameters, Judged(evaluate), aim)


def without_gangs(
    objects: Sequence[PlanObject], names: Iterable[str]
) -> list[PlanObject]:
    """Leave out what is of some gangs: pods, their claims, and what makes them.

    Raises:
        UnknownNameError: there is no gang of that name, or there are several.
    """
    names = list(names)
    if not names:
        return list(objects)
    united = unite_objects(objects)[0]
    view = make_cluster(united).view
    pods = [e.decoded.value for e in united if isinstance(e.decoded.value, Pod)]
    by_gang = dict[str, list[Pod]]()
    for pod in pods:
        group = view.group_of(pod)
        full = object_key(group.namespace or DEFAULT_NAMESPACE, group.name)
        by_gang.setdefault(full, []).append(pod)
    gone, claims = set[str](), set[str]()
    for name in names:
        found = [full for full in by_gang if name in {full, full.partition("/")[2]}]
        if len(found) != 1:
            what = "single gang" if found else "gang"
            raise UnknownNameError(what, name, (found or sorted(by_gang))[:3])
        gone.add(found[0])
        for pod in by_gang[found[0]]:
            gone.add(key_of(pod.metadata))
            claims.update(claim_keys(pod).values())
    return [each for each in objects if not _is_of(each, gone, claims)]


def _is_of(entry: PlanObject, gone: set[str], claims: set[str]) -> bool:
    value = entry.decoded.value
    if isinstance(value, ResourceClaim):
        return key_of(value.metadata) in claims
    return isinstance(value, Pod | Gang | Workload) and key_of(value.metadata) in gone


def _list_fates(plan: Plan) -> dict[str, GangFate]:
    devices: dict[str, list[str]] = {}
    for claim in plan.claims:
        of_gang = devices.setdefault(f"{claim.namespace}/{claim.gang}", [])
        if claim.allocation is not None:
            results = claim.allocation.devices.results
            of_gang += [str(each.device_id) for each in results]
    fates: dict[str, GangFate] = {}
    for gang in plan.gangs:
        name = f"{gang.namespace}/{gang.name}"
        fates[name] = GangFate(
            verdict=gang.verdict,
            pods=count_pods(pod.node for pod in gang.members),
            devices=tuple(sorted(devices.get(name, ()))),
            reasons=tuple(map(str, gang.reasons)),
        )
    return fates
