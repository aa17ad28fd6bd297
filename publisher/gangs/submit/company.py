"""Who counts beside pods that wait, when we ask whether their gang is whole.

A gang begins whole. Once it runs, lost pods are replaced at once, without waiting for
others. Pods that only wait do not count, whatever was submitted for them: it may be
given up. Nor does what is over make the next run whole, or that run would start pod by
pod: succeeded pods of a CronJob's last Job stay, and the pods of a deleted Job go a
moment after the next Job has come. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from contracts.messages import GatesOpened
from contracts.names import GANG_UID
from contracts.workload import Pod
from publisher.gangs.records import PodGangRecord
from publisher.gangs.view import is_gated, is_over, uids_of


class Company(Struct, frozen=True, kw_only=True):
    """Pods that count beside those that wait; without `ran` none do."""

    ran: tuple[Pod, ...] = ()
    """Pods that run, or have succeeded."""
    stand_ins: tuple[Pod, ...] = ()
    """Pods that wait as well, in the place of one each that ran and is over."""
    gone: int = 0
    """Pods that ran and are gone, of gangs that still run."""
    held: int = 0
    """How many others wait whose submission stands, or is being taken back."""
    size: int = 0
    """How many pods the gang was decided with, as far as its records tell."""
    lost: int = 0
    """How many of those do not run, and nobody was asked for in their place."""

    @property
    def count(self) -> int:
        """How many pods that is."""
        return len(self.ran) + len(self.stand_ins) + self.gone


ALONE = Company()
"""Nobody."""


def find_company(
    pods: Sequence[Pod],
    waiting: Sequence[Pod],
    asked: Collection[str] = (),
    records: Sequence[PodGangRecord] = (),
    held: Collection[str] = (),
) -> Company:
    """Return who of a gang's `pods` counts beside those that are `waiting`.

    `asked`: uids of waiting pods whose submissions stand; `held`: also of those whose
    submissions are being taken back.
    """
    alike = list(_of_same_run(pods, waiting))
    run = [pod for pod in alike if not is_gated(pod)]
    ran = tuple(_list_running(run, waiting))
    if not ran:
        waits = [pod for pod in alike if is_gated(pod) and not is_over(pod)]
        return Company(held=len(uids_of(waits) & set(held)))
    there = uids_of(ran)
    over = sum(is_over(pod) and pod.metadata.uid not in there for pod in run)
    stand_ins = [pod for pod in pods if pod.metadata.uid in asked]
    size, placed = _count_places(ran, asked, records)
    return Company(
        ran=ran,
        stand_ins=tuple(stand_ins[:over]),
        gone=_count_gone(pods, there, records),
        size=size,
        lost=max(size - placed, 0),
    )


def _list_running(run: Sequence[Pod], waiting: Sequence[Pod]) -> list[Pod]:
    """List pods with open gates that run, or have succeeded.

    Succeeded pods count while others run, or beside pods of the same owner. A pod that
    is being deleted will be replaced, even if it ends as a success.
    """
    owners = {owner.uid for pod in waiting if (owner := pod.metadata.controller).uid}
    running = [pod for pod in run if not is_over(pod)]
    succeeded = [
        pod
        for pod in run
        if pod.status.phase == "Succeeded"
        and pod.metadata.deletion_timestamp is None
        and (running or pod.metadata.controller.uid in owners)
    ]
    return running + succeeded


def _of_same_run(pods: Iterable[Pod], waiting: Sequence[Pod]) -> Iterator[Pod]:
    """Leave out pods of an owner that was made anew since."""
    owners = [owner for pod in waiting if (owner := pod.metadata.controller).uid]
    uids = {owner.uid for owner in owners}
    names = {(owner.kind, owner.name) for owner in owners}
    for pod in pods:
        owner = pod.metadata.controller
        if (owner.kind, owner.name) not in names or owner.uid in uids:
            yield pod


def _count_gone(
    pods: Sequence[Pod], ran: Collection[str], records: Sequence[PodGangRecord]
) -> int:
    """Count the pods that ran and are gone, of gangs that still run.

    They are done, or pods that wait now replace them. A pod that was gone before its
    gate opened does not count.
    """
    there = Counter(
        pod.metadata.annotations.get(GANG_UID) for pod in pods if not is_gated(pod)
    )
    gone = 0
    for record in records:
        said = record.confirmation
        if record.is_over or record.pods.isdisjoint(ran):
            continue
        if isinstance(said, GatesOpened):
            gone += max(said.pods - there[record.uid], 0)
    return gone


def _count_places(
    ran: Iterable[Pod], asked: Collection[str], records: Iterable[PodGangRecord]
) -> tuple[int, int]:
    """Count the pods that a gang was decided with, and those that are there of them.

    Only gangs that still run tell. Pods in the place of others add nothing to the first
    number, but their submission says what it was: it outlives the pods before them.
    """
    uids = {pod.metadata.annotations.get(GANG_UID) for pod in ran}
    alive = {r.uid: r for r in records if r.uid in uids and not r.is_over}
    begun = sum(
        len(record.placed.members)
        for record in alive.values()
        if not record.restores and record.placed is not None
    )
    size = max((begun, *(record.restores for record in alive.values())))
    # Pods of gangs that are over, and have succeeded, were not counted either.
    counts = (
        not is_over(pod) or pod.metadata.annotations.get(GANG_UID) in alive
        for pod in ran
    )
    replacing = frozenset[str]().union(*(r.pods for r in records if r.restores))
    return size, sum(counts) + len(replacing.intersection(asked))
