"""Lint from objects to findings: believe, evaluate selectors, apply the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from contracts.device import DeviceTaintRule, ResourceSlice
from contracts.features import Features
from contracts.gang import Gang
from contracts.kubernetes.defaults import default_claim, default_gang, default_template
from contracts.validate import validate
from contracts.workload import Node
from moorings.lint.all_requests import askings_of, gang_of
from moorings.lint.constraints import check_constraints
from moorings.lint.findings import Finding, Lint, LintRule, Severity, lint_of
from moorings.lint.matches import Matches
from moorings.lint.requests import check_asking, check_class
from moorings.lint.slices import check_pools
from moorings.plan.work import PlanObject, apply_state
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.assemble import SnapshotLookup, wanted_verdicts
from solver.selectors.table import SelectorTable
from solver.snapshot.parts import NodePart, PoolPart


def lint(
    objects: Iterable[PlanObject], features: Features, evaluator: SelectorEvaluator
) -> Lint:
    """Find what would only fail at run time."""
    listed = list(objects)
    snapshot = apply_state(listed)
    classes = [
        item.decoded.value
        for item in listed
        if isinstance(item.decoded.value, DeviceClass)
    ]
    askings = askings_of(listed, SnapshotLookup(snapshot), features)
    gang, table = gang_of(askings, classes), SelectorTable()
    while wanted := wanted_verdicts(snapshot, (gang,), table):
        table = table.with_verdicts(wanted, evaluator.evaluate(wanted))
    matches = Matches(tuple(snapshot.inventory.pages), table, features)
    values = list(snapshot.inventory.pages.values())
    pools = [value for value in values if isinstance(value, PoolPart)]
    named = {
        item.decoded.value.name
        for item in listed
        if isinstance(item.decoded.value, Node)
    }
    nodes = [v for v in values if isinstance(v, NodePart) and v.name in named]
    findings = [finding for item in listed for finding in _validity(item)]
    findings.extend(_references(listed))
    findings.extend(check_pools(pools, nodes, matches.cluster))
    for device_class in classes:
        findings.extend(check_class(device_class, matches))
    for asking in askings:
        findings.extend(check_asking(asking, matches))
        findings.extend(check_constraints(asking, matches))
    return lint_of(findings, objects=len(listed), devices=matches.total)


def _validity(item: PlanObject) -> Iterator[Finding]:
    """Say what the API server would refuse, once it has filled in its defaults."""
    value = item.decoded.value
    match value:
        case ResourceClaim():
            value = default_claim(value)
        case ResourceClaimTemplate():
            value = default_template(value)
        case Gang():
            value = default_gang(value)
        case ResourceSlice() | DeviceClass() | DeviceTaintRule():
            pass
        case _:
            return
    for violation in validate(value):
        yield Finding(
            severity=Severity.ERROR,
            kind=item.decoded.kind,
            namespace=value.metadata.namespace,
            name=value.metadata.name,
            field=violation.field,
            rule=LintRule.INVALID,
            message=": ".join(filter(None, (violation.rule, violation.message))),
        )


def _references(objects: list[PlanObject]) -> Iterator[Finding]:
    """Say which templates gangs name that do not exist."""
    templates = {
        (item.decoded.value.metadata.namespace, item.decoded.value.metadata.name)
        for item in objects
        if isinstance(item.decoded.value, ResourceClaimTemplate)
    }
    for item in objects:
        gang = item.decoded.value
        if not isinstance(gang, Gang):
            continue
        for m, member in enumerate(gang.spec.members):
            for c, claim in enumerate(member.claims):
                key = (gang.metadata.namespace, claim.template_name or "")
                if claim.template_name and key not in templates:
                    yield Finding(
                        severity=Severity.ERROR,
                        kind="Gang",
                        namespace=gang.metadata.namespace,
                        name=gang.metadata.name,
                        field=f"spec.members[{m}].claims[{c}].templateName",
                        rule=LintRule.UNKNOWN_TEMPLATE,
                        message=f"{claim.template_name!r} does not exist",
                    )
