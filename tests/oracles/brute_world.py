"""What each node of a tiny Problem offers, read from the parts, for trying everything.

Plain Python over the recorded facts; shares no code with candidates, kinds, models or
judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from contracts.device import (
    CapacityRequestPolicy,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from contracts.features import Features
from contracts.ids import DeviceID, DeviceName
from contracts.quantity import NANO
from solver.problem.gangs import MemberPart, SubrequestPart
from solver.problem.problem import Problem
from solver.selectors.footprint import footprint_of
from solver.selectors.projection import project
from solver.snapshot.parts import NodePart, PoolPart, PoolSlice, UsePart

Pool = tuple[str, str]
_Value = TypeVar("_Value")
_KINDS = ("int", "bool", "string", "version")


class MalformedError(Exception):
    """A node selector that cannot be read: what follows is not tried here."""


@dataclass
class Thing:
    """A device as one node sees it."""

    name: DeviceID
    device: Device
    item: PoolSlice
    here: bool


@dataclass
class Place:
    """A node and all that it sees."""

    node: NodePart
    things: list[Thing] = field(default_factory=list)
    whole: bool = True
    counters: dict[tuple[Pool, str, str], int] = field(default_factory=dict)
    """What is left of them, by (pool, counter set, counter)."""
    members: dict[tuple[Pool, str], list[frozenset[str]]] = field(default_factory=dict)
    """Groups of the devices in use, by counter set."""


class World:
    """Everything there is to know of one tiny Problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.features: Features = problem.parameters.features
        values = [part.value for page in problem.pages for part in page.parts()]
        self.pools = [v for v in values if isinstance(v, PoolPart)]
        if self.features.rules_of_138:
            self.pools = list(map(_with_bare_names, self.pools))
        self.uses = {(v.driver, v.pool): v for v in values if isinstance(v, UsePart)}
        nodes = {v.name: v for v in values if isinstance(v, NodePart)}
        for pool in self.pools:
            if pool.node:
                nodes.setdefault(pool.node, NodePart(name=pool.node))
        self.places = [
            self._place(nodes[name])
            for name in sorted(nodes)
            if not nodes[name].unavailable
        ]

    # --- who has what --------------------------------------------------------------

    def taken(self, thing: Thing) -> bool:
        """True if nobody else may have the device."""
        name = thing.name
        use = self.uses.get((name.driver, name.pool))
        if use is None:
            return False
        shared = {s.device for s in use.shared}
        alone = not self.shareable(thing)
        return name.device in use.taken or (alone and name.device in shared)

    def shares(self, name: DeviceID) -> dict[str, int] | None:
        """Add up what shares of others consume; None: there are none."""
        use = self.uses.get((name.driver, name.pool))
        for share in use.shared if use else ():
            if share.device == name.device:
                if not self.features.rules_of_138:
                    return {n: q.nano for n, q in share.consumed}
                total: dict[str, int] = {}
                for n, q in share.consumed:
                    bare = n.removeprefix(f"{name.driver}/")
                    total[bare] = total.get(bare, 0) + q.nano
                return total
        return None

    def taints(self, thing: Thing) -> list[DeviceTaint]:
        """List all taints of a device."""
        use = self.uses.get((thing.name.driver, thing.name.pool))
        more = [t for d, t in (use.taints if use else ()) if d == thing.name.device]
        return [*thing.device.taints, *more]

    # --- which nodes will do -------------------------------------------------------

    def admits(self, node: NodePart, pod: MemberPart) -> bool:
        """Say whether a pod may be on a node, amounts aside."""
        taints = [(t.key, t.value, t.effect) for t in node.taints]
        if node.unschedulable:
            taints.append(("node.kubernetes.io/unschedulable", "", "NoSchedule"))
        for key, value, effect in taints:
            if effect != "PreferNoSchedule" and not any(
                t.key in ("", key)
                and t.effect in ("", effect)
                and (t.operator == "Exists" or t.value == value)
                for t in pod.tolerations
            ):
                return False
        wanted = pod.affinity
        return (
            pod.node_name in ("", node.name)
            and pod.node_selector.items() <= node.labels.items()
            and (wanted is None or _selects(wanted.node_selector_terms, node))
            and not set(pod.extended_resources) & set(node.plugin_resources)
            and set(pod.features) <= set(node.declared_features)
        )

    # --- what a request can have ---------------------------------------------------

    def selected(self, asked: SubrequestPart, thing: Thing) -> bool | None:
        """Say what the selectors say; None: one of them fails."""
        for expression in asked.selectors:
            row = project(footprint_of(expression), thing.name.driver, thing.device)
            verdict = self.problem.selectors.get(expression, row)
            if verdict is None or verdict.error:
                return None
            if not verdict.value:
                return False
        return True

    def meant(self, asked: SubrequestPart, thing: Thing) -> bool:
        """Say whether `All` would mean it."""
        binds = thing.device.binding_conditions and not self.features.device_binding
        if self.features.partitionable_devices and any(
            counter.value.nano < 0
            for c in thing.device.consumes_counters
            for counter in c.counters.values()
        ):
            return False
        fits = (
            not self.features.consumable_capacity or self.cost(asked, thing) is not None
        )
        return bool(
            thing.here and not binds and fits and self.selected(asked, thing) is True
        )

    def open(self, asked: SubrequestPart, thing: Thing, place: Place) -> bool:
        """Say whether it may be had now, as far as others do not matter."""
        if self.taken(thing) and not asked.admin_access:
            return False
        if self.features.device_taints and any(
            taint.effect in ("NoSchedule", "NoExecute")
            and taint.key != "moorings.dev/owned"
            and not any(
                t.effect in ("", taint.effect)
                and t.key in ("", taint.key)
                and (t.operator == "Exists" or t.value == taint.value)
                for t in asked.tolerations
            )
            for taint in self.taints(thing)
        ):
            return False
        if thing.device.consumes_counters and not self.features.partitionable_devices:
            return False
        f = self.features
        if thing.item.skip_node_operations and (
            f.list_type_attributes
            or f.derived_attributes
            or f.compatibility_groups
            or f.optional_node_operations
            or f.rules_of_138
        ):
            declared = "DRAOptionalNodeOperations" in place.node.declared_features
            return f.optional_node_operations and declared
        return True

    def cost(self, asked: SubrequestPart, thing: Thing) -> dict[str, int] | None:
        """Compute what a use consumes; None: it cannot be."""
        requested = dict(asked.capacity)
        if self.features.rules_of_138:
            requested = _bare(requested, thing.name.driver)
            negative = any(q.nano < 0 for q in requested.values())
            if negative or len(requested) < len(asked.capacity):
                return None
        if not set(requested) <= set(thing.device.capacity):
            return None
        found = {}
        for name, capacity in thing.device.capacity.items():
            wanted = requested.get(name)
            amount = _amount(
                capacity.value.nano,
                capacity.request_policy,
                None if wanted is None else wanted.nano,
                milli=self.features.fractional_capacity_range,
            )
            if amount is None or amount < 0 or amount > capacity.value.nano:
                return None
            found[name] = amount
        return found

    def shareable(self, thing: Thing) -> bool:
        """Say whether several may have the device."""
        multiple = bool(thing.device.allow_multiple_allocations)
        return multiple and self.features.consumable_capacity

    def values(
        self, asked: SubrequestPart, attribute: str, thing: Thing
    ) -> frozenset[tuple[str, object]]:
        """Read what a constraint compares."""
        found = thing.device.attributes.get(attribute)
        domain, _, short = attribute.partition("/")
        if found is None and domain == thing.name.driver:
            found = thing.device.attributes.get(short)
        for name, expression in asked.derived_attributes:
            if name == attribute:
                text = "=" + expression
                row = project(footprint_of(text), thing.name.driver, thing.device)
                verdict = self.problem.selectors.get(text, row)
                found = verdict.attribute if verdict else None
        if found is None:
            return frozenset()
        if self.features.rules_of_138:
            found = _without_build(found)
        for kind in _KINDS:
            listed = getattr(found, f"{kind}_values")
            if listed:
                on = self.features.list_type_attributes
                return frozenset((kind, v) for v in listed) if on else frozenset()
        single = ((kind, getattr(found, f"{kind}_value")) for kind in _KINDS)
        return frozenset((kind, v) for kind, v in single if v is not None)

    # --- pools ---------------------------------------------------------------------

    def _place(self, node: NodePart) -> Place:
        place = Place(node)
        for pool in self.pools:
            self._add(pool, place)
        return place

    def _add(self, pool: PoolPart, place: Place) -> None:
        node, f = place.node, self.features
        usable = [
            s
            for s in pool.slices
            if f.compatibility_groups
            or not any(
                c.compatibility_groups for d in s.devices for c in d.consumes_counters
            )
        ]
        seen = [s for s in usable if self._seen(s, node)]
        if not seen:
            return
        generation = max(s.generation for s in seen)
        seen = [s for s in seen if s.generation == generation]
        rest: list[PoolSlice] = []
        if len(seen) != seen[0].slice_count:
            if any(s.generation > generation for s in pool.slices):
                return
            every = [s for s in usable if s.generation == generation]
            if len(every) != seen[0].slice_count:
                place.whole = False
                return
            rest = [s for s in every if s.name not in {x.name for x in seen}]
        on = f.partitionable_devices
        sets = [c for s in (*seen, *rest) if on for c in s.shared_counters]
        with_devices = [s for s in seen if not (on and s.shared_counters)]
        devices = [d for s in with_devices for d in s.devices]
        away = [d for s in rest if not (on and s.shared_counters) for d in s.devices]
        known = {item.name: set(item.counters) for item in sets}
        wrong = on and any(
            c.counter_set not in known or set(c.counters) - known[c.counter_set]
            for d in (*devices, *away)
            for c in d.consumes_counters
        )
        names = Counter(d.name for d in devices)
        if wrong or max([0, *names.values()]) > 1 or len(known) < len(sets):
            place.whole = False
            return
        key = (pool.driver, pool.pool)
        for item in sets:
            for name, counter in item.counters.items():
                place.counters[key, item.name, name] = counter.value.nano
        use = self.uses.get(key)
        held = {*use.taken, *(s.device for s in use.shared)} if use else set()
        for d in (*devices, *away):
            if d.name in held:
                _draw(place, key, d.consumes_counters)
        self._draw_unpublished(place, pool, held - {d.name for d in (*devices, *away)})
        for s in with_devices:
            for d in s.devices:
                here = not s.per_device_node_selection or _at(d, node)
                full = DeviceID(pool.driver, pool.pool, d.name)
                place.things.append(Thing(full, d, s, here))

    def _draw_unpublished(
        self, place: Place, pool: PoolPart, names: set[DeviceName]
    ) -> None:
        """Count what is held of a pool but not in its slices of today."""
        key = (pool.driver, pool.pool)
        use, older = self.uses.get(key), {d.name: d for d in pool.devices}
        told = {u.device: u.consumes_counters for u in use.unpublished} if use else {}
        for name in names:
            drawn = older[name].consumes_counters if name in older else told.get(name)
            if drawn is not None:
                _draw(place, key, drawn)
                continue
            for counter in place.counters:
                if counter[0] == key:
                    place.counters[counter] = -1

    def _seen(self, s: PoolSlice, node: NodePart) -> bool:
        if not self.features.partitionable_devices and (
            s.shared_counters or s.per_device_node_selection is not None
        ):
            return False
        if s.node_name or s.all_nodes or s.node_selector:
            return _at(s, node)
        return bool(s.per_device_node_selection) and any(
            _at(d, node) for d in s.devices
        )


