"""YAML may be as deep as JSON, and its aliases stand for so much and no more."""

from __future__ import annotations

import pytest
import yaml

from contracts.kubernetes.exact import ExactDecoder
from moorings.errors import BadInputError
from moorings.manifests import parse_documents
from moorings.nesting import MAX_ALIASED, MAX_LEVELS


def read(text: str) -> list[object]:
    """Read all documents of a text."""
    return [value for _, value in parse_documents("a.yaml", text)]


def nested(levels: int) -> str:
    """Write so many objects in each other, as JSON and YAML have them."""
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", range(850, 1000, 3))
def test_how_deep_the_stack_is_makes_no_difference(levels: int) -> None:
    """The parser of JSON gives up somewhere here: in the object, or in its field."""
    with pytest.raises(BadInputError, match="nested over 400 deep"):
        read(nested(levels))


@pytest.mark.parametrize("before", ["", "--- "], ids=["json", "yaml"])
def test_one_limit_is_for_both(before: str) -> None:
    """JSON is read by another parser than YAML."""
    assert len(read(before + nested(MAX_LEVELS))) == 1
    with pytest.raises(BadInputError, match=r"a\.yaml: nested over 400 deep"):
        read(before + nested(MAX_LEVELS + 1))


def test_an_item_of_a_list_is_checked_by_itself() -> None:
    """As is what stands beside the items."""
    head = '{"apiVersion": "v1", "kind": "List"'
    fine, deep = nested(MAX_LEVELS), nested(MAX_LEVELS + 1)
    assert len(read(f'{head}, "items": [{fine}, {fine}]}}')) == 2
    for text in (f'"items": [{fine}, {deep}]}}', f'"metadata": {deep}, "items": []}}'):
        with pytest.raises(BadInputError, match="nested over 400 deep"):
            read(f"{head}, {text}")


def test_an_item_that_is_read_at_once_is_checked_as_well() -> None:
    """Configuration is kept as it is, and written again by recursion."""
    item = (
        '{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {},'
        '"spec": {"devices": {"config": [{"opaque": {"driver": "d", "parameters": %s}}]'
        "}}}"
    )
    above = 6
    for levels in (MAX_LEVELS - above, MAX_LEVELS - above + 1):
        text = '{"kind": "List", "items": [%s]}' % (item % nested(levels))
        if levels + above <= MAX_LEVELS:
            assert len(list(parse_documents("a.json", text, ExactDecoder()))) == 1
            continue
        with pytest.raises(BadInputError, match="nested over 400 deep"):
            list(parse_documents("a.json", text, ExactDecoder()))


def doubling(times: int, form: str = "[*{0}, *{0}]") -> str:
    """Write anchors each of which stands for the last one twice."""
    lines = [f"a{n}: &a{n} {form.format(f'a{n - 1}')}" for n in range(1, times)]
    return "\n".join(["a0: &a0 {x: 1}", *lines])


@pytest.mark.parametrize("form", ["[*{0}, *{0}]", "{{<<: [*{0}, *{0}]}}"])
def test_aliases_that_double_are_refused(form: str) -> None:
    """They are never followed; also where keys are merged."""
    with pytest.raises(BadInputError, match=rf"\*a1\d stand for over {MAX_ALIASED}"):
        read(doubling(60, form))
    assert len(read(doubling(10, form))) == 1


def test_depth_is_counted_through_aliases() -> None:
    """Each line is one level, and stands for all the levels before it."""
    with pytest.raises(BadInputError, match="nested over 400 deep"):
        read(doubling(MAX_LEVELS, "[*{0}]"))
    assert len(read(doubling(MAX_LEVELS - 2, "[*{0}]"))) == 1


def test_an_alias_of_what_it_is_in_is_refused() -> None:
    """It has no end."""
    with pytest.raises(BadInputError, match=r"\*p refers to what it is in"):
        read("a: &p {b: [*p]}")


def test_aliases_of_each_document_count_by_themselves() -> None:
    """And what has no anchor is an error as ever."""
    many = doubling(14)
    assert len(read(f"{many}\n---\n{many}\n---\n{many}")) == 3
    with pytest.raises(BadInputError, match="undefined alias"):
        read("a: &b 1\nc: *d")


def test_what_is_read_is_what_yaml_says() -> None:
    """Aliases of a common size are followed."""
    text = "a: &a {x: 1}\nb: *a\nc: {<<: *a, z: 2}"
    assert read(text) == [yaml.safe_load(text)]
