"""A game with the pods of published kinds, and the law that none of them runs in part.

What a kind's pods look like is written as its controller's source does
(tests/builders/workloads.py); which gangs they are is written here by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from contracts.codec import to_builtins
from contracts.names import GANG_UID
from contracts.pods.gang_owners import read_gang_owner
from contracts.pods.membership import WorkloadAPI
from contracts.workload import Pod
from tests import builders
from tests.builders.pods import waiting_pod
from tests.builders.workloads import made_pod
from tests.simulation.game import Game
from tests.simulation.laws import Laws
from tests.simulation.players import Bus, Solver
from tests.simulation.publisher import Publisher
from tests.simulation.setting import Setting, Slot
from tests.simulation.wholeness import Life, find_run
from tests.simulation.workloads import NAMING, SLOT, Workloads
from tests.simulation.world import Json, Seen, World, Written, is_gated, is_opening

NS = builders.NAMESPACE


class MadePod(Struct, frozen=True):
    """A pod that a controller makes, again if it goes."""

    marks: Json
    """Its labels, annotations and owner."""
    gang: str
    """The gang that it is of, as a person would say."""
    role: str = ""


class Published(Struct, frozen=True):
    """An object of a published kind, and what it makes."""

    owners: tuple[Json, ...]
    """What says how many pods there are."""
    pods: tuple[MadePod, ...]
    least: dict[str, int]
    """By role, how many pods of a gang are enough for it to begin."""
    minimum: int = 0
    """So many of whatever role begin, if that is more than those."""


class PublishedGame(Game):
    """The pods of one object, devices, and who decides."""

    def __init__(
        self, published: Published, *, devices: int, renames: bool = False
    ) -> None:
        """`devices` on one node; `renames`: pods come back under other names."""
        owner = NAMING[0] if renames else ""
        slots = [Slot(f"p-{n}", owner=owner) for n in range(len(published.pods))]
        self.setting = Setting(tuple(slots), nodes=1, devices=devices)
        self.world, self.bus = World(), Bus()
        self.solver = Solver(self.world, self.bus, 1, devices)
        self.workloads = _Makers(self.world, self.setting, published)
        self.unplug(0, 0)
        read = map(read_gang_owner, published.owners)
        owners = [owner for owner in read if owner is not None]
        apis = frozenset(WorkloadAPI)
        self.leader = Publisher(self.world, self.bus, apis, owners)
        self.publishers = [self.leader]
        self.law = NotInPart(self.world, self.bus, published)
        # Of the laws a game only asks for those about the bus.
        self.laws = cast("Laws", self.law)

    def count_running(self) -> int:
        """Count the pods that have passed our gate."""
        return sum(not is_gated(pod) for _, pod in self.world.all("Pod"))


class _Makers(Workloads):
    """Makes the pods of an object, in any order."""

    def __init__(self, world: World, setting: Setting, published: Published) -> None:
        self._published = published
        super().__init__(world, setting)

    def _create(self, slot: Slot, name: str, uid: str) -> None:
        made = self._published.pods[int(slot.name.partition("-")[2])]
        marked = made_pod(name, made.marks).metadata
        pod = waiting_pod(name, templates=["own-0"], uid=uid)
        labels = {**marked.labels, SLOT: slot.name}
        metadata = replace(
            pod.metadata,
            labels=labels,
            annotations=marked.annotations,
            owner_references=marked.owner_references,
        )
        raw = to_builtins(replace(pod, metadata=metadata)) | {"apiVersion": "v1"}
        raw["status"] = {"phase": "Pending"}
        if "spec" in made.marks:
            raw["spec"] |= made.marks["spec"]
        self._world.put("Pod", f"{NS}/{name}", raw)


class NotInPart:
    """The law: where no pod of a gang runs, only enough of them begin, all at once.

    Judged by what whoever writes knew when it planned.
    """

    def __init__(self, world: World, bus: Bus, published: Published) -> None:
        self._world, self._bus, self._published = world, bus, published
        self._lives: dict[str, Life] = {}
        self._followed = 0
        self.begun: list[str] = []
        """The gangs that began, each as often as it did."""
        world.watchers.append(self._check_write)

    def check_bus(self) -> None:
        """Look at nothing: it is the writes that count."""

    def _check_write(self, written: Written) -> None:
        if not is_opening(written):
            return
        self._follow()
        pod = self._world.values["Pod", written.patch.key]
        gang, uid = self._made(pod).gang, pod.metadata.annotations[GANG_UID]
        others = [life for life in self._lives.values() if life.uid != pod.metadata.uid]
        if any(life.submission == uid for life in others):
            return
        beside = [life for life in others if life.gang == gang]
        if not find_run(beside, self._world.planned):
            self.begun.append(gang)
            self._is_enough(self._decided(uid), gang)

    def _is_enough(self, roles: Counter[str], gang: str) -> None:
        least = self._published.least
        short = {role for role in least if roles[role] < least[role]}
        assert not short, f"{gang} begins with {dict(roles)}, not {least}"
        minimum = self._published.minimum
        assert roles.total() >= minimum, f"{gang} begins with {dict(roles)}"

    def _decided(self, uid: str) -> Counter[str]:
        """Count the pods of a decision by role; all of them are of one gang."""
        submission = next(
            message for _, message in self._bus.streams["SUBMIT"] if message.uid == uid
        )
        decision = [
            message
            for _, message in self._bus.streams["DEC"]
            if message.uid == uid and hasattr(message, "members")
        ][-1]
        slots = {
            seen.uid: self._made(seen.value)
            for seen in self._world.changes
            if seen.kind == "Pod" and seen.value is not None
        }
        places = submission.places  # type: ignore[union-attr]  # a SubmitGang
        made = [
            slots[ref.uid]
            for member in decision.members
            for ref in places[member.member][member.index].pods
        ]
        assert len({each.gang for each in made}) == 1, "pods of two gangs"
        return Counter(each.role for each in made)

    def _made(self, pod: Pod) -> MadePod:
        slot = pod.metadata.labels[SLOT]
        return self._published.pods[int(slot.partition("-")[2])]

    def _follow(self) -> None:
        for number in range(self._followed, len(self._world.changes)):
            seen = self._world.changes[number]
            if seen.kind == "Pod":
                self._note_pod(seen, number + 1)
        self._followed = len(self._world.changes)

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
                gang=self._made(pod).gang,
                owner=None,
                submission=notes[GANG_UID],
                begin=now,
            )
        if life is None:
            return
        if pod.status.phase == "Failed" or pod.metadata.deletion_timestamp:
            life.end = min(life.end, now)


def play(game: PublishedGame, moves: Sequence[tuple[str, int, int]]) -> None:
    """Play to the end: all pods are made again, and nothing else happens."""
    game.play(moves)
    for number in range(len(game.setting.slots)):
        game.world.bury_pods()
        game.workloads.create(number, 0)
    game.settle()
