"""What we wrote is known without reading it again."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.claim import ResourceClaim
from contracts.ids import GangKey, GangUID, Namespace
from contracts.names import GANG_UID
from publisher.folder.known_claims import KnownClaims
from publisher.steps import Create, Delete, key_of
from tests.builders import NAMESPACE, claim, resource_slice


def of(gang: str, name: str) -> ResourceClaim:
    """Make a claim of a gang."""
    made = claim(name=name)
    notes = {GANG_UID: gang} if gang else {}
    return replace(made, metadata=replace(made.metadata, annotations=notes))


def key_of_gang(uid: str, namespace: str = NAMESPACE) -> GangKey:
    """Name a gang."""
    return GangKey(Namespace(namespace), GangUID(uid))


def names(known: KnownClaims, gang: str) -> list[str]:
    """Name the claims that are known of a gang."""
    return [item.metadata.name for item in known.of_gang(key_of_gang(gang))]


def test_claims_are_found_by_gang_and_by_name() -> None:
    """In the order of their names; a slice is no claim."""
    known = KnownClaims([of("g", "b"), of("g", "a"), of("", "c"), resource_slice()])
    assert names(known, "g") == ["a", "b"]
    with_name = known.of_gang(key_of_gang("g"), [key_of(of("", "c"))])
    assert [item.metadata.name for item in with_name] == ["a", "b", "c"]
    assert known.gangs() == {key_of_gang("g")}


def test_a_gang_is_forgotten_with_its_last_claim() -> None:
    """Whoever sweeps up finds no gang without claims."""
    known = KnownClaims([of("g", "a")])
    known.apply([Create(of("g", "b")), Delete(of("g", "a"))])
    assert names(known, "g") == ["b"]
    known.apply([Delete(of("g", "b"))])
    assert known.gangs() == frozenset()


def test_what_is_read_replaces_what_was_known() -> None:
    """A name that nothing was read under is not there."""
    known = KnownClaims([of("g", "a"), of("g", "b")])
    keys = [key_of(of("", name)) for name in ("a", "b")]
    known.refresh(keys, [of("h", "a")])
    assert (names(known, "g"), names(known, "h")) == ([], ["a"])


def test_a_uid_in_another_namespace_is_another_gang() -> None:
    """Who may speak of one namespace's gangs has no claims of another's removed."""
    known = KnownClaims([of("g", "a")])
    assert known.of_gang(key_of_gang("g", "other-tenant")) == ()
