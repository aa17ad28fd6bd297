"""(ownership, health, what is seen of drivers, observed DeviceTaintRules) -> steps.

Slices of other drivers are not ours to write, so their devices get taints by rule.

Owned devices: one rule a driver, or, where ownership depends on nodes, one a pool that
is local to an owned node, because rules cannot select nodes. A rule needs no slices: a
driver that restarts has none for a moment.

Devices that their own node says are not healthy: a rule each, which goes with its Node.
It keeps new pods away and ends none: whether pods are ended is the other driver's to
say.

Knows neither the API server nor the clock. Source: resource.k8s.io/v1 DeviceTaintRule
(KEP-5055).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from contracts.device import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from contracts.ids import DeviceID, DriverName, NodeName, PoolID
from contracts.messages import DeviceHealth
from contracts.meta import ObjectMeta
from contracts.names import OWNED, UNHEALTHY
from contracts.workload import Node
from publisher.ownership.ownership import Ownership
from publisher.slices.announcement_limits import NO_EXECUTE, NO_SCHEDULE
from publisher.slices.known_slices import ForeignPool
from publisher.slices.layout import OWNED_TAINT, owner_reference_of
from publisher.steps import Create, Delete, Step, Update

HEALTH_RULE = "moorings-health-"
"""What the names of rules about health begin with."""
MAX_NODE_RULES = 128
"""As many devices as a ResourceSlice has; a node whose agent says more gets no more."""
_OWNED_RULE = "moorings-owned-"
_DIGEST = 16
_OWNED_LABELS = {OWNED: "true"}


def plan_taint_rules(
    ownership: Ownership,
    foreign: Collection[ForeignPool],
    announced: Iterable[PoolID],
    nodes: Mapping[NodeName, Node],
    observed: Iterable[DeviceTaintRule],
) -> tuple[Step[DeviceTaintRule], ...]:
    """Plan what makes our rules those that ownership asks for.

    `announced` are the pools whose slices we write. Rules that are not ours are never
    touched.
    """
    rules_by_name = {rule.metadata.name: rule for rule in observed}
    ours = [rule for rule in rules_by_name.values() if _is_ownership_rule(rule)]
    # What we write ourselves needs no rule: our slices carry the taint.
    written = set(announced) - {other.pool for other in foreign}
    if ownership.node_labels:
        due = _rules_of_pools(ownership, foreign, written, nodes, ours)
    else:
        of_others = {other.pool.driver for other in foreign}
        of_us = {pool.driver for pool in written} - of_others
        due = map(_rule_of_driver, ownership.drivers - of_us)
    return _plan_rules(due, ours, rules_by_name)


def _plan_rules(
    due: Iterable[DeviceTaintRule],
    ours: Iterable[DeviceTaintRule],
    rules_by_name: Mapping[str, DeviceTaintRule],
) -> tuple[Step[DeviceTaintRule], ...]:
    """Plan what makes those of `ours` the rules that are due.

    They come before any is removed, so that nothing is untainted in between.
    """
    due_by_name = {rule.metadata.name: rule for rule in due}
    steps = (
        _plan_step(due_by_name[name], rules_by_name.get(name))
        for name in sorted(due_by_name)
    )
    return (
        *(step for step in steps if step is not None),
        *(
            Delete(rule)
            for rule in ours
            if rule.metadata.name not in due_by_name
            and not rule.metadata.deletion_timestamp
        ),
    )


def _is_ownership_rule(rule: DeviceTaintRule) -> bool:
    """True if a rule is about ownership; such rules tell Moorings itself nothing."""
    metadata = rule.metadata
    return metadata.name.startswith(_OWNED_RULE) and OWNED in metadata.labels


def _rules_of_pools(
    ownership: Ownership,
    foreign: Iterable[ForeignPool],
    written: Collection[PoolID],
    nodes: Mapping[NodeName, Node],
    ours: Iterable[DeviceTaintRule],
) -> Iterator[DeviceTaintRule]:
    """Yield a rule for each pool of an owned node; it goes with the node."""
    local = {other.pool: other.node for other in foreign if other.node is not None}
    for pool, name in (dict(_ruled_pools(ours)) | local).items():
        node = nodes.get(name)
        if node is None or pool in written or not ownership.taints_driver(pool.driver):
            continue
        if ownership.owns_node(node.metadata.labels):
            yield _rule_of_pool(pool, node)


def _ruled_pools(
    ours: Iterable[DeviceTaintRule],
) -> Iterator[tuple[PoolID, NodeName]]:
    """Go through the pools that rules name, each with the Node of the rule."""
    for rule in ours:
        selector = _selector_of(rule)
        if selector.driver and selector.pool:
            for owner in rule.metadata.owner_references:
                yield PoolID(selector.driver, selector.pool), NodeName(owner.name)


def _rule_of_driver(driver: DriverName) -> DeviceTaintRule:
    return DeviceTaintRule(
        metadata=ObjectMeta(name=f"{_OWNED_RULE}{driver}", labels=_OWNED_LABELS),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=driver), taint=OWNED_TAINT
        ),
    )


def _rule_of_pool(pool: PoolID, node: Node) -> DeviceTaintRule:
    digest = hashlib.sha256(str(pool).encode()).hexdigest()[:_DIGEST]
    return DeviceTaintRule(
        metadata=ObjectMeta(
            name=f"{_OWNED_RULE}{pool.driver}-{digest}",
            labels=_OWNED_LABELS,
            owner_references=(owner_reference_of(node),),
        ),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=pool.driver, pool=pool.pool),
            taint=OWNED_TAINT,
        ),
    )


def _plan_step(
    rule: DeviceTaintRule, current: DeviceTaintRule | None
) -> Step[DeviceTaintRule] | None:
    """Create or repair one rule; the time of its taint is the API server's."""
    if current is None:
        return Create(rule)
    if current.metadata.deletion_timestamp:
        return None
    time_added = current.spec.taint.time_added
    taint: DeviceTaint = replace(rule.spec.taint, time_added=time_added)
    repaired = DeviceTaintRule(
        metadata=replace(
            current.metadata,
            labels=current.metadata.labels | rule.metadata.labels,
            owner_references=rule.metadata.owner_references,
        ),
        spec=replace(rule.spec, taint=taint),
    )
    return None if repaired == current else Update(repaired)


