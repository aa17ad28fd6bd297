"""Rules of admission policies and webhooks that do not see served objects of DRA. Pure.

Those from before resource.k8s.io/v1 name older versions. The API server converts
objects to a version that a rule names (`matchPolicy: Equivalent`, the default) only if
it serves that version; otherwise the rule matches nothing, and what it forbids is
allowed.

Source: admissionregistration.k8s.io/v1, MatchResources and RuleWithOperations; the
API server's EquivalentResourceRegistry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from contracts.alpha.said import list_in, mapping_in
from contracts.kubernetes.decode import RESOURCE_GROUP

Served = Mapping[str, frozenset[str]]
"""The plurals of resource.k8s.io that an API server serves, by version."""
KINDS = frozenset(
    f"{verb}{what}"
    for verb in ("Mutating", "Validating")
    for what in ("AdmissionPolicy", "WebhookConfiguration")
)
_ANY, _EXACT = "*", "Exact"


class BlindRule(Struct, frozen=True, kw_only=True):
    """A rule, and the versions in which nobody beside it sees its resources either."""

    path: str
    """The field that names its versions."""
    versions: tuple[str, ...]
    unseen: tuple[str, ...]
    resources: tuple[str, ...]
    """Those that are not seen."""
    by_exact: bool
    """True if it would see all with `matchPolicy: Equivalent`."""

    def __str__(self) -> str:
        return (
            f"does not see {', '.join(self.resources)} of {', '.join(self.unseen)}: "
            f"{self.path} is {', '.join(self.versions)}"
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        told = f"add {', '.join(self.unseen)} there, and read its fields"
        return f"{told}; or set matchPolicy: Equivalent" if self.by_exact else told


class _AdmissionRule(Struct, frozen=True, kw_only=True):
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


def find_blind_rules(raw: Mapping[str, Any], served: Served) -> Iterator[BlindRule]:
    """Find them in a policy or in the configuration of webhooks."""
    matchings = [
        (f"webhooks[{index}].rules", webhook, list_in(webhook, "rules"))
        for index, webhook in enumerate(list_in(raw, "webhooks"))
        if isinstance(webhook, dict)
    ]
    constraints = mapping_in(raw, "spec", "matchConstraints")
    matchings.append(
        (
            "spec.matchConstraints.resourceRules",
            constraints,
            list_in(constraints, "resourceRules"),
        )
    )
    for path, matching, entries in matchings:
        rules = tuple(_read_rules(path, entries))
        is_exact = matching.get("matchPolicy") == _EXACT
        for rule in rules:
            yield from _judge(rule, rules, served, is_exact=is_exact)


def _judge(
    rule: _AdmissionRule,
    rules: Sequence[_AdmissionRule],
    served: Served,
    *,
    is_exact: bool,
) -> Iterator[BlindRule]:
    unseen = {
        (version, resource)
        for resource in rule.resources
        for operation in rule.operations
        for version in _list_unseen(
            rules, resource, operation, served, is_exact=is_exact
        )
    }
    if unseen:
        yield BlindRule(
            path=rule.path,
            versions=tuple(sorted(rule.versions)),
            unseen=tuple(sorted({version for version, _ in unseen})),
            resources=tuple(sorted({resource for _, resource in unseen})),
            by_exact=is_exact and bool(rule.versions & served.keys()),
        )


def _list_unseen(
    rules: Sequence[_AdmissionRule],
    resource: str,
    operation: str,
    served: Served,
    *,
    is_exact: bool,
) -> frozenset[str]:
    """List the versions of a resource that are served, and matched by no rule."""
    plural = resource.partition("/")[0]
    there = {
        version
        for version, plurals in served.items()
        if plural in plurals or plural == _ANY
    }
    covering = (rule for rule in rules if rule.covers(resource, operation))
    seen = frozenset[str]().union(*(rule.versions for rule in covering))
    if _ANY in seen or (not is_exact and seen & there):
        return frozenset()
    return frozenset(there - seen)


def _read_rules(path: str, entries: Sequence[Any]) -> Iterator[_AdmissionRule]:
    """Read the rules about resource.k8s.io; what is no rule is left to others."""
    for index, raw in enumerate(entries):
        if not isinstance(raw, dict):
            continue
        if {RESOURCE_GROUP, _ANY} & {*_texts(raw, "apiGroups")}:
            yield _AdmissionRule(
                path=f"{path}[{index}].apiVersions",
                versions=frozenset(_texts(raw, "apiVersions")),
                resources=tuple(_texts(raw, "resources")),
                operations=tuple(_texts(raw, "operations")),
            )


def _texts(raw: Mapping[str, Any], field: str) -> list[str]:
    return [text for text in list_in(raw, field) if isinstance(text, str)]
