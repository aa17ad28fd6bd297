"""A recorded solve comes back to the byte, or not at all."""

from __future__ import annotations

import pytest
from msgspec import structs

from contracts.ids import SolveID
from contracts.solves import SolveOpened
from solver.errors import RecordError
from solver.record import MAGIC, PartCache, Recorded, dump_export, load_export
from tests.builders import devices, gang, pool
from tests.builders.problems import CLUSTER, problem_of, snapshot_of

PROBLEM = problem_of(
    snapshot_of({n: [pool(*devices(2), name=n)] for n in ("a", "b")}, [gang()])
)
PAGES = {page.sha: page.data for page in PROBLEM.pages}
RECORDED = Recorded(
    opened=SolveOpened(
        cluster=CLUSTER,
        solve=SolveID("s"),
        problem=PROBLEM.hash,
        version="test",
        platform="here",
        epoch=1,
        opened_at="2026-11-20T12:00:00Z",
    ),
    root=PROBLEM.data,
    pages=PAGES,
)


def test_an_export_is_read_back_as_the_same_problem() -> None:
    """One file holds all that is needed to solve it again."""
    read = load_export(dump_export(RECORDED))
    assert read == RECORDED
    assert read.problem().hash == PROBLEM.hash


def test_a_page_that_is_known_is_not_read_again() -> None:
    """A worker that is sent one new page keeps the parts of the others."""
    cache = PartCache()
    first, second = (cache.problem(PROBLEM.data, PAGES) for _ in range(2))
    assert all(a is b for a, b in zip(first.pages, second.pages, strict=True))


def test_bytes_that_were_changed_are_refused() -> None:
    """A replay of something else would prove nothing."""
    sha = next(iter(PAGES))
    with pytest.raises(RecordError, match="page"):
        structs.replace(RECORDED, pages={**PAGES, sha: b"[]"}).problem()
    with pytest.raises(RecordError, match="problem was changed"):
        structs.replace(RECORDED, root=b"{}").problem()


@pytest.mark.parametrize("data", [b"", b"{}", MAGIC, MAGIC + b"no frame"])
def test_what_is_no_export_is_refused(data: bytes) -> None:
    """With an error of ours, whatever the file holds."""
    with pytest.raises(RecordError):
        load_export(data)