def _selector_of(rule: DeviceTaintRule) -> DeviceTaintSelector:
    return rule.spec.device_selector or DeviceTaintSelector()


# --- health -----------------------------------------------------------------------


def plan_health_rules(
    judged: Iterable[tuple[NodeName, DeviceHealth]],
    foreign: Collection[ForeignPool],
    announced: Collection[PoolID],
    nodes: Mapping[NodeName, Node],
    observed: Iterable[DeviceTaintRule],
) -> tuple[Step[DeviceTaintRule], ...]:
    """Plan what taints the foreign devices that their own node says are not healthy.

    `announced` are the pools whose slices we write, unless somebody else does: ours
    carry the taint themselves. A rule stays while its driver restarts and has no
    slices. Rules that are not ours are never touched.
    """
    rules_by_name = {rule.metadata.name: rule for rule in observed}
    ours = [rule for rule in rules_by_name.values() if _is_health_rule(rule)]
    local = {(other.pool, other.node) for other in foreign} | set(_ruled_pools(ours))
    written = set(announced) - {other.pool for other in foreign}
    due = (
        _rule_of_device(health.device, taint, nodes[node])
        for node, health in judged
        if (health.device.pool_id, node) in local
        and health.device.pool_id not in written
        and node in nodes
        for taint in _list_taints(health)
    )
    return _plan_rules(_limit_rules(due), ours, rules_by_name)


def _is_health_rule(rule: DeviceTaintRule) -> bool:
    """True if a rule is about health; the solver hears that from node agents."""
    metadata = rule.metadata
    return metadata.name.startswith(HEALTH_RULE) and UNHEALTHY in metadata.labels


def _list_taints(health: DeviceHealth) -> Iterator[DeviceTaint]:
    """Yield the taint that keeps pods away, if there is one."""
    for taint in health.taints:
        if taint.key == UNHEALTHY and taint.effect in (NO_SCHEDULE, NO_EXECUTE):
            yield DeviceTaint(key=UNHEALTHY, value=taint.value, effect=NO_SCHEDULE)
            return


def _limit_rules(rules: Iterable[DeviceTaintRule]) -> Iterator[DeviceTaintRule]:
    counts: Counter[str] = Counter()
    for rule in rules:
        (owner,) = rule.metadata.owner_references
        counts[owner.name] += 1
        if counts[owner.name] <= MAX_NODE_RULES:
            yield rule


def _rule_of_device(
    device: DeviceID, taint: DeviceTaint, node: Node
) -> DeviceTaintRule:
    digest = hashlib.sha256(str(device).encode()).hexdigest()[:_DIGEST]
    selector = DeviceTaintSelector(
        driver=device.driver, pool=device.pool, device=device.device
    )
    return DeviceTaintRule(
        metadata=ObjectMeta(
            name=f"{HEALTH_RULE}{device.driver}-{digest}",
            labels={UNHEALTHY: "true"},
            owner_references=(owner_reference_of(node),),
        ),
        spec=DeviceTaintRuleSpec(device_selector=selector, taint=taint),
    )
