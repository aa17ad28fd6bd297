"""Steps are carried out in order; what is there afterwards follows from them."""

from __future__ import annotations

from msgspec.structs import replace

from publisher.steps import Create, Delete, ObjectKey, Update, apply_steps, key_of
from tests.builders import claim, resource_slice


def test_an_object_is_known_by_kind_namespace_and_name() -> None:
    """A claim and a slice of one name are two; a slice has no namespace."""
    assert key_of(claim(name="a")) == ObjectKey("ResourceClaim", "team-a", "a")
    assert str(key_of(claim(name="a"))) == "team-a/a"
    assert str(key_of(resource_slice(name="a"))) == "a"


def test_after_all_steps_each_object_is_as_the_last_one_left_it() -> None:
    """What is deleted is gone, whether it was there or not; the input stays."""
    old, new = claim(name="a"), claim(name="b")
    changed = replace(old, metadata=replace(old.metadata, labels={"x": "y"}))
    observed = {key_of(old): old}
    steps = (Create(new), Update(changed), Delete(new), Delete(claim(name="c")))
    assert apply_steps(observed, steps) == {key_of(old): changed}
    assert observed == {key_of(old): old}
