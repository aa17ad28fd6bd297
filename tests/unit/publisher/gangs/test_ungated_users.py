"""Claims that pods use which never had our gate."""

from __future__ import annotations

from publisher.gangs.ungated_users import UngatedUsers


def test_a_claim_is_used_until_its_last_user_is_gone() -> None:
    """And what changes is told."""
    users = UngatedUsers()
    assert users.apply("ns/a", ["ns/one", "ns/two"]) == {"ns/one", "ns/two"}
    assert users.apply("ns/b", ["ns/one"]) == {"ns/one"}
    assert users.apply("ns/b", ["ns/one"]) == frozenset()
    assert users.apply("ns/a", ["ns/two"]) == {"ns/one"}
    assert users.has("ns/one")
    assert users.apply("ns/b", ()) == {"ns/one"}
    assert not users.has("ns/one")
    assert users.has("ns/two")
