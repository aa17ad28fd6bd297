"""Decisions that break one rule: made for one Problem, then changed by one thing.

Or held against a Problem that differs in the one thing that the rule is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from contracts.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
)
from contracts.features import Features
from contracts.gang import Gang
from contracts.quantity import Quantity
from solver.allocate import allocate
from solver.decision import Decision
from solver.judge.rules import judge
from solver.problem.problem import Problem
from solver.snapshot.snapshot import Snapshot
from tests.builders import (
    counter_set,
    device,
    gang,
    member,
    member_claim,
    pool,
    request,
    resource_slice,
)
from tests.builders.problems import PARAMETERS, observe, problem_of, snapshot_of

Broken = tuple[Problem, Decision]


def gang_of(*claims: Any, number: int = 1, **more: Any) -> Gang:
    """Make a gang of one pod with these claims."""
    uid = f"00000000-0000-4000-8000-{number:012}"
    return gang(member(*claims, **more), name=f"g{number}", uid=uid)


def problem_with(
    snapshot: Snapshot,
    features: Features = Features(),  # noqa: B008  # frozen
) -> Problem:
    """Make a Problem of the snapshot, with these feature gates."""
    return problem_of(snapshot, structs.replace(PARAMETERS, features=features))


def world(*content: Device, gangs: tuple[Gang, ...] = (), **fields: Any) -> Snapshot:
    """Make a node `n` with one announced pool, and gangs that wait."""
    return snapshot_of(
        {"n": [pool(*content, name="n", **fields)]}, gangs or [gang_of()]
    )


def sliced(*content: Device, gangs: tuple[Gang, ...] = (), **fields: Any) -> Snapshot:
    """Make a node `n` with one ResourceSlice, and gangs that wait."""
    item = resource_slice(*content, name="s", pool="n", **fields)
    base = snapshot_of({"n": []}, gangs or [gang_of()])
    return observe(base, "s", item)


def with_result(decision: Decision, index: int = 0, **fields: Any) -> Decision:
    """Change one result of the first claim of the first pod."""

    def change(allocation: Any) -> Any:
        results = list(allocation.devices.results)
        results[index] = structs.replace(results[index], **fields)
        inner = structs.replace(allocation.devices, results=tuple(results))
        return structs.replace(allocation, devices=inner)

    return with_allocation(decision, change)


def with_allocation(decision: Decision, change: Callable[[Any], Any]) -> Decision:
    """Change the allocation of the first claim of the first pod."""
    first, *gangs = decision.gangs
    pod, *pods = first.members
    claim, *claims = pod.claims
    claim = structs.replace(claim, allocation=change(claim.allocation))
    pod = structs.replace(pod, claims=(claim, *claims))
    changed = structs.replace(first, members=(pod, *pods))
    return structs.replace(decision, gangs=(changed, *gangs))


def against(decided: Problem, held: Problem) -> Broken:
    """Decide one Problem, and hold the decision against another."""
    return held, allocate(decided)


def result_changed(snapshot: Snapshot, index: int = 0, **fields: Any) -> Broken:
    """Decide, and change one result of the first claim."""
    made = problem_with(snapshot)
    return made, with_result(allocate(made), index, **fields)


def allocation_changed(snapshot: Snapshot, change: Callable[[Any], Any]) -> Broken:
    """Decide, and change the allocation of the first claim."""
    made = problem_with(snapshot)
    return made, with_allocation(allocate(made), change)


def device_drawing(name: str, memory: str, *groups: str) -> Device:
    """Make a device that draws memory from the counters of a GPU."""
    item = device(name, consumes={"gpu": {"memory": memory}})
    consumption = structs.replace(
        item.consumes_counters[0], compatibility_groups=groups or None
    )
    return structs.replace(item, consumes_counters=(consumption,))


def counters(memory: str) -> list[Any]:
    """Make the counters of a GPU."""
    return [counter_set("gpu", memory=memory)]


def shared_device(total: str, most: str = "8Gi") -> Device:
    """Make a device whose memory many claims may share."""
    span = CapacityRequestPolicyRange(
        min=Quantity.parse("1Gi"), max=Quantity.parse(most)
    )
    policy = CapacityRequestPolicy(default=Quantity.parse("1Gi"), valid_range=span)
    capacity = DeviceCapacity(value=Quantity.parse(total), request_policy=policy)
    return device(capacity={"memory": capacity}, allow_multiple_allocations=True)


FOUR = member_claim(request(capacity={"memory": "4Gi"}))
TWO_PODS = (gang_of(FOUR, number=1), gang_of(FOUR, number=2))
BINDING = device(binding_conditions=("ready",), binding_failure_conditions=("bad",))


def rules_broken(broken: Broken) -> set[str]:
    """Return the names of the rules that the judge finds broken.

    The decision must place somebody: of nothing, nothing can be wrong.
    """
    held, decision = broken
    assert any(gang.members for gang in decision.gangs)
    return {violation.partition(":")[0] for violation in judge(held, decision)}
