"""Whatever an author writes where only we should, no plan raises, and no other changes.

Every label and annotation of ours, and those of others that say a gang, is drawn at
random on pods, claims and Gangs in every stage of a gang's life: as text, as numbers
of any size and script, as marks and uids of real gangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from contracts import names
from contracts.claim import ResourceClaim
from contracts.codec import encode, to_builtins
from contracts.features import Features
from contracts.gang import Gang
from contracts.kubernetes.decode import decode_object
from contracts.lifecycle import PUBLISHER, LifecycleMessage
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    ClaimsReleased,
    GangRejected,
    GatesOpened,
)
from contracts.meta import ObjectMeta
from contracts.pods import declared_sizes, membership
from contracts.workload import Pod
from moorings.lint.lint import lint
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.objects import PlanObject
from publisher.cluster.compact import compact
from publisher.cluster.observer import Observer
from publisher.gangs.context import NextSteps, PlanContext
from publisher.gangs.notes import list_notes
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecord
from publisher.gangs.reports import report_on_bus
from publisher.gangs.running.plan_repairs import plan_sweep
from publisher.gangs.status import make_gang_status
from publisher.gangs.view import GroupKey
from runtime.kube.kinds import RESOURCE_CLAIM
from solver.cel.evaluator import SelectorEvaluator
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated, gang_released
from tests.builders.plans import NOW, TRAIN, record_of, submission_of
from tests.builders.pods import real_claim, waiting_pod
from tests.builders.problems import PlainEvaluator

UID = builders.UID
OTHERS = "another-tenant"
THEIR_GROUP = GroupKey(OTHERS, "steady", lone=True)


def _list_keys(*modules: Any) -> Iterator[str]:
    """List what these modules name that may be a key of a label or annotation."""
    for module in modules:
        for value in vars(module).values():
            for text in value.values() if isinstance(value, dict) else (value,):
                if isinstance(text, str) and "/" in text and " " not in text:
                    yield text


KEYS = tuple(sorted({*_list_keys(names, membership, declared_sizes)}))
"""Taken from the constants, so that a new one is among them by itself."""
NUMBERS = ("9" * 5000, "0" * 5001, "-1", "1e5000", "٣٣", "²", "+7", "0x1", "1_0")
WORDS = (
    *NUMBERS,
    *(f"{UID}/{number}" for number in NUMBERS),
    *(f"worker/{number}" for number in NUMBERS),
    UID,
    f"{UID}/1 {UID}/2",
    "Recreate",
    "true",
    "",
    " ",
    "/",
    "../../etc",
    "\x1b[2J",
    "[bold]",
    "x" * 2000,
)


def words() -> SearchStrategy[str]:
    """Draw what somebody may have written."""
    return st.sampled_from(WORDS) | st.text(max_size=40)


def metadata() -> SearchStrategy[dict[str, str]]:
    """Draw some of the keys, with any words."""
    return st.dictionaries(st.sampled_from(KEYS), words(), max_size=6)


POD_A = waiting_pod("a", gang="train", size=2, templates=["gpus"])
POD_B = waiting_pod("b", gang="train", size=2, templates=["gpus"])
SUBMITTED = submission_of((POD_A, POD_B))
DECIDED = gang_allocated(pods=2)
_ADDRESS: dict[str, Any] = {
    "cluster": CLUSTER,
    "namespace": DECIDED.namespace,
    "uid": DECIDED.uid,
}
WRITTEN = AllocationWritten(**_ADDRESS, attempt=1)
OPENED = GatesOpened(**_ADDRESS, attempt=1, state=1, pods=2)
LIVES: tuple[tuple[LifecycleMessage, ...], ...] = (
    (),
    (SUBMITTED,),
    (SUBMITTED, DECIDED),
    (SUBMITTED, DECIDED, WRITTEN),
    (SUBMITTED, DECIDED, OPENED),
    (SUBMITTED, DECIDED, OPENED, CancelGang(**_ADDRESS)),
    (
        SUBMITTED,
        DECIDED,
        OPENED,
        CancelGang(**_ADDRESS, reason=f"{PUBLISHER}x: y", recreate=True),
    ),
    (SUBMITTED, CancelGang(**_ADDRESS), gang_released()),
    (
        SUBMITTED,
        CancelGang(**_ADDRESS),
        gang_released(),
        ClaimsReleased(**_ADDRESS),
    ),
    (SUBMITTED, GangRejected(**_ADDRESS, name="train", epoch=1)),
    (submission_of(count=2),),
    (submission_of(count=2), DECIDED),
    (submission_of(count=2), DECIDED, OPENED),
)


class Situation:
    """A cluster as an observer has it, filled from what the API server would say."""

    def __init__(self) -> None:
        self.observer = Observer(
            RESOURCE_CLAIM,
            self._ignore,
            tuple(membership.WorkloadAPI),
            now=lambda: NOW,
        )

    async def _ignore(self, _: object) -> None: ...

    def put(self, kind: str, value: Pod | ResourceClaim | Gang) -> None:
        """Apply an object as it is served."""
        meta = value.metadata
        raw = cast("dict[str, Any]", to_builtins(value))
        raw |= {"apiVersion": _VERSIONS[kind], "kind": kind}
        self.observer.apply(kind, f"{meta.namespace}/{meta.name}", raw, meta.uid)

    def plan(self, group: GroupKey, *records: PodGangRecord) -> NextSteps:
        """Plan for a group, and say all that is to be said of it."""
        view = self.observer.view
        plan = plan_gang(
            PlanContext(
                cluster=CLUSTER,
                group=group,
                view=view,
                records=records,
                owns=lambda _: True,
                now=NOW,
            )
        )
        gang = view.gang(group)
        list(list_notes(plan.reports, gang))
        encode(report_on_bus(plan.reports))
        if gang is not None:
            encode(make_gang_status(gang, plan.reports, view.pods(group), {}, NOW))
        for message in plan.messages:
            assert message.address[0] == CLUSTER
            encode(message)
        for patch in plan.patches:
            encode(patch.body)
        return plan


_VERSIONS = {
    "Pod": "v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "Gang": names.API_VERSION,
}


def _with(
    value: Any, labels: dict[str, str], annotations: dict[str, str], *, ours: bool
) -> Any:
    """Put words on an object, over its own or under them."""
    meta: ObjectMeta = value.metadata
    merged = (
        (meta.labels | labels, meta.annotations | annotations)
        if ours
        else (labels | meta.labels, annotations | meta.annotations)
    )
    return replace(
        value, metadata=replace(meta, labels=merged[0], annotations=merged[1])
    )


def _put_bystander(situation: Situation) -> NextSteps:
    """Let another tenant have a pod, and plan for it."""
    pod = waiting_pod("steady", templates=["gpus"])
    pod = replace(pod, metadata=replace(pod.metadata, namespace=OTHERS))
    situation.put("Pod", pod)
    situation.put("ResourceClaim", real_claim("steady-gpus", namespace=OTHERS))
    return situation.plan(THEIR_GROUP)


UNDISTURBED = _put_bystander(Situation())


@st.composite
def written(draw: st.DrawFn) -> tuple[list[Pod], list[ResourceClaim], list[Gang]]:
    """Draw a gang's objects with words on each of them."""
    held = draw(st.booleans())
    pods, claims = [], []
    for number, name in enumerate("ab"):
        opened = draw(st.sampled_from(["", UID, "9" * 5000]))
        node = draw(st.sampled_from(["", builders.NODE]))
        phase = draw(st.sampled_from(["Pending", "Succeeded"]))
        pod = waiting_pod(
            name,
            gang="train",
            size=2,
            templates=["gpus"],
            opened_by=opened,
            node=node if opened else "",
            phase=phase if opened else "Pending",
            deleting=draw(st.booleans()) and bool(opened),
        )
        over = draw(st.booleans())
        pods.append(_with(pod, draw(metadata()), draw(metadata()), ours=over))
        device = builders.allocation(builders.result(f"gpu-{number}"))
        claim = real_claim(
            f"{name}-gpus",
            allocated=device if held else None,
            reserved=[name] if held else [],
        )
        claims.append(_with(claim, draw(metadata()), draw(metadata()), ours=True))
    member = builders.member(builders.member_claim(), count=2)
    gang = replace(
        builders.gang(member), spec=replace(builders.gang(member).spec, hold=True)
    )
    gangs = [_with(gang, draw(metadata()), draw(metadata()), ours=True)]
    return pods, claims, gangs if draw(st.booleans()) else []


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(written())
def test_no_word_of_an_author_ends_a_plan(
    objects: tuple[list[Pod], list[ResourceClaim], list[Gang]],
) -> None:
    """In no stage of a gang's life; and the plan for another tenant stays the same."""
    pods, claims, gangs = objects
    situation = Situation()
    for kind, values in (("ResourceClaim", claims), ("Pod", pods), ("Gang", gangs)):
        for value in cast("Iterable[Any]", values):
            situation.put(kind, value)
    assert _put_bystander(situation) == UNDISTURBED
    groups = {*situation.observer.view.groups(), TRAIN}
    for life in LIVES:
        records = (record_of(*life),) if life else ()
        for group in sorted(groups - {THEIR_GROUP}):
            situation.plan(group, *records)
    list(plan_sweep(situation.observer.view))
    assert situation.plan(THEIR_GROUP) == UNDISTURBED


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(written())
def test_what_the_bus_carries_of_them_is_read_or_refused(
    objects: tuple[list[Pod], list[ResourceClaim], list[Gang]],
) -> None:
    """Nobody behind the bus meets more of an author's words than he must."""
    for kind, values in zip(("Pod", "ResourceClaim"), objects[:2], strict=True):
        for value in cast("Iterable[Any]", values):
            raw = cast("dict[str, Any]", to_builtins(value))
            raw |= {"apiVersion": _VERSIONS[kind], "kind": kind}
            kept = compact(raw)
            assert kept is None or decode_object(kept).kind == kind


