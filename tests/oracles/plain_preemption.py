"""Judges who is made to go for whom, in plain numbers. Shares nothing with the solver.

Source: Kueue's concepts "Preemption"; docs/queues-and-time.md, "Preemption".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct


class PlainQueue(Struct, frozen=True, kw_only=True):
    """A ClusterQueue with a quota of one resource, in one cohort with all others."""

    nominal: int
    within: str = "Never"
    reclaim: str = "Never"
    borrow: str = "Never"
    threshold: int | None = None


class PlainGang(Struct, frozen=True, kw_only=True):
    """A gang of equal pods."""

    name: str
    queue: str
    priority: int
    pods: int
    gpus: int
    nodes: tuple[str, ...] = ()
    """Where its pods are, one each; none: it waits."""

    @property
    def devices(self) -> int:
        """All that it asks for, or holds."""
        return self.pods * self.gpus


class PlainScene(Struct, frozen=True, kw_only=True):
    """All that is so before anybody goes."""

    nodes: Mapping[str, int]
    """Devices of each."""
    queues: Mapping[str, PlainQueue]
    runs: Sequence[PlainGang]


def find_fault(
    scene: PlainScene, waits: PlainGang, victims: Sequence[PlainGang]
) -> str:
    """Say what is wrong with a plan; empty: nothing is."""
    if not victims:
        return "nobody goes"
    for each in victims:
        if each not in scene.runs:
            return f"{each.name} does not run"
        if each.priority >= waits.priority:
            return f"{each.name} is of no lower priority"
        if not _may_go(scene, waits, each):
            return f"the queue does not let {each.name} go"
    used = _count_used(scene.runs)
    for name, queue in scene.queues.items():
        going = [each.devices for each in victims if each.queue == name]
        # The largest may go last.
        before_last = used[name] - sum(going) + max(going, default=0)
        if name != waits.queue and going and before_last <= queue.nominal:
            return f"{name} loses more than it borrows"
    if not fits_without(scene, waits, victims):
        return "it does not fit then"
    for each in victims:
        others = [other for other in victims if other is not each]
        if fits_without(scene, waits, others):
            return f"{each.name} need not go"
    return ""


def _may_go(scene: PlainScene, waits: PlainGang, victim: PlainGang) -> bool:
    own, used = scene.queues[waits.queue], _count_used(scene.runs)
    if victim.queue == waits.queue:
        return own.within != "Never"
    if used[victim.queue] <= scene.queues[victim.queue].nominal:
        return False
    if own.reclaim == "Never":
        return False
    if used[waits.queue] + waits.devices <= own.nominal:
        return True
    limit = own.threshold
    return own.borrow != "Never" and (limit is None or victim.priority <= limit)


def fits_without(
    scene: PlainScene, waits: PlainGang, ended: Iterable[PlainGang]
) -> bool:
    """True if a gang has quota and devices once some have ended."""
    names = {each.name for each in ended}
    left = [each for each in scene.runs if each.name not in names]
    lendable = sum(queue.nominal for queue in scene.queues.values())
    if sum(_count_used(left).values()) + waits.devices > lendable:
        return False
    free = Counter(scene.nodes)
    for each in left:
        for node in each.nodes:
            free[node] -= each.gpus
    return sum(devices // waits.gpus for devices in free.values()) >= waits.pods


def is_helpless(scene: PlainScene, waits: PlainGang) -> bool:
    """True if no gangs of its own queue may go for it that would be enough."""
    legal = [
        each
        for each in scene.runs
        if each.priority < waits.priority
        and each.queue == waits.queue
        and _may_go(scene, waits, each)
    ]
    return not any(
        fits_without(scene, waits, chosen)
        for size in range(1, len(legal) + 1)
        for chosen in combinations(legal, size)
    )


def _count_used(runs: Iterable[PlainGang]) -> Counter[str]:
    used = Counter[str]()
    for each in runs:
        used[each.queue] += each.devices
    return used
