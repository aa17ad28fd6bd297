"""The law that no gang runs in parts: a gate opens for a whole gang, or beside one.

A submission of fewer pods than make the gang whole may open a gate only while pods of
the gang run or have succeeded, and only if together with all that ran beside these, one
after the other, they are as many as make it whole. It is judged by what whoever writes
knew when it planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from msgspec import Struct

from contracts.gang import Gang
from contracts.ids import GangUID
from contracts.messages import SubmitGang
from contracts.meta import OwnerReference
from contracts.names import GANG, GANG_SIZE, GANG_UID
from contracts.workload import Pod
from publisher.gangs.context import StatusReport
from tests import builders
from tests.simulation.players import Bus
from tests.simulation.world import Seen, World, Written

NS = builders.NAMESPACE


class Life(Struct):
    """A pod beyond the gate, from its opening to its end (places in the changes)."""

    uid: str
    gang: str
    owner: OwnerReference | None
    submission: str
    """The submission that opened its gate."""
    begin: float
    end: float = inf
    """When it failed, began to end, or was gone; success lasts until it is gone."""
    has_succeeded: bool = False

    @property
    def runs(self) -> bool:
        """Whether it is not over."""
        return self.end == inf and not self.has_succeeded


class Wholeness:
    """Follows all pods that ever ran, and looks at every gate that is opened."""

    def __init__(self, world: World, bus: Bus) -> None:
        self._world = world
        self._bus = bus
        self._lives: dict[str, Life] = {}
        self._sizes: dict[str, set[int]] = {}
        """Of every Gang object that there was, by its name."""
        self._followed = 0

    def check_gate(self, written: Written) -> None:
        """Look at a gate, the first that is opened for a submission."""
        self._follow()
        pod = self._world.values["Pod", written.patch.key]
        gang = pod.metadata.labels.get(GANG, "")
        uid = GangUID(pod.metadata.annotations[GANG_UID])
        missing = self._size(pod) - self._count(uid) if gang else 0
        lives = [life for life in self._lives.values() if life.uid != pod.metadata.uid]
        if missing <= 0 or any(life.submission == uid for life in lives):
            return
        beside = [li for li in lives if li.gang == gang and _is_same_run(li, pod)]
        ran = find_run(beside, self._world.planned)
        assert ran, f"{pod.metadata.name} runs alone, {missing} of its gang are missing"
        assert len(ran) >= missing, (
            f"{pod.metadata.name} runs beside {len(ran)} pods, {missing} are missing"
        )

    def check_waiting(
        self, reports: Iterable[StatusReport], asked: Mapping[str, set[str]]
    ) -> None:
        """Nobody waits for others who would be whole with those that run.

        Nor beside none that runs, unless others of the gang wait that are `asked` for
        already, as uids by gang: it begins once, not in two parts.
        """
        self._follow()
        for report in reports:
            if report.reason != "PodsMissing" or not report.pods or report.decision:
                continue
            first = report.pods[0]
            gang = first.metadata.labels.get(GANG, "")
            running = [
                life
                for life in self._lives.values()
                if life.gang == gang and life.runs and _is_same_run(life, first)
            ]
            own = {pod.metadata.uid for pod in report.pods}
            if not running and asked.get(gang, set()) - own:
                continue
            there = len(running) + len(report.pods)
            assert there < max(self._all_sizes(first)), "nobody is missing"

    def _count(self, uid: GangUID) -> int:
        """Count the pods of a submission."""
        submission = next(
            message
            for _, message in self._bus.streams["SUBMIT"]
            if isinstance(message, SubmitGang) and message.uid == uid
        )
        places = [p for places in submission.places.values() for p in places]
        if places:
            return sum(len(place.pods) for place in places)
        return sum(member.count for member in submission.gang.spec.members)

    def _size(self, pod: Pod) -> int:
        """Say how many pods make a gang whole: as few as was ever said."""
        return min(self._all_sizes(pod))

    def _all_sizes(self, pod: Pod) -> set[int]:
        said = int(pod.metadata.annotations[GANG_SIZE])
        return {said, *self._sizes.get(pod.metadata.labels[GANG], ())}

    # --- who ran --------------------------------------------------------------------

    def _follow(self) -> None:
        for number in range(self._followed, len(self._world.changes)):
            seen = self._world.changes[number]
            if seen.kind == "Gang" and seen.value is not None:
                self._note_size(seen.value)
            if seen.kind == "Pod":
                self._note_pod(seen, number + 1)
        self._followed = len(self._world.changes)

    def _note_size(self, gang: Gang) -> None:
        size = sum(member.count for member in gang.spec.members)
        self._sizes.setdefault(gang.metadata.name, set()).add(size)

    def _note_pod(self, seen: Seen, now: int) -> None:
        life = self._lives.get(seen.uid)
        if seen.value is None:
            if life is not None:
                life.end = min(life.end, now)
            return
        pod: Pod = seen.value
        notes = pod.metadata.annotations
        if life is None and GANG_UID in notes and not pod.spec.scheduling_gates:
            life = self._lives[seen.uid] = Life(
                uid=seen.uid,
                gang=pod.metadata.labels.get(GANG, ""),
                owner=next(iter(pod.metadata.owner_references), None),
                submission=notes[GANG_UID],
                begin=now,
            )
        if life is None:
            return
        life.has_succeeded = pod.status.phase == "Succeeded"
        if pod.status.phase == "Failed" or pod.metadata.deletion_timestamp:
            life.end = min(life.end, now)


def find_run(lives: Iterable[Life], known: int) -> Sequence[Life]:
    """Return those that ran, one beside the other, up to those that run or have run.

    `known` is the last change that was known; none: nobody runs, as far as is known.
    """
    run: list[Life] = []
    since = inf
    for life in sorted(lives, key=lambda life: life.end, reverse=True):
        if life.end <= known and life.end <= since:
            break
        run.append(life)
        since = min(since, life.begin)
    return run


def _is_same_run(life: Life, pod: Pod) -> bool:
    """Whether a pod is not of an owner that was made anew since."""
    owner = next(iter(pod.metadata.owner_references), None)
    if owner is None or life.owner is None:
        return True
    is_named_so = (owner.kind, owner.name) == (life.owner.kind, life.owner.name)
    return not is_named_so or owner.uid == life.owner.uid