@pytest.mark.parametrize("key", KEYS)
def test_every_key_alone_ends_no_plan(key: str) -> None:
    """As label and as annotation, with each of the words that are known to be bad."""
    for word in WORDS:
        situation = Situation()
        for name in "ab":
            situation.put(
                "ResourceClaim",
                _with(real_claim(f"{name}-gpus"), {}, {key: word}, ours=True),
            )
            pod = waiting_pod(name, gang="train", size=2, templates=["gpus"])
            situation.put("Pod", _with(pod, {}, {key: word}, ours=True))
        for life in LIVES:
            records = (record_of(*life),) if life else ()
            for group in (*situation.observer.view.groups(), TRAIN):
                situation.plan(group, *records)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(written())
def test_a_plan_on_a_desk_and_lint_answer_too(
    objects: tuple[list[Pod], list[ResourceClaim], list[Gang]],
) -> None:
    """Whoever is sent a file of another asks them first."""
    entries = []
    world = (
        builders.device_class(),
        builders.resource_slice(*builders.devices(2)),
        *objects[0],
        *objects[1],
        *objects[2],
    )
    for value in world:
        kind = type(value).__name__
        raw = cast("dict[str, Any]", to_builtins(value))
        raw |= {"apiVersion": _VERSIONS.get(kind, "resource.k8s.io/v1"), "kind": kind}
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    evaluator = cast("SelectorEvaluator", PlainEvaluator())
    Planner(evaluator).plan(entries, PlanOptions())
    lint(entries, Features(), evaluator)
