"""A plan takes the service's way from objects to an answer, in one process."""

from __future__ import annotations

from typing import Any, cast

from contracts.codec import to_builtins
from contracts.kubernetes.decode import WritableObject, decode_object, to_kubernetes
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.objects import PlanObject
from moorings.plan.plan import Plan
from solver.cel.evaluator import SelectorEvaluator
from tests import builders
from tests.builders.problems import PlainEvaluator

WORLD: tuple[WritableObject, ...] = (
    builders.device_class(),
    builders.resource_slice(*builders.devices(2)),
)


def make_planner() -> Planner:
    """Make a planner without a sandbox."""
    return Planner(cast("SelectorEvaluator", PlainEvaluator()))


def plan(*values: WritableObject, planner: Planner | None = None, **how: Any) -> Plan:
    """Plan these objects beside two devices of one class."""
    entries = []
    for value in (*WORLD, *values):
        raw = to_builtins(to_kubernetes(value))
        entries.append(PlanObject.of("x", raw, decode_object(raw)))
    return (planner or make_planner()).plan(entries, PlanOptions(**how))


def test_both_orders_allocate_what_can_be_had() -> None:
    """And name the node of the devices."""
    for order in ("optimal", "upstream"):
        (claim,) = plan(builders.claim(builders.request(count=2)), order=order).claims
        assert (claim.verdict, claim.node) == ("allocated", builders.NODE)


def test_verdicts_are_kept_from_plan_to_plan() -> None:
    """Each plan counts the evaluations that it caused."""
    planner = make_planner()
    first = plan(builders.claim(), planner=planner)
    second = plan(builders.claim(), planner=planner)
    assert first.stats is not None
    assert second.stats is not None
    assert first.stats.selector_evaluations > 0
    assert second.stats.selector_evaluations == 0
    assert second.problem_hash == first.problem_hash


def test_a_plan_that_runs_out_of_time_says_so() -> None:
    """Of the order that has a limit in seconds."""
    (claim,) = plan(builders.claim(), order="upstream", timeout_seconds=-1.0).claims
    assert (claim.verdict, claim.error_scope) == ("error", "aborted")


def test_both_orders_fill_in_what_is_not_said() -> None:
    """As the API server does, unless objects are taken as they are stored."""
    plain = builders.claim(builders.request(mode="", count=0))
    for order in ("optimal", "upstream"):
        (claim,) = plan(plain, order=order).claims
        assert claim.verdict == "allocated"
    (claim,) = plan(plain, order="upstream", as_stored=True).claims
    assert "unsupported count mode" in str(claim.error)


def test_a_claim_by_itself_is_told_its_own_fields() -> None:
    """It is in no Gang that its author wrote."""
    (claim,) = plan(builders.claim(builders.request(count=-1))).claims
    assert [reason.field for reason in claim.reasons] == [
        "spec.devices.requests[0].exactly.count"
    ]
