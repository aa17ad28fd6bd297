"""Lint from objects to findings: apply state, evaluate selectors, apply the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from contracts.claim import DeviceClass, ResourceClaimTemplate
from contracts.device import DeviceTaintRule
from contracts.features import Features
from contracts.gang import Gang
from contracts.kubernetes.decode import WritableObject, find_refused_fields
from contracts.kubernetes.nearest import explain_unknown_field
from contracts.validate import validate
from contracts.workload import Node
from moorings.lint.claims import gather_claims, make_probe_gang
from moorings.lint.constraints import check_constraints
from moorings.lint.findings import Finding, Lint, LintRule, Severity, collect_findings
from moorings.lint.immediate import check_allocate_marks
from moorings.lint.limits_of_138 import check_limits_of_138
from moorings.lint.matches import Matches
from moorings.lint.pods import check_gangs, check_pods
from moorings.lint.quotas import check_quotas
from moorings.lint.requests import check_admin_access, check_claim, check_class
from moorings.lint.sizes import check_gang_sizes
from moorings.lint.slices import check_pools
from moorings.lint.taints import check_taint_rule
from moorings.lint.topology import LintGang, check_gang_rules
from moorings.plan.asking import Asked, ask, submit_before_pods
from moorings.plan.cluster import make_cluster
from moorings.plan.disabled import find_disabled_selectors
from moorings.plan.limits import list_without_admin_access
from moorings.plan.lone_claims import is_of_claims, make_lone_gangs
from moorings.plan.objects import NAMESPACED, PlanObject, unite_objects, with_defaults
from moorings.plan.pods import DEFAULT_NAMESPACE
from moorings.plan.state import apply_state
from moorings.plan.work import PlanWork
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.assemble import SnapshotLookup, find_missing_verdicts
from solver.problem.resolve import ResolveOptions, resolve
from solver.selectors.table import SelectorTable
from solver.snapshot.parts import NodePart, PoolPart
from solver.snapshot.snapshot import Snapshot


def lint(
    objects: Iterable[PlanObject], features: Features, evaluator: SelectorEvaluator
) -> Lint:
    """Find what would only fail at run time."""
    # First the state, and everything in the input that requests or classifies devices.
    given = list(objects)
    entries = list(map(_with_namespace, unite_objects(given)[0]))
    snapshot = apply_state(entries)
    classes = [
        entry.decoded.value
        for entry in entries
        if isinstance(entry.decoded.value, DeviceClass)
    ]
    claims = gather_claims(entries, SnapshotLookup(snapshot), features)

    # Then the verdicts of all selectors; a selector is only evaluated for devices that
    # passed those before it, so ask until nothing is missing.
    gang, table = make_probe_gang(claims, classes), SelectorTable()
    while missing := find_missing_verdicts(snapshot, (gang,), table):
        table = table.with_verdicts(missing, evaluator.evaluate(missing))
    disabled = find_disabled_selectors(entries, features)
    matches = Matches(tuple(snapshot.inventory.pages), table, features, disabled)

    # Then rule by rule, each over the whole input.
    findings = [finding for entry in entries for finding in _check_validity(entry)]
    for entry in map(_with_namespace, given):
        findings.extend(_check_fields(entry))
        findings.extend(check_limits_of_138(entry, features))
        findings.extend(check_allocate_marks(entry))
    findings.extend(_check_references(entries))
    findings.extend(check_pods(entries))
    cluster = make_cluster(entries)
    asked = ask(cluster.view, cluster.view.groups())
    findings.extend(check_gangs((*cluster.waiting, *asked.waiting, *asked.remarks)))
    findings.extend(_check_pools(entries, snapshot, matches, features))
    for device_class in classes:
        findings.extend(check_class(device_class, matches))
    for entry in entries:
        if isinstance(entry.decoded.value, DeviceTaintRule):
            findings.extend(check_taint_rule(entry.decoded.value))
    closed = list_without_admin_access(entries)
    for claim in claims:
        findings.extend(check_claim(claim, matches))
        if claim.namespace in closed:
            findings.extend(check_admin_access(claim))
        findings.extend(check_constraints(claim, matches))
    gangs = [
        resolved
        for resolved in _resolve_gangs(asked, SnapshotLookup(snapshot), features)
        if not is_of_claims(resolved.gang)  # those were checked as claims
    ]
    findings.extend(check_gang_rules(gangs, matches, _list_labels(entries)))
    findings.extend(check_gang_sizes(gangs, matches))
    # Of a claim without a name that was said; nobody could submit it.
    named = (claim for claim in cluster.lone_claims if claim.metadata.name)
    lone = map(submit_before_pods, make_lone_gangs(tuple(named), 0))
    created = Asked(gangs=[*asked.gangs, *lone])
    work = PlanWork(snapshot=snapshot, gangs=tuple(created.gangs), cluster=cluster)
    made = _resolve_gangs(created, SnapshotLookup(snapshot), features)
    findings.extend(check_quotas(made, work, entries, features))
    return collect_findings(findings, objects=len(entries), devices=matches.total)


def _with_namespace(entry: PlanObject) -> PlanObject:
    """Fill in the namespace that an object has where it names none."""
    value = entry.decoded.value
    if not isinstance(value, NAMESPACED) or value.metadata.namespace:
        return entry
    metadata = replace(value.metadata, namespace=DEFAULT_NAMESPACE)
    decoded = replace(entry.decoded, value=replace(value, metadata=metadata))
    return replace(entry, decoded=decoded)


def _resolve_gangs(
    asked: Asked, lookup: SnapshotLookup, features: Features
) -> Iterator[LintGang]:
    how = ResolveOptions(lookup=lookup, features=features)
    for message in asked.gangs:
        part = resolve(message.uid, message.gang, how)
        yield LintGang(gang=message.gang, part=part)


def _list_labels(objects: list[PlanObject]) -> frozenset[str]:
    """List the keys of all labels of Node objects."""
    values = (entry.decoded.value for entry in objects)
    return frozenset(
        key for node in values if isinstance(node, Node) for key in node.metadata.labels
    )


def _check_pools(
    objects: list[PlanObject],
    snapshot: Snapshot,
    matches: Matches,
    features: Features,
) -> Iterator[Finding]:
    """Check pools against the nodes for which there is a Node object."""
    values = list(snapshot.inventory.pages.values())
    pools = [value for value in values if isinstance(value, PoolPart)]
    node_names = {
        entry.decoded.value.name
        for entry in objects
        if isinstance(entry.decoded.value, Node)
    }
    nodes = [v for v in values if isinstance(v, NodePart) and v.name in node_names]
    return check_pools(pools, nodes, matches.cluster, features)


def _check_validity(entry: PlanObject) -> Iterator[Finding]:
    """Find what the API server would refuse, once it has filled in its defaults."""
    value = with_defaults(entry).decoded.value
    if not isinstance(value, WritableObject):
        return
    for violation in validate(value):
        yield Finding(
            severity=Severity.ERROR,
            kind=entry.decoded.kind,
            namespace=value.metadata.namespace,
            name=value.metadata.name,
            field=violation.field,
            rule=LintRule.INVALID,
            message=violation.reason,
        )


def _check_fields(entry: PlanObject) -> Iterator[Finding]:
    """Find fields that the kind does not have; a newer cluster's object may have."""
    decoded = entry.decoded
    if not isinstance(decoded.value, WritableObject):
        return
    is_refused = bool(find_refused_fields(decoded))
    message = "unknown field; ignored"
    if is_refused:
        message = "unknown field"
    for path in decoded.unknown:
        yield Finding(
            severity=Severity.ERROR if is_refused else Severity.WARNING,
            kind=decoded.kind,
            namespace=decoded.value.metadata.namespace,
            name=decoded.value.metadata.name,
            field=path,
            rule=LintRule.UNKNOWN_FIELD,
            message="; ".join(filter(None, (message, explain_unknown_field(path)))),
        )


def _check_references(objects: list[PlanObject]) -> Iterator[Finding]:
    """Find templates that gangs name and that do not exist."""
    templates = {
        (entry.decoded.value.metadata.namespace, entry.decoded.value.metadata.name)
        for entry in objects
        if isinstance(entry.decoded.value, ResourceClaimTemplate)
    }
    for entry in objects:
        gang = entry.decoded.value
        if not isinstance(gang, Gang):
            continue
        for member_index, member in enumerate(gang.spec.members):
            for index, claim in enumerate(member.claims):
                key = (gang.metadata.namespace, claim.template_name or "")
                if claim.template_name and key not in templates:
                    yield Finding(
                        severity=Severity.ERROR,
                        kind="Gang",
                        namespace=gang.metadata.namespace,
                        name=gang.metadata.name,
                        field=(
                            f"spec.members[{member_index}].claims[{index}].templateName"
                        ),
                        rule=LintRule.UNKNOWN_TEMPLATE,
                        message=f"{claim.template_name!r} does not exist",
                    )
