"""(health of foreign devices, foreign slices, observed DeviceTaintRules) -> steps.

A node agent may judge devices that another driver publishes. Slices of that driver are
not ours to write, so such a device gets the taint by a rule of its own, which goes with
its Node. The rule keeps new pods away and ends none: whether pods are ended is the
other driver's to say. Knows neither the API server nor the clock.

Source: resource.k8s.io/v1 DeviceTaintRule (KEP-5055).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from contracts.device import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from contracts.ids import DeviceID, NodeName, PoolID
from contracts.messages import DeviceHealth
from contracts.meta import ObjectMeta
from contracts.names import UNHEALTHY
from contracts.workload import Node
from publisher.ownership.plan_taint_rules import plan_rules, ruled_pools
from publisher.slices.announcement_limits import NO_EXECUTE, NO_SCHEDULE
from publisher.slices.known_slices import ForeignPool
from publisher.slices.layout import owner_reference_of
from publisher.steps import Step

HEALTH_RULE = "moorings-health-"
"""What the names of these rules begin with."""
MAX_NODE_RULES = 128
"""As many devices as a ResourceSlice has; a node whose agent says more gets no more."""
_DIGEST = 16
_LABELS = {UNHEALTHY: "true"}


def plan_health_rules(
    judged: Iterable[tuple[NodeName, DeviceHealth]],
    foreign: Collection[ForeignPool],
    announced: Collection[PoolID],
    nodes: Mapping[NodeName, Node],
    observed: Iterable[DeviceTaintRule],
) -> tuple[Step[DeviceTaintRule], ...]:
    """Plan what taints the foreign devices that their own node says are not healthy.

    `announced` are the pools whose slices we write: these carry the taint themselves.
    A rule stays while its driver restarts and has no slices. Rules that are not ours
    are never touched.
    """
    rules_by_name = {rule.metadata.name: rule for rule in observed}
    ours = [rule for rule in rules_by_name.values() if is_health_rule(rule)]
    local = {(other.pool, other.node) for other in foreign} | set(ruled_pools(ours))
    due = (
        _make_rule(health.device, taint, nodes[node])
        for node, health in judged
        if (health.device.pool_id, node) in local
        and health.device.pool_id not in announced
        and node in nodes
        for taint in _list_taints(health)
    )
    return plan_rules(_limit(due), ours, rules_by_name)


def is_health_rule(rule: DeviceTaintRule) -> bool:
    """Whether a rule is one of these; the solver has them from node agents."""
    metadata = rule.metadata
    return metadata.name.startswith(HEALTH_RULE) and UNHEALTHY in metadata.labels


def _list_taints(health: DeviceHealth) -> Iterator[DeviceTaint]:
    """Yield the taint that keeps pods away, if there is one."""
    for taint in health.taints:
        if taint.key == UNHEALTHY and taint.effect in (NO_SCHEDULE, NO_EXECUTE):
            yield DeviceTaint(key=UNHEALTHY, value=taint.value, effect=NO_SCHEDULE)
            return


def _limit(rules: Iterable[DeviceTaintRule]) -> Iterator[DeviceTaintRule]:
    counts: Counter[str] = Counter()
    for rule in rules:
        (owner,) = rule.metadata.owner_references
        counts[owner.name] += 1
        if counts[owner.name] <= MAX_NODE_RULES:
            yield rule


def _make_rule(device: DeviceID, taint: DeviceTaint, node: Node) -> DeviceTaintRule:
    digest = hashlib.sha256(str(device).encode()).hexdigest()[:_DIGEST]
    selector = DeviceTaintSelector(
        driver=device.driver, pool=device.pool, device=device.device
    )
    return DeviceTaintRule(
        metadata=ObjectMeta(
            name=f"{HEALTH_RULE}{device.driver}-{digest}",
            labels=_LABELS,
            owner_references=(owner_reference_of(node),),
        ),
        spec=DeviceTaintRuleSpec(device_selector=selector, taint=taint),
    )
