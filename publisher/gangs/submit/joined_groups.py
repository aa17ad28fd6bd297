"""PodGroups that are one gang: which of them it begins with, and which come after.

It begins with as many whole groups as it needs. Others are asked for once it runs, each
by itself and whole. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from contracts.names import GANG_SIZE
from contracts.pods.group_trees import GroupNode
from contracts.pods.members import group_connected
from contracts.workload import Pod
from publisher.gangs.context import PlanContext


def tree_of(pods: Sequence[Pod], context: PlanContext) -> GroupNode | None:
    """Return the groups that pods are of; None: of one alone, or they say a size."""
    owner = context.owner_of(pods[0])
    is_said = GANG_SIZE in pods[0].metadata.annotations
    return None if owner is None or is_said else owner.tree


def describe_shortage(
    tree: GroupNode,
    pods: Iterable[Pod],
    running: Iterable[Pod],
    there: Mapping[str, int],
    context: PlanContext,
) -> str:
    """Describe the first part that lacks pods; empty: none does.

    `there`: how many pods of each member are, of those that wait and that run.
    """
    for part in _find_parts(tree, pods, running, context):
        if not part.is_whole(there):
            return part.describe_missing(there)
    return ""


def split_core(
    pods: Sequence[Pod], tree: GroupNode, there: Mapping[str, int], context: PlanContext
) -> tuple[list[Pod], list[Pod]]:
    """Split pods of a gang that begins into those that it begins with, and others."""
    if not tree.is_whole(there):
        return list(pods), []
    core = set(tree.list_core(there))
    first = [pod for pod in pods if context.membership(pod).role in core]
    return first, [pod for pod in pods if context.membership(pod).role not in core]


def split_parts(
    pods: Sequence[Pod],
    tree: GroupNode,
    running: Iterable[Pod],
    claims: Callable[[Pod], Iterable[str]],
    context: PlanContext,
) -> list[list[Pod]]:
    """Split pods that wait beside running ones into those that need each other.

    Those that share one of `claims` stay together.
    """
    members = {context.membership(pod).role for pod in running}

    def ties(pod: Pod) -> Iterable[Hashable]:
        part = tree.find_part(context.membership(pod).role, members)
        return (part.key, *claims(pod))

    return group_connected(pods, ties)


def _find_parts(
    tree: GroupNode,
    pods: Iterable[Pod],
    running: Iterable[Pod],
    context: PlanContext,
) -> list[GroupNode]:
    members = {context.membership(pod).role for pod in running}
    roles = dict.fromkeys(context.membership(pod).role for pod in pods)
    parts = {(part := tree.find_part(role, members)).key: part for role in roles}
    return list(parts.values())
