"""How long pods take from open gates to a node; pure.

The time is ours, from the moment at which all gates of a gang were said to be open to
the first look at its pods that finds each of them bound or over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from contracts.workload import Pod
from publisher.gangs.view import GroupKey, is_over

MOST = 50_000
"""Groups that are waited for; beyond, new ones are not measured."""


class Bound(NamedTuple):
    """A gang whose pods all have their nodes."""

    queue: str
    priority: int
    seconds: float


class Bindings:
    """Groups whose gates are open, until their pods are bound."""

    def __init__(self) -> None:
        self._opened: dict[GroupKey, tuple[float, int]] = {}

    def note_opened(self, group: GroupKey, priority: int, now_s: float) -> None:
        """Take note that all gates of a group are open."""
        if len(self._opened) < MOST:
            self._opened[group] = now_s, priority

    def look(self, group: GroupKey, pods: Iterable[Pod], now_s: float) -> Bound | None:
        """Look at a group's pods; not None: just now the last one was found bound."""
        if group not in self._opened:
            return None
        pods = tuple(pods)
        if not all(pod.spec.node_name or is_over(pod) for pod in pods):
            return None
        opened_s, priority = self._opened.pop(group)
        if not pods:
            return None
        return Bound(group.namespace, priority, now_s - opened_s)
