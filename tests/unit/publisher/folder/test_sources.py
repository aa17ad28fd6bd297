"""Where the spec of each claim of a gang comes from."""

from __future__ import annotations

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from publisher.folder.sources import find_references, find_sources
from publisher.steps import ObjectKey
from tests.builders import (
    NAMESPACE,
    claim,
    claim_template,
    gang,
    member,
    member_claim,
    request,
)
from tests.builders.decisions import submission

SUBMITTED = submission(
    gang(
        member(
            member_claim(request("own"), name="own"),
            member_claim(name="made", template="t"),
            member_claim(name="there", claim="c"),
            name="w",
        )
    )
)
TEMPLATE = ObjectKey("ResourceClaimTemplate", NAMESPACE, "t")
CLAIM = ObjectKey("ResourceClaim", NAMESPACE, "c")


def test_templates_and_claims_that_a_gang_names_are_looked_up() -> None:
    """What is written out needs nothing."""
    assert find_references(SUBMITTED) == {TEMPLATE, CLAIM}


def test_a_spec_is_written_out_or_of_the_object_that_is_named() -> None:
    """And its origin is said, so that a refusal can name it."""
    objects: dict[ObjectKey, ResourceClaim | ResourceClaimTemplate] = {
        TEMPLATE: claim_template(request("of-template"), name="t"),
        CLAIM: claim(request("of-claim"), name="c"),
    }
    sources = find_sources(SUBMITTED, objects)
    found = {
        name: (source.spec.devices.requests[0].name, source.origin)
        for (_, name), source in sources.items()
        if source.spec is not None
    }
    assert found == {
        "own": ("own", ""),
        "made": ("of-template", "ResourceClaimTemplate t"),
        "there": ("of-claim", "ResourceClaim c"),
    }


def test_an_object_that_nobody_knows_has_no_spec() -> None:
    """Its origin still says what is missing."""
    source = find_sources(SUBMITTED, {})["w", "made"]
    assert (source.spec, source.origin) == (None, "ResourceClaimTemplate t")
