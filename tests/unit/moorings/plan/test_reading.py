"""Objects are read as far as they can be; the rest is named once."""

from __future__ import annotations

from moorings.plan.reading import Reader

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_unknown_kinds_and_fields_are_said_once() -> None:
    """A hundred equal objects are one note; the objects themselves are read."""
    said: list[str] = []
    reader = Reader(said.append)
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"colour": 1},
    }
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    objects = list(reader.read([("f", raw) for raw in (claim, event, event, claim)]))
    assert [entry.decoded.kind for entry in objects] == ["ResourceClaim"] * 2
    assert [text.partition(":")[0] for text in said] == ["note", "note"]
    assert reader.refused == 0


def test_a_known_kind_that_cannot_be_read_is_an_error() -> None:
    """It is counted, and the others are read all the same."""
    said: list[str] = []
    reader = Reader(said.append)
    broken = {**POD, "spec": {"containers": 7}}
    assert len(list(reader.read([("f", broken), ("g", POD)]))) == 1
    assert reader.refused == 1
    assert said[0].startswith("error: f: ")


def test_lists_are_taken_apart_and_say_where_their_items_were() -> None:
    """By the place in the list that was handed in."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [POD, POD]}
    sources = [entry.source for entry in Reader(print).read_list([POD, listed])]
    assert sources == ["objects[0]", "objects[1]", "objects[1]"]
