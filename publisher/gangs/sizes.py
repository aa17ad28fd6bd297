"""How many pods of each member a gang has, and with how many of them it begins.

Its Gang object says so, else the object that made its pods, such as a Volcano Job by
`minAvailable`. A PodGroup says one number alone; its members are the pods that are
there. Pure.
"""

from __future__ import annotations

from collections import Counter

from contracts.gang import GangSpec, Member
from contracts.names import GANG_SIZE
from contracts.pods.gang_owners import GangOwner, share_minimum
from contracts.workload import Pod
from publisher.gangs.context import PlanContext
from publisher.gangs.members import ONLY
from publisher.gangs.view import is_over


def read_sizes(context: PlanContext, pod: Pod) -> GangSpec | None:
    """Return the members of a pod's gang; None: nothing tells them apart.

    Only their names and counts are meant, unless there is a Gang object.
    """
    if context.gang is not None:
        return context.gang.spec
    owner = context.owner_of(pod)
    if owner is None or not owner.is_gang or GANG_SIZE in pod.metadata.annotations:
        return None
    if not owner.roles:
        return _count_members(context, pod, owner)
    return GangSpec(
        members=tuple(
            Member(
                name=role.name.lower() or ONLY, count=role.count, min_count=role.least
            )
            for role in owner.roles
        )
    )


def _count_members(context: PlanContext, pod: Pod, owner: GangOwner) -> GangSpec | None:
    """Count the pods of a PodGroup that are there."""
    if owner.minimum is None and owner.tree is None:
        return None
    run = context.membership(pod).run
    counts = Counter(
        context.membership(other).member or ONLY
        for other in context.pods
        if context.membership(other).run == run and not is_over(other)
    )
    if owner.tree is not None:
        least = {leaf.member: leaf.needed for leaf in owner.tree.leaves}
    else:
        least = share_minimum(counts, owner.minimum or 0)
    return GangSpec(
        members=tuple(
            Member(name=name, count=count, min_count=min(least.get(name, count), count))
            for name, count in counts.items()
        )
    )
