"""Quotas of devices: who is tried, what is decided, and who is in a batch."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from contracts.allocation import Rule
from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import GangKey
from solver.allocate import allocate
from solver.judge.rules import judge
from solver.problem.assemble import resolve_gangs
from solver.problem.problem import QuotaPart
from solver.problem.quotas import (
    QuotaAdmission,
    find_quotas,
    is_held_up_by_others,
    refuse_over_quota,
)
from solver.queueing.gang_queue import GangQueue
from solver.queueing.rounds import BatchLimits
from solver.quotas import Quotas
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    DRIVER,
    devices,
    gang,
    member,
    member_claim,
    pool,
    request,
    sub_request,
)
from tests.builders.problems import problem_of, snapshot_of
from tests.oracles.brute import Brute, TooManyWaysError
from tests.oracles.brute_quotas import admitted
from tests.oracles.disagreement import disagreement

OTHER = "nic.example.com"
CLASSES = {
    "gpu.example.com": (f'device.driver == "{DRIVER}"',),
    "nic": (f'device.driver == "{OTHER}"',),
    "any": ("true",),
}
LIMITS = st.integers(0, 9)
SEEN: Counter[str] = Counter()


@st.composite
def asked(draw: st.DrawFn, name: str) -> object:
    """A request for a few devices of some driver, or one of two such."""
    fields: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {
            "device_class": st.sampled_from(list(CLASSES)),
            "count": st.integers(1, 2),
        }
    )
    if draw(st.booleans()):
        return request(name, **draw(fields), admin_access=draw(st.booleans()))
    if draw(st.integers(0, 5)) == 0:
        return request(name, mode="All")
    choices = [sub_request(n, **draw(fields)) for n in ("x", "y")]
    return request(name, first_available=choices)


@st.composite
def gangs(draw: st.DrawFn, number: int) -> Gang:
    """A gang of one namespace of two."""
    names = ["one", "two"][: draw(st.integers(1, 2))]
    claim = member_claim(*[draw(asked(name)) for name in names])  # type: ignore[arg-type]  # requests
    return gang(
        member(claim, count=draw(st.integers(1, 2))),
        name=f"g{number}",
        namespace=draw(st.sampled_from("ab")),
        uid=f"00000000-0000-4000-8000-{number:012}",
        priority=draw(st.sampled_from([0, 0, 5])),
    )


QUOTAS = st.lists(
    st.builds(
        QuotaPart,
        namespace=st.sampled_from("ab"),
        driver=st.sampled_from(["", DRIVER, OTHER]),
        limit=st.integers(0, 9),
        used=st.integers(0, 4),
    ),
    max_size=4,
    unique_by=lambda quota: (quota.namespace, quota.driver),
).map(tuple)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Two nodes with devices of two drivers, and gangs that want them."""
    nodes = {
        name: [
            pool(*devices(draw(st.integers(1, 3))), name=name),
            pool(*devices(2), name=f"{name}-nic", driver=OTHER),
        ]
        for name in ("n0", "n1")
    }
    wanted = [draw(gangs(number)) for number in range(draw(st.integers(1, 4)))]
    return snapshot_of(nodes, wanted, classes=CLASSES)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), QUOTAS)
def test_the_best_answer_is_that_of_the_gangs_that_quotas_let_be_tried(
    snapshot: Snapshot, quotas: tuple[QuotaPart, ...]
) -> None:
    """Who is tried, and the value, are the oracle's; the judge agrees."""
    free = problem_of(snapshot)
    problem = problem_of(snapshot, quotas=quotas)
    meant = admitted(free.gangs, quotas)
    tried = [g.uid for g in problem.gangs if not g.refused]
    assert tried == [g.uid for g in meant]
    try:
        brute = Brute(free.with_gangs(tuple(meant)))
        best = brute.value()
    except TooManyWaysError:
        reject()
    decision = allocate(problem)
    assert disagreement(decision.objective, brute.tiers(), best) == ""
    assert judge(problem, decision) == ()
    rules = {reason.rule for g in decision.gangs for reason in g.reasons}
    SEEN["refused" if Rule.DEVICE_QUOTA in rules else "let"] += 1


@given(worlds(), st.integers(1, 5), st.dictionaries(st.sampled_from("ab"), LIMITS))
def test_in_a_round_each_gang_is_tried_once_and_nobody_for_what_others_ask(
    snapshot: Snapshot, size: int, limits: dict[str, int]
) -> None:
    """However small the batches are; who is over its quota is told so."""
    lines = [f"{namespace}={limit}" for namespace, limit in limits.items()]
    quotas = Quotas.read(lines, of_drivers=True)
    queue = GangQueue(quotas)
    for record in snapshot.waiting.values():
        queue.follow(record)
    tried: list[GangKey] = []
    for _ in range(len(snapshot.waiting)):
        admission = QuotaAdmission(snapshot, quotas, Features())
        batch = queue.choose(snapshot, BatchLimits(gangs=size), admits=admission.takes)
        namespaces = (record.namespace for record in batch)
        parts = refuse_over_quota(
            resolve_gangs(snapshot, batch, Features()),
            find_quotas(snapshot, quotas, namespaces),
        )
        assert not any(is_held_up_by_others(part.refused) for part in parts)
        tried += [record.key for record in batch]
    assert sorted(tried) == sorted(snapshot.waiting)


def test_both_answers_were_met() -> None:
    """The law above is about gangs that quotas let be tried, and others."""
    assert min(SEEN["refused"], SEEN["let"]) >= 3, SEEN
