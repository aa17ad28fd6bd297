"""Checks that policies and webhooks see the objects of DRA that are served. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.kubernetes.decode import RESOURCE_GROUP
from moorings.admission_rules import find_blind_rules
from moorings.doctor.facts import ClusterFacts, Unread
from moorings.doctor.findings import CheckLine, ok, unread, warn

_NAME = "kubernetes.admission"


def check_admission(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check that whoever has rules for resource.k8s.io sees every version served."""
    if isinstance(facts.served, Unread):
        return
    if isinstance(facts.admission, Unread):
        yield unread(_NAME, facts.admission)
        return
    blind = [
        warn(_NAME, f"{item['kind']} {item['metadata']['name']} {rule}", rule.remedy)
        for item in facts.admission
        for rule in find_blind_rules(item, facts.served)
    ]
    yield from blind
    if not blind:
        yield ok(_NAME, f"policies and webhooks see all of {RESOURCE_GROUP} they name")
