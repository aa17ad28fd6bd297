"""Which PodGroups are one gang, by the CompositePodGroups above them.

A gang is all that is under the topmost group of groups whose policy is `gang`; one of
policy `basic` has groups that are decided each by itself. A Job's own PodGroup says
what the Job says, and its gang is the Job's. Knows no pod.

Source: k8s.io/kubernetes v1.38, pkg/scheduler/schedule_one_podgroup.go,
validatePodGroupHierarchy; pkg/controller/job/job_scheduling_manager.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from contracts.gang import MAX_MEMBERS as MOST_PODS
from contracts.gang_rules import MAX_TOPOLOGY, GangTopology
from contracts.pods.gang_owners import GangOwner
from contracts.pods.group_trees import GroupNode
from contracts.pods.membership import (
    COMPOSITE,
    POD_GROUP,
    Membership,
    OwnerKey,
    WorkloadAPI,
)
from publisher.gang_names import name_member
from publisher.natural_order import order_naturally

_MOST_LEVELS = 4
_GONE = 10_000
"""So many groups that are gone are remembered: their pods may still run."""
_OF_JOBS = (WorkloadAPI.INDEXED_JOB, WorkloadAPI.JOB)
_TOPOLOGY = "spec.schedulingConstraints.topology"


class GroupTrees:
    """PodGroups and CompositePodGroups, and the gangs that they are."""

    def __init__(
        self, groups: Mapping[OwnerKey, GangOwner], *, joins: bool = True
    ) -> None:
        """`groups` are those that are seen, beside other owners.

        Unless it `joins` them, what has a parent is not decided.
        """
        self._groups = groups
        self._joins = joins
        self._gone: OrderedDict[OwnerKey, GangOwner] = OrderedDict()
        self._children: dict[OwnerKey, set[OwnerKey]] = {}
        self._gangs: dict[OwnerKey, GangOwner] = {}

    def note(
        self, key: OwnerKey, before: GangOwner | None, after: GangOwner | None
    ) -> None:
        """Note that a group is new, has changed, or is gone; others: nothing."""
        if key.kind not in (POD_GROUP, COMPOSITE):
            return
        self._gangs.clear()
        self._gone.pop(key, None)
        if before is not None and before.parent:
            siblings = self._children[_parent_of(before)]
            siblings.discard(key)
            if not siblings:
                del self._children[_parent_of(before)]
        if after is not None and after.parent:
            self._children.setdefault(_parent_of(after), set()).add(key)
        if after is None and before is not None:
            self._gone[key] = before
            if len(self._gone) > _GONE:
                self._gone.popitem(last=False)

    def list_pod_groups(self, key: OwnerKey) -> frozenset[OwnerKey]:
        """List the PodGroups whose pods are concerned when a group changes."""
        found: set[OwnerKey] = set()
        todo, seen = [key], {key}
        while todo:
            group = todo.pop()
            if group.kind == POD_GROUP:
                found.add(group)
            new = self._children.get(group, set()) - seen
            seen |= new
            todo += new
        return frozenset(found)

    def join(self, found: Membership, other: Membership) -> Membership:
        """Return the gang of a pod whose PodGroup is `found`.

        `other` is what it would belong to without the PodGroup.
        """
        if found.owner is None:
            return found
        group = self._find(found.owner)
        if group is None:
            return found
        if group.parent and self._joins:
            top = self._find_top(found.owner)
            if top.kind == POD_GROUP:
                return found
            member = name_member(found.owner.name)
            return replace(
                found,
                group=top.name,
                api=WorkloadAPI.COMPOSITE_POD_GROUP,
                owner=top,
                member=member,
                role=member,
            )
        maker = group.controller
        is_jobs = maker.kind == "Job" and maker.api_version.startswith("batch/")
        is_said_there = other.api in _OF_JOBS and other.run == maker.uid
        if is_jobs and not group.parent and (is_said_there or not group.is_gang):
            return other
        return found

    def list_joined(self, key: OwnerKey) -> tuple[OwnerKey, ...]:
        """List the PodGroups that are joined under a CompositePodGroup."""
        return tuple(
            group
            for group in sorted(self.list_pod_groups(key))
            if self._find_top(group) == key
        )

    def gang_of(self, key: OwnerKey) -> GangOwner | None:
        """Return the gang that a group is the topmost of; None: it is not seen."""
        group = self._groups.get(key)
        is_plain = group is None or not (group.parent or key.kind == COMPOSITE)
        if group is None or is_plain or not self._joins:
            return group
        if key not in self._gangs:
            self._gangs[key] = self._make_gang(group)
        return self._gangs[key]

    def list_ancestors(self, key: OwnerKey) -> Iterator[GangOwner]:
        """Go through the groups above one, as far as they are seen, upwards."""
        group, seen = self._groups.get(key), {key}
        while group is not None and group.parent:
            above = _parent_of(group)
            if above in seen:
                return
            seen.add(above)
            group = self._groups.get(above)
            if group is not None:
                yield group

    # --- the gang of a group --------------------------------------------------------

    def _find(self, key: OwnerKey) -> GangOwner | None:
        return self._groups.get(key) or self._gone.get(key)

    def _find_top(self, key: OwnerKey) -> OwnerKey:
        """Find the topmost group of the gang of a PodGroup.

        What is not seen is taken for a gang: nothing is decided meanwhile.
        """
        top, group, seen = key, self._find(key), {key}
        while group is not None and group.parent:
            above = _parent_of(group)
            group = self._find(above)
            if above in seen or (group is not None and not group.is_gang):
                break
            seen.add(above)
            top = above
        return top

    def _make_gang(self, group: GangOwner) -> GangOwner:
        ancestors = list(self.list_ancestors(group.key))
        highest = ancestors[-1] if ancestors else group
        tree, topology = None, group.topology
        if group.key.kind == COMPOSITE:
            tree = self._make_node(group, (group.key,))
            topology = _merge(list(self._list_topology(tree)))
        is_seen = not highest.parent or self._groups.get(_parent_of(highest))
        return replace(
            group,
            minimum=group.minimum if tree is None else None,
            topology=topology,
            tree=tree,
            not_modelled=self._find_unmodelled(group, ancestors, topology),
            unseen=None if is_seen else _parent_of(highest),
            fault=self._find_fault(highest),
        )

    def _make_node(self, group: GangOwner, above: tuple[OwnerKey, ...]) -> GroupNode:
        """Make the tree of a group, without what would be in it twice."""
        children = (self._groups[key] for key in self._list_children(group.key))
        return GroupNode(
            key=group.key,
            needed=group.minimum or 1,
            member=name_member(group.key.name) if group.key.kind == POD_GROUP else "",
            children=tuple(
                self._make_node(child, (*above, child.key))
                for child in children
                if child.key not in above
            ),
        )

    def _list_children(self, key: OwnerKey) -> list[OwnerKey]:
        """List the groups in a group in the order of the numbers in their names."""
        children = self._children.get(key, ())
        return sorted(children, key=lambda child: (order_naturally(child.name), child))

    def _list_topology(self, node: GroupNode) -> Iterator[GangTopology]:
        """Go through the rules of a tree, from above; those of all pods first."""
        todo = [node]
        while todo:
            part = todo.pop(0)
            members = () if part is node else tuple(part.members)
            for rule in self._groups[part.key].topology:
                yield replace(rule, members=members)
            todo += part.children

    def _find_unmodelled(
        self,
        group: GangOwner,
        ancestors: list[GangOwner],
        topology: tuple[GangTopology, ...],
    ) -> str:
        """Name the first field that cannot be decided; empty: all can."""
        for each in (group, *ancestors):
            if each.topology and not each.is_gang:
                return f"{each.key.kind} {each.key.name}: {_TOPOLOGY}"
        if len(topology) > MAX_TOPOLOGY:
            name = f"{group.key.kind} {group.key.name}"
            return f"{name}: more than {MAX_TOPOLOGY} of {_TOPOLOGY}"
        return ""

    def _find_fault(self, highest: GangOwner) -> str:
        """Return why kube-scheduler binds no pod of a tree; empty: it does."""
        todo: list[tuple[GangOwner, int, tuple[OwnerKey, ...]]]
        todo = [(highest, 1, (highest.key,))]
        while todo:
            group, level, above = todo.pop()
            if group.key.kind == COMPOSITE and level == _MOST_LEVELS:
                return f"{_name(group)} is at level {level}, where only PodGroups are"
            for key in self._list_children(group.key):
                child = self._groups[key]
                fault = _compare(highest, group, child)
                if key in above:
                    fault = f"{_name(child)} is above itself"
                if fault:
                    return fault
                todo.append((child, level + 1, (*above, key)))
        return ""


def _merge(rules: list[GangTopology]) -> tuple[GangTopology, ...]:
    """Merge rules of one key about one member each, if a gang may not have so many.

    The pods of each member are then one group.
    """
    if len(rules) <= MAX_TOPOLOGY:
        return tuple(rules)
    merged: dict[object, GangTopology] = {}
    for number, rule in enumerate(rules):
        key: object = rule.key if len(rule.members) == 1 else number
        if key not in merged:
            merged[key] = rule
            continue
        members = (*merged[key].members, *rule.members)
        merged[key] = replace(rule, members=members, group_size=MOST_PODS)
    return tuple(merged.values())


def _compare(highest: GangOwner, parent: GangOwner, child: GangOwner) -> str:
    """Return what a group must not be, where it is; empty: nothing."""
    if child.workload != highest.workload:
        return (
            f"{_name(child)} is of Workload {child.workload or 'none'}, "
            f"{_name(highest)} of {highest.workload or 'none'}"
        )
    if parent.is_gang and not child.is_gang:
        return f"{_name(child)} has the policy basic in {_name(parent)} of policy gang"
    if parent.ends_as_one and not child.ends_as_one:
        return (
            f"{_name(child)} has the disruptionMode single in {_name(parent)} of "
            "disruptionMode all"
        )
    for field, own, of_highest in (
        ("priority", child.priority, highest.priority),
        ("preemptionPolicy", child.preemption_policy, highest.preemption_policy),
    ):
        if own is not None and of_highest is not None and own != of_highest:
            return (
                f"{_name(child)} has {field} {own}, {_name(highest)} has {of_highest}"
            )
    return ""


def _name(group: GangOwner) -> str:
    return f"{group.key.kind} {group.key.name}"


def _parent_of(group: GangOwner) -> OwnerKey:
    return OwnerKey(COMPOSITE, group.key.namespace, group.parent)
