"""What lint holds against each other: one claim, or objects, and the devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from contracts.claim import DeviceClass, DeviceConstraint, DeviceRequest
from contracts.codec import to_builtins
from contracts.device import Device
from contracts.features import Features
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from moorings.lint.claims import LintClaim, gather_claims, make_probe_gang
from moorings.lint.findings import Lint
from moorings.lint.lint import lint
from moorings.lint.matches import Matches
from moorings.plan.objects import PlanObject
from solver.cel.evaluator import SelectorEvaluator
from solver.problem.assemble import SnapshotLookup, find_missing_verdicts
from solver.selectors.table import SelectorTable
from tests.builders.claims import claim
from tests.builders.devices import pool
from tests.builders.problems import PlainEvaluator, evaluate, snapshot_of
from tests.builders.values import NODE


def lint_claim(
    *requests: DeviceRequest,
    devices: Sequence[Device] = (),
    constraints: Sequence[DeviceConstraint] = (),
    classes: Sequence[DeviceClass] = (),
) -> tuple[LintClaim, Matches]:
    """Make a claim, and hold its selectors and those of classes against devices.

    The devices are one pool of one node; none: the input has no devices.
    """
    features = Features()
    snapshot = snapshot_of({NODE: [pool(*devices)]} if devices else {})
    raw = to_builtins(to_kubernetes(claim(*requests, constraints=constraints)))
    entry = PlanObject.of("x", raw, decode_object(raw))
    (linted,) = gather_claims([entry], SnapshotLookup(snapshot), features)
    gang, table = make_probe_gang([linted], classes), SelectorTable()
    while missing := find_missing_verdicts(snapshot, (gang,), table):
        table = table.with_verdicts(missing, [evaluate(*row) for row in missing])
    return linted, Matches(tuple(snapshot.inventory.pages), table, features)


def lint_objects(*values: WritableObject | dict[str, Any]) -> Lint:
    """Lint these objects, or documents; selectors are judged without a sandbox."""
    entries = []
    for value in values:
        raw: dict[str, Any] = (
            value if isinstance(value, dict) else to_builtins(to_kubernetes(value))
        )
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    return lint(entries, Features(), cast("SelectorEvaluator", PlainEvaluator()))
