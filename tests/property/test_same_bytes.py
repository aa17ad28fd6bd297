"""Same Problem, same bytes: in one process, in fresh ones, under any hash seed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from solver.allocate import allocate
from solver.decision import DECISION
from solver.engines.pattern.columns.local_search import PartialSolution
from solver.engines.pattern.columns.priced_search import PricedSearch
from solver.errors import RecordError
from solver.problem.problem import Problem
from solver.record import PartCache, Recorded, dump_export, load_export, sha_of
from solver.replay import replay
from tests.builders import (
    DRIVER,
    constraint,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
)
from tests.builders.problems import CLUSTER, problem_of, snapshot_of
from tests.builders.solves import recorded
from tests.draw.crowds import crowd, world
from tests.lab.soak import sized

REPEATS = sized(20, 200)

ROOT = "resource.kubernetes.io/pcieRoot"
REPLAY = """
import os
import sys
from pathlib import Path
cores = sorted(os.sched_getaffinity(0))[: int(sys.argv[2])]
os.sched_setaffinity(0, cores)
from solver.record import load_export
from solver.replay import replay
result, _ = replay(load_export(Path(sys.argv[1]).read_bytes()))
print(result.same_bytes, result.replayed_decision)
"""


def crowded(seed: int = 7, nodes: int = 20, gangs: int = 40) -> Problem:
    """More gangs than fit, on nodes with PCIe roots, at three priorities."""
    draw = random.Random(seed)
    pools = {}
    for index in range(nodes):
        name = f"node-{index:02}"
        content = [
            device(
                f"gpu-{number}",
                attributes={
                    "model": draw.choice(["big", "small"]),
                    ROOT: f"pci{number // 2}-{name}",
                },
            )
            for number in range(8)
        ]
        pools[name] = [pool(*content, name=name)]
    asked = []
    for index in range(gangs):
        select = (f'device.attributes["{DRIVER}"].model == "big"',)
        claim = member_claim(
            request(count=draw.choice([1, 1, 2]), select=draw.choice([(), select])),
            constraints=draw.choice([(), (constraint(ROOT),)]),
        )
        asked.append(
            gang(
                member(claim, count=draw.randint(1, 5)),
                name=f"g{index}",
                uid=f"00000000-0000-4000-8000-{index:012}",
                priority=draw.choice([0, 0, 10]),
            )
        )
    return problem_of(snapshot_of(pools, asked))


def contested() -> Problem:
    """One whose gangs change places again and again, with little work."""
    made = crowd(17)
    return Problem(
        made.pages,
        made.gangs,
        made.selectors,
        structs.replace(made.parameters, work_limit=1.2),
        made.expected,
        neighbours=made.neighbours,
        quotas=made.quotas,
    )


def small(seed: int) -> Problem:
    """Few gangs on a few nodes."""
    return world(seed, nodes=(3, 5), gangs=(3, 6)).problem


@cache
def record_of(made: Callable[[], Problem]) -> Recorded:
    """Record what is made and its answer, once: hard ones take long."""
    problem = made()
    return recorded(problem, allocate(problem), CLUSTER)


def test_repeats_in_one_process_give_the_same_bytes() -> None:
    problem = crowded(nodes=4, gangs=12)
    cache = PartCache()
    pages = {page.sha: page.data for page in problem.pages}
    first = DECISION.encode(allocate(problem))
    assert b'"members":[{' in first
    assert b'"reasons":[{' in first
    for _ in range(REPEATS):
        again = allocate(cache.problem(problem.data, pages))
        assert DECISION.encode(again) == first


@pytest.mark.parametrize(
    ("made", "times"), [(partial(small, 5), REPEATS), (partial(crowd, 3), 5)]
)
def test_what_is_decided_in_between_changes_no_bytes(
    made: Callable[[], Problem], times: int
) -> None:
    """Pure functions remember; answers must not show what.

    A batch whose patterns are listed, and one whose patterns are priced.
    """
    first = DECISION.encode(allocate(made()))
    assert b'"engine":"pattern"' in first
    assert b'"members":[{' in first
    for number in range(times):
        other = small(number) if times > 5 else crowd(10 + number)
        allocate(other)
        assert DECISION.encode(allocate(made())) == first, f"after {number}"


def test_gangs_change_places_where_they_are_contested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the same bytes on several cores would say nothing of that."""
    phases: list[PartialSolution] = []
    run_with = PricedSearch._run_with

    def count(self: PricedSearch, *given: Any) -> PartialSolution:
        phases.append(run_with(self, *given))
        return phases[-1]

    monkeypatch.setattr(PricedSearch, "_run_with", count)
    allocate(contested())
    assert len(phases) > 3


def test_the_problem_does_not_depend_on_how_it_came_about() -> None:
    """The same beliefs, reached in another order of messages, are the same Problem."""
    content = [pool(device("a"), device("b"), name="n"), pool(device("c"), name="m")]
    asked = [gang()]
    one = problem_of(snapshot_of({"n": content[:1], "m": content[1:]}, asked))
    two = problem_of(snapshot_of({"m": content[1:], "n": content[:1]}, asked))
    assert one.hash == two.hash


@pytest.mark.parametrize(("seed", "cores"), [("0", 1), ("1", 2), ("4242", 64)])
@pytest.mark.parametrize("made", [crowded, partial(crowd, 3), contested])
def test_a_fresh_interpreter_gives_the_same_bytes(
    seed: str, cores: int, made: Callable[[], Problem], tmp_path: Path
) -> None:
    """Under any hash seed, on as many cores as it gets."""
    record = record_of(made)
    file = tmp_path / "solve"
    file.write_bytes(dump_export(record))
    ran = subprocess.run(
        [sys.executable, "-c", REPLAY, str(file), str(cores)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["True", sha_of(record.decision)]
    assert not ran.stderr


def test_an_export_reads_back_as_it_was_written() -> None:
    record = record_of(crowded)
    assert load_export(dump_export(record)) == record


@pytest.mark.parametrize("part", ["root", "pages", "decision"])
def test_a_changed_byte_is_said_plainly(part: str) -> None:
    record = record_of(crowded)
    match part:
        case "root":
            changed = record.root.replace(b'"count":2', b'"count":1', 1)
            broken = Recorded(**{**_fields(record), "root": changed})
        case "pages":
            sha, data = next(iter(record.pages.items()))
            pages = {**record.pages, sha: data.replace(b"gpu-0", b"gpu-9", 1)}
            broken = Recorded(**{**_fields(record), "pages": pages})
        case _:
            changed = record.decision + b" "
            broken = Recorded(**{**_fields(record), "decision": changed})
    with pytest.raises(RecordError, match="was changed"):
        replay(broken)


def test_another_answer_is_described() -> None:
    """A record of other code: the bytes differ, and what differs is named."""
    record = record_of(crowded)
    decision = DECISION.decode(record.decision)
    gangs = tuple(reversed(decision.gangs))
    data = DECISION.encode(structs.replace(decision, gangs=gangs))
    assert record.decided is not None
    decided = structs.replace(record.decided, decision=sha_of(data))
    opened = structs.replace(record.opened, version="0.0.1")
    fields = {**_fields(record), "decision": data, "decided": decided, "opened": opened}
    result, _ = replay(Recorded(**fields))
    assert result.same_bytes is False
    assert result.same_versions is False
    assert any(line.startswith("gang ") for line in result.differences)


@pytest.mark.parametrize("data", [b"", b"moorings-solve-1\nxx", b"PK\x03\x04"])
def test_a_file_that_is_no_export_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        load_export(data)


def _fields(record: Recorded) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
