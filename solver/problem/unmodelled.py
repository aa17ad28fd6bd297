"""Devices that a request might get but this version cannot decide about.

With DRANodeAllocatableResources on (alpha, off by default) a device may need CPU or
memory of its node, beside what pods need of it. A gang that could get such a device
is refused by the field's name: leaving the device out could turn into a wrong "no".
Source: KEP-5517.
"""

from __future__ import annotations

from contracts.allocation import Reason, Rule
from solver.devices.candidates import select_devices
from solver.devices.facts import pool_of
from solver.devices.pool_projections import pools_of
from solver.problem.gangs import GangPart
from solver.problem.problem import Problem

FIELD = "devices[].nodeAllocatableResources"


def find_unmodelled(gang: GangPart, problem: Problem) -> Reason | None:
    """Return why a gang cannot be decided; None: it can."""
    if not problem.parameters.features.node_allocatable_resources:
        return None
    for member in gang.members:
        for claim in member.claims:
            for request in claim.requests:
                for alternative in request.alternatives:
                    if _may_get_one(alternative.selectors, problem):
                        return Reason(
                            rule=Rule.NOT_MODELLED,
                            subject=f"{member.name}/{claim.name}/{request.name}",
                            field=FIELD,
                            message="selects devices that need resources of their node",
                        )
    return None


def _may_get_one(selectors: tuple[str, ...], problem: Problem) -> bool:
    for page in problem.pages:
        for part in pools_of(page):
            bits = select_devices(part, selectors, problem.selectors).bits
            for index, device in enumerate(pool_of(part).devices):
                if device.node_allocatable_resources and bits >> index & 1:
                    return True
    return False
