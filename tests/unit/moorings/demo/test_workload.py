"""The demo's gangs follow the rule that the demo states."""

from __future__ import annotations

from itertools import groupby, islice
from pathlib import Path

import pytest

from moorings.demo.workload import (
    SIZES,
    TRACE,
    count_gpus,
    draw_pods,
    group_pods,
    make_gang,
    read_trace,
)
from moorings.errors import BadInputError


def test_pods_stay_in_their_order_in_gangs_of_equals() -> None:
    pods = list(islice(draw_pods(1), 500))
    gangs = list(group_pods(pods, 1))
    assert [gpus for count, gpus in gangs for _ in range(count)] == pods
    assert all(1 <= count <= max(SIZES) for count, _ in gangs)


def test_the_seed_decides() -> None:
    pods = list(islice(draw_pods(3), 200))
    assert pods == list(islice(draw_pods(3), 200))
    assert pods != list(islice(draw_pods(4), 200))
    assert len([*groupby(pods)]) > 1


def test_a_gang_requests_its_gpus_for_each_pod() -> None:
    gang = make_gang(7, 4, 2, "gpu.moorings.dev", 0)
    assert gang.metadata.name == "train-0007"
    assert count_gpus(gang) == 8


def test_only_whole_gpus_of_the_trace_count(tmp_path: Path) -> None:
    """In order of arrival, whatever the order of the file."""
    (tmp_path / TRACE).write_text(
        "num_gpu,gpu_milli,creation_time\n4,1000,20\n1,500,5\n0,0,6\n2,1000,10\n"
    )
    assert read_trace(tmp_path) == [2, 4]


@pytest.mark.parametrize("text", [None, "a,b\n1,2\n"])
def test_what_is_no_trace_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / TRACE).write_text(text)
    with pytest.raises(BadInputError, match=TRACE):
        read_trace(tmp_path)
