"""Pools that selectors cannot tell apart have one look, and are judged once."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.ids import NodeName
from solver.devices import facts
from solver.devices.pool_projections import (
    find_distinct_pools,
    forget_distinct_pools,
    pools_of,
    projection_of,
    read_ahead,
)
from solver.snapshot.pages import Page
from solver.snapshot.parts import NodePart, Part
from solver.snapshot.pools import pool_of_inventory
from tests.builders import DRIVER, device, pool

MODEL = f'device.attributes["{DRIVER}"].model == "a"'
ANY = f'device.driver == "{DRIVER}"'


def part_of(node: str, *models: str, **fields: Any) -> Part:
    devices = (
        device(f"gpu-{i}", attributes={"model": model, "uuid": f"{node}-{i}"}, **fields)
        for i, model in enumerate(models)
    )
    return Part(pool_of_inventory(pool(*devices), NodeName(node)))


def test_what_is_not_read_makes_no_look_of_its_own() -> None:
    """Each device has a uuid, which neither selector reads."""
    one, other = part_of("n-0", "a", "b"), part_of("n-1", "a", "b")
    assert projection_of(one, (ANY, MODEL)) is projection_of(other, (ANY, MODEL))


@pytest.mark.parametrize("models", [("a",), ("b", "a"), ("a", "b", "b")])
def test_what_is_read_does(models: tuple[str, ...]) -> None:
    """How many devices there are, which of them, and what is read of each."""
    assert projection_of(part_of("n-1", *models), (MODEL,)) != projection_of(
        part_of("n-0", "a", "b"), (MODEL,)
    )


def test_a_page_names_one_pool_of_each_look_until_it_is_forgotten() -> None:
    """So a selector is evaluated on devices of as many pools as look different."""
    parts = [part_of(f"n-{i}", model) for i, model in enumerate("aab")]
    page = Page.of([*parts, Part(NodePart(name=NodeName("n-0")))])
    assert list(pools_of(page)) == parts
    assert list(find_distinct_pools(page, (MODEL,)).values()) == [parts[0], parts[2]]
    assert list(find_distinct_pools(page, (ANY,)).values()) == parts[:1]
    known = find_distinct_pools(page, (ANY,))
    assert find_distinct_pools(page, (ANY,)) is known
    forget_distinct_pools(page, (ANY,))
    assert find_distinct_pools(page, (ANY,)) is not known


def test_what_was_read_ahead_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first gang finds it there."""
    page = Page.of([part_of("n-0", "a"), part_of("n-1", "b")])
    read_ahead([page])
    monkeypatch.setattr(facts, "_read_facts", None)
    assert [facts.facts_of(part).names for part in pools_of(page)] == [("gpu-0",)] * 2
