"""What a service account lacks, and what it has too much."""

from __future__ import annotations

from msgspec import structs

from moorings.doctor.check_rights import check_rights
from moorings.doctor.facts import Review, Right, Unread
from moorings.doctor.rights import FORBIDDEN
from tests.builders.doctor import cluster_facts, own_reviews, reviews, worst


def changed(persona: str, right: Right) -> tuple[Review, ...]:
    """Turn one answer round."""
    return tuple(
        structs.replace(one, allowed=not one.allowed)
        if (one.persona, one.right) == (persona, right)
        else one
        for one in reviews()
    )


def test_a_right_that_is_missing_fails_by_name() -> None:
    lost = Right("create", "events.k8s.io", "events")
    facts = cluster_facts(reviews=changed("publisher", lost))
    lines = worst(check_rights(facts))
    assert list(lines) == ["rights.publisher"]
    assert lines["rights.publisher"].level == "fail"
    assert "1 of" in lines["rights.publisher"].why
    assert str(lost) in lines["rights.publisher"].why


def without(persona: str) -> tuple[Review, ...]:
    """Answer that an account has no right at all."""
    return tuple(
        structs.replace(one, allowed=False) if one.persona == persona else one
        for one in reviews()
    )


def test_an_account_that_is_not_installed_lacks_nothing() -> None:
    """As where tokens are left out; with its workload it would do nothing."""
    absent = cluster_facts(reviews=without("authcallout"))
    assert worst(check_rights(absent)) == {}
    there = cluster_facts(reviews=without("publisher"))
    assert list(worst(check_rights(there))) == ["rights.publisher"]
    unknown = cluster_facts(
        reviews=without("authcallout"), workloads=Unread("not allowed")
    )
    assert list(worst(check_rights(unknown))) == ["rights.authcallout"]


def test_a_right_too_much_is_a_warning() -> None:
    facts = cluster_facts(reviews=changed("solver", FORBIDDEN[0]))
    lines = worst(check_rights(facts))
    assert [(line.check, line.level) for line in lines.values()] == [
        ("rights.solver", "warn")
    ]
    assert str(FORBIDDEN[0]) in lines["rights.solver"].why


def test_which_roles_we_have_is_said() -> None:
    facts = cluster_facts(own_reviews=own_reviews("moorings-gang-viewer"))
    *_, line = check_rights(facts)
    assert line.level == "ok"
    have, _, lack = line.why.partition("; not those of ")
    assert have == "you have the rights of moorings-gang-viewer"
    assert "moorings-gang-author (" in lack
