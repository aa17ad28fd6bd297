"""Rules that a gang declares, in its Gang object or in its pods' annotations. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contracts.gang import Gang, Member
from contracts.names import CONSTRAINTS, TOPOLOGY
from contracts.pods.declared_rules import (
    MOST_SHOWN,
    DeclaredRules,
    InvalidRules,
    read_declared_rules,
)
from contracts.pods.gang_owners import GangOwner
from contracts.validate.gang_rules import check_constraints, check_topology
from contracts.workload import Pod
from publisher.gangs.running.growth_rules import keep_rules
from publisher.gangs.submit.readiness import NotReady


def find_rules(
    pods: Sequence[Pod],
    gang: Gang | None,
    owner: GangOwner | None,
    members: Sequence[Member] | None,
) -> DeclaredRules | NotReady:
    """Return the rules of the gang of these pods, or what is wrong with them.

    `owner`: what gives a gang without a Gang object its size, if anything does.
    `members`: all of the gang; None: the pods are a part of it. The solver reports what
    is wrong with a Gang object.
    """
    if gang is not None:
        spec = gang.spec
        return DeclaredRules(constraints=spec.constraints, topology=spec.topology)
    declared = read_declared_rules(pods)
    if isinstance(declared, DeclaredRules) and members is not None:
        declared = _find_fault(declared, members) or declared
    if isinstance(declared, InvalidRules):
        return NotReady(reason=declared.reason, message=declared.message)
    if owner is None or not owner.topology:
        return declared
    with_owners = replace(declared, topology=(*declared.topology, *owner.topology))
    return with_owners if members is None else keep_rules(with_owners, members)


def _find_fault(
    declared: DeclaredRules, members: Sequence[Member]
) -> InvalidRules | None:
    """Name the first rule that the pods cannot be held to; None: there is none."""
    constraints = check_constraints(declared.constraints, members, CONSTRAINTS)
    topology = check_topology(declared.topology, members, TOPOLOGY)
    for reason, violations in (
        ("ConstraintsInvalid", constraints),
        ("TopologyInvalid", topology),
    ):
        for violation in violations:
            message = f"annotation {violation}"[:MOST_SHOWN]
            return InvalidRules(reason=reason, message=message)
    return None
