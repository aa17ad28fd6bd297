"""What namespaces may hold: no more devices than their quotas, counted anew."""

from __future__ import annotations

from solver.decision import Decision
from solver.judge.facts import Violations
from solver.judge.sharing import list_allocations
from solver.problem.problem import Problem


def quotas_are_kept(problem: Problem, decision: Decision) -> Violations:
    """No namespace gets more of a driver's devices than its quota has left.

    Results count, so each share of a device does; admin access takes nothing.
    """
    if not problem.quotas:
        return
    given = [
        (gang.namespace, result.driver)
        for gang, decided in zip(problem.gangs, decision.gangs, strict=False)
        for allocation in list_allocations(decided)
        for result in allocation.devices.results
        if not result.admin_access
    ]
    for quota in problem.quotas:
        mine = [driver for namespace, driver in given if namespace == quota.namespace]
        if quota.driver:
            mine = [driver for driver in mine if driver == quota.driver]
        # Who has more than it may already, as the quota became less, gets nothing.
        if mine and quota.used + len(mine) > quota.limit:
            what = f"devices of {quota.driver}" if quota.driver else "devices"
            yield (
                f"quotaKept: namespace {quota.namespace} would hold "
                f"{quota.used + len(mine)} {what} of {quota.limit}"
            )
