"""What a node has and what a pod asks for, in the words of autoscalers. Pure."""

from __future__ import annotations

from collections import Counter

from contracts.counts import counted
from contracts.ids import NodeName
from solver.explain.node_checks import format_amount
from solver.problem.gangs import MemberPart
from solver.problem.problem import Problem
from solver.snapshot.parts import NodePart, PoolPart
from solver.timeline.holdings import sort_pages

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
MOST_CHARACTERS = 256


def describe_node(problem: Problem, name: NodeName) -> str:
    """Describe a node by its instance type, if it has one, and its devices."""
    kind, devices = "", Counter[str]()
    for value in sort_pages(problem.pages).of(name):
        if isinstance(value, NodePart):
            kind = value.labels.get(INSTANCE_TYPE, "")
        elif isinstance(value, PoolPart):
            devices[value.driver] += len({device.name for device in value.devices})
    return _cut(([kind] if kind else []) + _count_devices(devices))


def describe_pod(member: MemberPart) -> str:
    """Describe what each pod of a member asks for: devices by class, and resources.

    Of alternatives the first counts.
    """
    devices, whole = Counter[str](), set[str]()
    requests = (request for claim in member.claims for request in claim.requests)
    for request in requests:
        for asked in request.alternatives[:1]:
            if asked.all_devices:
                whole.add(asked.device_class)
            else:
                devices[asked.device_class] += asked.count
    texts = _count_devices(devices)
    texts += [f"all devices of {name}" for name in sorted(whole)]
    texts += [
        format_amount(name, units)
        for name, units in sorted(member.resources.items())
        if units
    ]
    texts += [f"label {key}={of}" for key, of in sorted(member.node_selector.items())]
    return _cut(texts)


def _cut(texts: list[str]) -> str:
    """List the texts that there is room for: a shape is a label of a metric, too."""
    text = ", ".join(texts)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3]}..."


def _count_devices(devices: Counter[str]) -> list[str]:
    return [
        f"{counted(number, 'device')} of {of}" for of, number in sorted(devices.items())
    ]
