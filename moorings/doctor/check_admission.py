"""Policies and webhooks that do not see the objects of DRA that are served. Pure.

Those from before resource.k8s.io/v1 name older versions. The API server converts
objects to a version that a rule names (`matchPolicy: Equivalent`, the default) only if
it serves that version; otherwise the rule matches nothing, and what it forbids is
allowed.

Source: admissionregistration.k8s.io/v1, MatchResources and RuleWithOperations; the
API server's EquivalentResourceRegistry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from contracts.kubernetes.decode import RESOURCE_GROUP
from moorings.doctor.facts import ClusterFacts, Json, Unread
from moorings.doctor.findings import CheckLine, ok, unread, warn

_NAME = "kubernetes.admission"
_ANY, _EXACT = "*", "Exact"
Served = Mapping[str, frozenset[str]]


class _Rule(Struct, frozen=True, kw_only=True):
    """What one rule matches of resource.k8s.io."""

    path: str
    versions: frozenset[str]
    resources: tuple[str, ...]
    operations: tuple[str, ...]

    def covers(self, resource: str, operation: str) -> bool:
        """True if the rule is about an operation on a resource in some version."""
        every = "*/*" if "/" in resource else _ANY
        return bool({resource, every} & {*self.resources}) and bool(
            {operation, _ANY} & {*self.operations}
        )


def check_admission(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check that whoever has rules for resource.k8s.io sees every version served."""
    if isinstance(facts.served, Unread):
        return
    if isinstance(facts.admission, Unread):
        yield unread(_NAME, facts.admission)
        return
    blind = [
        line
        for item in facts.admission
        for path, matching, rules in _list_matchings(item)
        for line in _find_blind(item, path, matching, rules, facts.served)
    ]
    yield from blind
    if not blind:
        yield ok(_NAME, f"policies and webhooks see all of {RESOURCE_GROUP} they name")


def _list_matchings(item: Json) -> Iterator[tuple[str, Json, Sequence[Json]]]:
    """Go through what matches together: its field, what says how, and its rules."""
    for index, webhook in enumerate(item.get("webhooks") or ()):
        yield f"webhooks[{index}].rules", webhook, webhook.get("rules") or ()
    constraints = (item.get("spec") or {}).get("matchConstraints") or {}
    rules = constraints.get("resourceRules") or ()
    yield "spec.matchConstraints.resourceRules", constraints, rules


def _find_blind(
    item: Json, path: str, matching: Json, raw: Sequence[Json], served: Served
) -> Iterator[CheckLine]:
    """Find the rules whose resources are served in versions that no rule sees."""
    rules = tuple(_read_rules(path, raw))
    exact = matching.get("matchPolicy") == _EXACT
    for rule in rules:
        unseen = sorted(
            {
                (version, resource)
                for resource in rule.resources
                for operation in rule.operations
                for version in _list_unseen(rules, resource, operation, served, exact)
            }
        )
        if not unseen:
            continue
        versions = sorted({version for version, _ in unseen})
        resources = sorted({resource for _, resource in unseen})
        remedy = f"add {', '.join(versions)} there, and read its fields"
        if exact and rule.versions & served.keys():
            remedy += "; or set matchPolicy: Equivalent"
        yield warn(
            _NAME,
            f"{item['kind']} {item['metadata']['name']} does not see "
            f"{', '.join(resources)} of {', '.join(versions)}: {rule.path} is "
            f"{', '.join(sorted(rule.versions))}",
            remedy,
        )


def _read_rules(path: str, raw: Sequence[Json]) -> Iterator[_Rule]:
    for index, rule in enumerate(raw):
        if {RESOURCE_GROUP, _ANY} & {*(rule.get("apiGroups") or ())}:
            yield _Rule(
                path=f"{path}[{index}].apiVersions",
                versions=frozenset(rule.get("apiVersions") or ()),
                resources=tuple(rule.get("resources") or ()),
                operations=tuple(rule.get("operations") or ()),
            )


def _list_unseen(
    rules: Sequence[_Rule], resource: str, operation: str, served: Served, exact: bool
) -> frozenset[str]:
    """List the versions of a resource that are served, and matched by no rule."""
    plural = resource.partition("/")[0]
    there = {
        version
        for version, plurals in served.items()
        if plural in plurals or plural == _ANY
    }
    covering = (rule for rule in rules if rule.covers(resource, operation))
    seen = frozenset().union(*(rule.versions for rule in covering))
    if _ANY in seen or (not exact and seen & there):
        return frozenset()
    return frozenset(there - seen)
