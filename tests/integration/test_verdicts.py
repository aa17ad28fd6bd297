"""What selectors say before a batch, and what is left to be evaluated beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import pytest

from contracts.allocation import Rule
from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import GangKey
from solver.cel.evaluator import SelectorEvaluator
from solver.cel.wire import Allowance
from solver.problem.assemble import find_missing_verdicts, resolve_gangs
from solver.problem.gangs import GangPart
from solver.queueing.gang_queue import choose_batch
from solver.queueing.rounds import BatchLimits
from solver.service import verdicts as service_verdicts
from solver.service.verdicts import MOST_NEW, Verdicts
from solver.snapshot.snapshot import Snapshot
from tests.builders import DRIVER, device, gang, member, member_claim, pool, request
from tests.builders.problems import snapshot_of
from tests.cases.selectors import costly_selector

UUID = f'device.attributes["{DRIVER}"].uuid'
SLOW = costly_selector(DRIVER)


@pytest.fixture
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as found:
        yield found


def asking(number: int, namespace: str, *selectors: str) -> Gang:
    return gang(
        member(member_claim(request(select=selectors))),
        name=f"g{number}",
        namespace=namespace,
        uid=f"00000000-0000-4000-8000-{number:012}",
    )


def fleet(nodes: int, gangs: list[Gang], each: int = 4) -> Snapshot:
    """Know devices whose uuids all differ, and gangs."""
    pools = {
        f"n{n}": [
            pool(
                *[
                    device(f"gpu-{d}", attributes={"uuid": f"{n}-{d}", "model": "A"})
                    for d in range(each)
                ],
                name=f"n{n}",
            )
        ]
        for n in range(nodes)
    }
    return snapshot_of(pools, gangs)


def parts_of(snapshot: Snapshot) -> tuple[GangPart, ...]:
    batch = choose_batch(snapshot, BatchLimits(gangs=1000, pods=10_000))
    return resolve_gangs(snapshot, batch, Features())


def rules_of(gangs: Iterable[GangPart]) -> list[Rule | None]:
    return [part.refused[0].rule if part.refused else None for part in gangs]


async def test_cold_ordinary_selectors_over_a_fleet_are_judged_before_the_first_batch(
    evaluator: SelectorEvaluator,
) -> None:
    """1,500 nodes with 6,000 uuids: one look each, and one for what all have alike."""
    wanted = [
        asking(0, "a", f'{UUID} == "3-1"'),
        asking(1, "b", f'device.attributes["{DRIVER}"].model == "A"'),
    ]
    snapshot = fleet(1500, wanted)
    verdicts = Verdicts(evaluator)
    gangs = parts_of(snapshot)
    assert await verdicts.judge(snapshot, gangs) == gangs
    assert not find_missing_verdicts(snapshot, gangs, verdicts.table)
    assert evaluator.evaluations == 6000 + 1 + 1


async def test_slow_selectors_are_left_and_evaluated_namespace_by_namespace(
    evaluator: SelectorEvaluator,
) -> None:
    """The gangs are told, others are judged, and each is tried once all is known."""
    wanted = [asking(n, "slow", f"{SLOW} && {n} == {n}") for n in range(3)]
    wanted += [asking(3, "other", f"{SLOW} && 3 == 3"), asking(4, "plain")]
    snapshot = fleet(3, wanted)
    verdicts = Verdicts(evaluator)
    gangs = parts_of(snapshot)
    assert rules_of(await verdicts.judge(snapshot, gangs)) == [
        *[Rule.UNEVALUATED] * 4,
        None,
    ]
    # A namespace that has slow ones begins no new ones meanwhile.
    late = asking(5, "slow", f"{UUID} != '5'")
    free = asking(6, "plain", f"{UUID} != '6'")
    more = fleet(4, [late, free])
    assert rules_of(await verdicts.judge(more, parts_of(more))) == [
        Rule.UNEVALUATED,
        None,
    ]
    ready: list[str] = []
    stop = asyncio.Event()

    def on_judged(gangs: Iterable[GangKey]) -> None:
        ready.extend(gang.uid[-1] for gang in gangs)
        if len(ready) == 5:
            stop.set()

    await asyncio.wait_for(verdicts.run(stop, on_judged), timeout=240)
    assert sorted(ready) == ["0", "1", "2", "3", "5"]
    assert ready.index("3") < ready.index("2"), "namespaces take turns"
    assert rules_of(await verdicts.judge(snapshot, gangs)) == [None] * 5


async def test_ordinary_selectors_that_are_too_many_for_a_batch_are_left_too(
    evaluator: SelectorEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However cheap each is: what all take before a batch is limited as well."""
    monkeypatch.setattr(service_verdicts, "BATCH_S", 0.0)
    wanted = [asking(n, f"team-{n}", f'{UUID} != "{n}"') for n in range(3)]
    snapshot = fleet(3, wanted)
    verdicts = Verdicts(evaluator)
    gangs = parts_of(snapshot)
    first = rules_of(await verdicts.judge(snapshot, gangs))
    assert first == [Rule.UNEVALUATED] * 3
    ready: set[GangKey] = set()
    stop = asyncio.Event()

    def on_judged(gangs: Iterable[GangKey]) -> None:
        ready.update(gangs)
        if len(ready) == len(wanted):
            stop.set()

    await asyncio.wait_for(verdicts.run(stop, on_judged), timeout=240)
    monkeypatch.undo()
    assert rules_of(await verdicts.judge(snapshot, gangs)) == [None] * 3


async def test_an_expensive_selector_is_refused_by_name_and_never_paid_again(
    evaluator: SelectorEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the gangs of others."""
    monkeypatch.setattr("solver.cel.evaluator.EXPENSIVE", Allowance(base_s=0.3))
    snapshot = fleet(40, [asking(0, "a", SLOW), asking(1, "b")])
    verdicts = Verdicts(evaluator)
    await verdicts.judge(snapshot, parts_of(snapshot))
    stop = asyncio.Event()
    await asyncio.wait_for(verdicts.run(stop, lambda _: stop.set()), timeout=240)
    evaluations = evaluator.evaluations
    assert evaluations < 100
    again = fleet(40, [asking(2, "c", "true", SLOW), asking(3, "d")])
    refused, plain = await verdicts.judge(again, parts_of(again))
    assert not plain.refused
    (reason,) = refused.refused
    assert (reason.rule, reason.subject) == (Rule.SELECTOR_ERROR, "worker/gpus/gpu")
    assert reason.message.startswith("selector #1: too expensive")
    assert not refused.rejected
    assert evaluator.evaluations == evaluations


async def test_a_namespace_begins_some_expressions_at_a_time(
    evaluator: SelectorEvaluator,
) -> None:
    """The rest comes next, without being evaluated slowly first."""
    first = MOST_NEW - 1  # beside the class's own
    wanted = [asking(n, "a", f'{UUID} != "{n}"') for n in range(first + 2)]
    snapshot = fleet(1, wanted)
    verdicts = Verdicts(evaluator)
    gangs = parts_of(snapshot)
    judged = rules_of(await verdicts.judge(snapshot, gangs))
    assert judged == [*[None] * first, Rule.UNEVALUATED, Rule.UNEVALUATED]
    ready: list[GangKey] = []
    stop = asyncio.Event()

    def on_judged(gangs: Iterable[GangKey]) -> None:
        ready.extend(gangs)
        stop.set()

    await asyncio.wait_for(verdicts.run(stop, on_judged), timeout=60)
    assert ready == [gangs[first].key, gangs[first + 1].key]
    assert rules_of(await verdicts.judge(snapshot, gangs[first:])) == [None, None]
