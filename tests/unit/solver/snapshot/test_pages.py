"""Parts in pages: a change costs one page, and bytes come back."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from contracts.ids import DriverName, NodeName, PoolName
from solver.snapshot.pages import PAGES, Page, Pages, page_number_of
from solver.snapshot.parts import NodePart, Part, PoolPart, node_key, pool_key
from tests.builders import DRIVER


def pool_part(node: str, *, contested: str = "") -> PoolPart:
    """Make the part of a node's pool."""
    return PoolPart(
        driver=DriverName(DRIVER),
        pool=PoolName(node),
        node=NodeName(node),
        contested=contested,
    )


def test_a_change_replaces_one_page_and_keeps_the_others() -> None:
    """The pages that nothing happened to are the very same objects."""
    nodes = [f"n{index}" for index in range(50)]
    pages = Pages()
    for node in nodes:
        pages = pages.with_value(pool_part(node))
    changed = pages.with_value(pool_part("n7", contested="two agents"))
    numbers = {page_number_of(node) for node in nodes}
    assert len(list(pages)) == len(numbers)
    differing = [a for a, b in zip(pages, changed, strict=True) if a is not b]
    assert len(differing) == 1
    assert differing[0].nodes.keys() >= {"n7"}


def test_an_equal_value_changes_nothing() -> None:
    """The very pages come back, so their hashes are not made again."""
    pages = Pages().with_value(pool_part("n"))
    assert pages.with_value(pool_part("n")) is pages
    assert pages.without("n", "pool/other/n") is pages


def test_a_node_without_parts_is_gone() -> None:
    """Nothing is left of a node whose last part was left out."""
    part = pool_part("n")
    pages = Pages().with_value(part).with_value(NodePart(name=NodeName("n")))
    pages = pages.without("n", pool_key(part.driver, part.pool))
    assert [type(value) for value in pages.of("n")] == [NodePart]
    assert list(pages.without("n", node_key(NodeName("n")))) == []


def test_the_bytes_of_a_page_do_not_depend_on_the_order_of_its_parts() -> None:
    """A page is its parts by key, so equal content has one hash."""
    parts = [Part(pool_part(node)) for node in ("b", "a", "c")]
    page, turned = Page.of(parts), Page.of(reversed(parts))
    assert page.data == turned.data
    assert page.sha == turned.sha
    assert [raw["node"] for raw in json.loads(page.data)] == ["a", "b", "c"]


@pytest.mark.parametrize("kept", [(), ("a",), ("a", "b")])
def test_a_page_is_hashed_as_its_bytes_are(kept: tuple[str, ...]) -> None:
    """Whichever parts were written before: they keep their bytes."""
    parts = [Part(pool_part(node)) for node in ("a", "b")]
    for part in parts:
        assert part.owner not in kept or part.data
    page = Page.of(parts)
    assert page.sha == sha256(page.data).hexdigest()


def test_a_page_is_read_back_and_takes_what_is_there_already() -> None:
    """Of a page that changed in one node the other nodes are not read again."""
    page = Page.of(Part(pool_part(node)) for node in ("a", "b"))
    changed = page.with_part(Part(pool_part("a", contested="two agents")))
    parts = {part.data: part for part in page.parts()}
    read = Page.decode(changed.data, parts, page.nodes)
    assert read.sha == changed.sha
    assert read.nodes["b"] is page.nodes["b"]
    assert read.nodes["a"] is not page.nodes["a"]


def test_the_cluster_as_a_whole_has_a_page_as_well() -> None:
    """What belongs to no node lies in the page of the empty name."""
    shared = PoolPart(driver=DriverName(DRIVER), pool=PoolName("fabric"))
    pages = Pages().with_value(shared)
    assert list(pages.of("")) == [shared]
    assert 0 <= page_number_of("") < PAGES