def _draw(place: Place, pool: Pool, drawn: Iterable[DeviceCounterConsumption]) -> None:
    """Count what a device in use draws."""
    for c in drawn:
        groups = frozenset(c.compatibility_groups or ())
        place.members.setdefault((pool, c.counter_set), []).append(groups)
        for name, counter in c.counters.items():
            if (pool, c.counter_set, name) in place.counters:
                amount = max(counter.value.nano, 0)
                place.counters[pool, c.counter_set, name] -= amount


def _at(s: PoolSlice | Device, node: NodePart) -> bool:
    if s.node_name:
        return s.node_name == node.name
    if s.all_nodes:
        return True
    return _selects(
        s.node_selector.node_selector_terms if s.node_selector else (), node
    )


def _selects(terms: tuple[NodeSelectorTerm, ...], node: NodePart) -> bool:
    return any(
        (t.match_expressions or t.match_fields)
        and all(_holds(r, node.labels.get(r.key)) for r in t.match_expressions)
        and all(_holds(r, node.name) for r in t.match_fields)
        for t in terms
    )


def _holds(r: NodeSelectorRequirement, value: str | None) -> bool:
    if r.operator in ("Gt", "Lt"):
        if not r.values or not r.values[0].lstrip("-").isdigit():
            raise MalformedError(r.operator)
        if value is None or not value.lstrip("-").isdigit():
            return False
        more = int(value) - int(r.values[0])
        return more > 0 if r.operator == "Gt" else more < 0
    answers = {
        "In": value in r.values,
        "NotIn": value not in r.values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    named = r.operator in ("In", "NotIn")
    if r.operator not in answers or named != bool(r.values):
        raise MalformedError(r.operator)
    return answers[r.operator]


def _bare(named: Mapping[str, _Value], driver: str) -> dict[str, _Value]:
    """Name capacities without their driver; of two of one name the long one counts."""
    long_last = sorted(named, key=lambda name: "/" in name)
    return {name.removeprefix(f"{driver}/"): named[name] for name in long_last}


def _with_bare_names(pool: PoolPart) -> PoolPart:
    return replace(
        pool,
        slices=tuple(
            replace(
                item,
                devices=tuple(
                    replace(device, capacity=_bare(device.capacity, pool.driver))
                    for device in item.devices
                ),
            )
            for item in pool.slices
        ),
    )


def _without_build(attribute: DeviceAttribute) -> DeviceAttribute:
    """Drop what two equal versions may differ in."""
    one, several = attribute.version_value, attribute.version_values
    return replace(
        attribute,
        version_value=None if one is None else one.split("+")[0],
        version_values=several and tuple(text.split("+")[0] for text in several),
    )


def _amount(
    total: int, policy: CapacityRequestPolicy | None, wanted: int | None, *, milli: bool
) -> int | None:
    """Compute what one use consumes; None: the policy does not allow it."""
    if policy is None:
        return total if wanted is None else wanted
    default = None if policy.default is None else policy.default.nano
    span, values = policy.valid_range, [v.nano for v in policy.valid_values or ()]
    unit = NANO
    if span is not None and milli:
        parts = [q.nano for q in (span.min, span.max, span.step) if q is not None]
        if all(part % (NANO // 1000) == 0 for part in parts):
            unit = NANO // 1000
    if wanted is None:
        amount = total if default is None else default
    elif span is not None and span.min is not None:
        amount = max(wanted, span.min.nano)
        if span.step is not None and wanted >= span.min.nano:
            if unit != NANO and amount % unit:
                return None
            start, wide = -(-span.min.nano // unit), -(-span.step.nano // unit)
            steps = -(-(-(-amount // unit) - start) // wide)
            amount = (start + steps * wide) * unit
    else:
        amount = next((v for v in values if v >= wanted), wanted)
    if amount == default:
        return amount
    if span is None:
        return amount if not values or amount in values else None
    if span.max is not None and amount > span.max.nano:
        return None
    if span.step is None:
        return amount
    if span.min is None or (unit != NANO and amount % unit):
        return None
    start, wide = -(-span.min.nano // unit), -(-span.step.nano // unit)
    return amount if (-(-amount // unit) - start) % wide == 0 else None
