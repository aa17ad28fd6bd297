"""Who plays beside the plans: a solver that gives each device once, and publishers.

The solver keeps the real life of gangs (`solver.snapshot.gangs`) and chooses nodes in
the simplest way. A publisher does what the plans say, one round at a time, and knows
only what it heard: changes and messages reach it when the player of the game says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from contracts.gang import Member
from contracts.ids import (
    ClaimRef,
    ClaimUID,
    ClusterName,
    GangUID,
    Namespace,
    NodeName,
    SolveID,
)
from contracts.messages import (
    ClaimAllocated,
    CommandMessage,
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    MemberAllocated,
    SubmitGang,
)
from contracts.node_affinity import pinned_node
from contracts.workload import Pod
from publisher.cluster.plans.patches import Patch
from publisher.cluster.plans.plan_gang import plan_gang
from publisher.cluster.plans.situation import GangMessage, Situation, Told
from publisher.cluster.plans.submissions import Submissions
from publisher.cluster.view import GroupKey, View
from solver.snapshot.gangs import (
    GangRecord,
    with_command,
    with_confirmation,
    with_decision,
    with_submission,
)
from tests import builders
from tests.plan_world import Refused, World, devices_of

CLUSTER = ClusterName("east")
NOW = "2026-11-20T12:00:00Z"
Said = SubmitGang | CommandMessage | DecisionMessage | ConfirmationMessage
STREAMS = ("SUBMIT", "CMD", "DEC", "CONF")


class Bus:
    """Four streams; SUBMIT takes one message a gang, CONF only the next one."""

    def __init__(self) -> None:
        self.streams: dict[str, list[tuple[int, Said]]] = {s: [] for s in STREAMS}
        self.last: dict[GangUID, int] = {}
        """The sequence of the last confirmation of each gang."""

    def publish(self, message: Said, expected: int | None = None) -> int:
        """Store a message; 0: it was refused."""
        stream = self.streams[stream_of(message)]
        taken = isinstance(message, SubmitGang) and any(
            known.uid == message.uid for _, known in stream
        )
        if taken or expected not in (None, self.last.get(message.uid, 0)):
            return 0
        sequence = len(stream) + 1
        if isinstance(message, ConfirmationMessage):
            self.last[message.uid] = sequence
        stream.append((sequence, message))
        return sequence

    def commands(self, uid: GangUID) -> list[CommandMessage]:
        """Give the commands about a gang, in their order."""
        found = (message for _, message in self.streams["CMD"] if message.uid == uid)
        return [item for item in found if isinstance(item, CommandMessage)]


def stream_of(message: Said) -> str:
    """Name the stream of a message."""
    if isinstance(message, SubmitGang):
        return "SUBMIT"
    if isinstance(message, CommandMessage):
        return "CMD"
    return "DEC" if isinstance(message, DecisionMessage) else "CONF"


class Solver:
    """Decides gang by gang, oldest first, each device once."""

    def __init__(self, world: World, bus: Bus, nodes: int, devices: int) -> None:
        self._world = world
        self._bus = bus
        self._devices = {
            f"node-{n}": [f"gpu-{d}" for d in range(devices)] for n in range(nodes)
        }
        self.records: dict[GangUID, GangRecord] = {}
        self._heard = dict.fromkeys(STREAMS, 0)
        self.allocated: dict[tuple[GangUID, int], GangAllocated] = {}
        """Every decision that was ever said."""

    def step(self) -> bool:
        """Say the next thing; False: there is nothing to say."""
        self._hear()
        for record in sorted(self.records.values(), key=lambda r: (r.order, r.uid)):
            message = self._next(record)
            if message is not None:
                self.say(message)
                return True
        return False

    def say(self, message: DecisionMessage) -> None:
        """Publish a decision and believe it."""
        self._bus.publish(message)
        if isinstance(message, GangAllocated):
            self.allocated[message.uid, message.attempt] = message
        self._hear()

    def reject(self, number: int) -> None:
        """Call one of the gangs that wait wrong for ever."""
        self._hear()
        waiting = [r for r in self.records.values() if r.wants_decision]
        if waiting:
            record = waiting[number % len(waiting)]
            self.say(GangRejected(**self._about(record), reasons=()))

    def _about(self, record: GangRecord) -> dict[str, Any]:
        return {
            "cluster": CLUSTER,
            "namespace": record.namespace,
            "name": record.name,
            "uid": record.uid,
            "epoch": 1,
        }

    def _next(self, record: GangRecord) -> DecisionMessage | None:
        if record.ending is not None:
            return GangReleased(**self._about(record), outcome=record.ending)
        if not record.wants_decision or record.submission is None:
            return None
        about = self._about(record) | {"solve": SolveID("solve")}
        members = self._place(record.submission)
        if members is not None:
            attempt = record.attempt + 1
            return GangAllocated(**about, attempt=attempt, members=members)
        if isinstance(record.decision, GangPending):
            return None
        return GangPending(**about, attempt=record.attempt, reasons=())

    def _hear(self) -> None:
        for stream in STREAMS:
            for sequence, message in self._bus.streams[stream][self._heard[stream] :]:
                self._believe(message, sequence)
            self._heard[stream] = len(self._bus.streams[stream])

    def _believe(self, message: Said, sequence: int) -> None:
        namespace = Namespace(builders.NAMESPACE)
        record = self.records.get(message.uid) or GangRecord(
            uid=message.uid, namespace=namespace
        )
        if isinstance(message, SubmitGang):
            record = with_submission(record, message, sequence)
        elif isinstance(message, DecisionMessage):
            record = with_decision(record, message, sequence)
        elif isinstance(message, CommandMessage):
            record = with_command(record, message)
        else:
            record = with_confirmation(record, message)
        self.records[message.uid] = record

    def free(self) -> dict[str, list[str]]:
        """Give the devices that nothing holds, by node."""
        taken: set[tuple[str, str]] = set()
        for _, claim in self._world.all("ResourceClaim"):
            taken |= devices_of(claim)
        for record in self.records.values():
            decision = record.allocated
            for member in decision.members if decision is not None else ():
                for given in member.claims:
                    results = given.allocation.devices.results
                    taken |= {(str(item.pool), str(item.device)) for item in results}
        return {
            node: [name for name in names if (node, name) not in taken]
            for node, names in self._devices.items()
        }

    def _place(self, submission: SubmitGang) -> tuple[MemberAllocated, ...] | None:
        free = self.free()
        found: list[MemberAllocated] = []
        for member in submission.gang.spec.members:
            for index in range(member.count):
                node = _node_for(member, free)
                if node is None:
                    return None
                found.append(_allocated(member, index, node, free[node]))
        return tuple(found)


def _node_for(member: Member, free: Mapping[str, list[str]]) -> str | None:
    only = {member.node.node_name, pinned_node(member.node.affinity)} - {"", None}
    for node, names in free.items():
        if len(names) >= len(member.claims) and only <= {node}:
            return node
    return None


def _allocated(
    member: Member, index: int, node: str, free: list[str]
) -> MemberAllocated:
    claims = []
    for claim in member.claims:
        request = "gpu" if claim.spec is None else claim.spec.devices.requests[0].name
        held = builders.allocation(
            builders.result(free.pop(0), request=request, pool=node), node=node
        )
        ref = ClaimRef(Namespace(builders.NAMESPACE), "any", ClaimUID("any"))
        claims.append(ClaimAllocated(claim=claim.name, ref=ref, allocation=held))
    return MemberAllocated(
        member=member.name, index=index, node=NodeName(node), claims=tuple(claims)
    )


class Round(Struct):
    """What a publisher has planned for a group and not carried out yet."""

    situation: Situation
    patches: list[Patch]
    messages: list[GangMessage]
    heard: int
    """How many changes it knew when it planned."""


class Publisher:
    """Plans from what it heard, and carries out one step at a time."""

    def __init__(self, world: World, bus: Bus) -> None:
        self._world = world
        self._bus = bus
        self.informed = False
        """Whether it knows all that was said before it plans."""
        self.refusing = 0
        """So many of the next writes of a decision the API server refuses for good."""
        self.restart()

    def restart(self) -> None:
        """Begin with nothing, and read everything that is there."""
        self.view = View()
        self.submissions = Submissions()
        self.rounds: dict[GroupKey, Round] = {}
        self._refused: dict[tuple[GangUID, int], str] = {}
        self._touched: dict[GroupKey, None] = {}
        self._heard = dict.fromkeys(STREAMS, 0)
        for kind, key in sorted(self._world.objects):
            self._believe(kind, key, self._world.values[kind, key], "")
        self.heard = len(self._world.changes)
        for stream in STREAMS:
            self.hear_bus(stream, len(self._bus.streams[stream]))
        self.touch((*self.view.groups(), *self.submissions.groups()))

    # --- hearing --------------------------------------------------------------------

    def hear(self) -> None:
        """Hear everything that happened."""
        self.hear_api(len(self._world.changes))
        for stream in STREAMS:
            self.hear_bus(stream, len(self._bus.streams[stream]))

    def hear_api(self, count: int) -> None:
        """Hear of the next changes."""
        for change in self._world.changes[self.heard : self.heard + count]:
            self.touch(self._believe(change.kind, change.key, change.value, change.uid))
        self.heard = min(self.heard + count, len(self._world.changes))

    def hear_bus(self, stream: str, count: int) -> None:
        """Read the next messages of a stream."""
        first = self._heard[stream]
        for sequence, message in self._bus.streams[stream][first : first + count]:
            group = self.submissions.apply(message, sequence)
            self.touch(() if group is None else (group,))
            self._heard[stream] = sequence

    def touch(self, groups: Iterable[GroupKey]) -> None:
        """Look at these groups, soon."""
        self._touched |= dict.fromkeys(groups)

    def _believe(
        self, kind: str, key: str, value: Any, uid: str
    ) -> frozenset[GroupKey]:
        if kind == "Pod":
            return self.view.apply_pod(key, value, uid)
        if kind == "ResourceClaim":
            return self.view.apply_claim(key, value, uid)
        return self.view.apply_gang(key, value, uid)

    # --- acting ---------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to look at."""
        return not self._touched and not self.rounds

    def act(self) -> None:
        """Plan for the next group and carry all of it out."""
        group = self.plan()
        while group is not None and group in self.rounds:
            self.carry_out(group)

    def plan(self) -> GroupKey | None:
        """Plan for the next group that is not being worked on."""
        group = next((key for key in self._touched if key not in self.rounds), None)
        if group is None:
            return None
        del self._touched[group]
        if self.informed:
            for stream in STREAMS:
                self.hear_bus(stream, len(self._bus.streams[stream]))
        situation = self._situation(group)
        plan = plan_gang(situation)
        self.submissions.forget(plan.forget)
        self.told = plan.told
        for pod in plan.removals:
            self._remove(pod)
        if plan.patches or plan.messages:
            messages = [] if plan.patches else plan.messages
            self.rounds[group] = Round(situation, plan.patches, messages, self.heard)
        return group

    def carry_out(self, group: GroupKey) -> None:
        """Do the next thing that was planned for a group."""
        planned = self.rounds[group]
        if planned.patches:
            self._world.planned = planned.heard
            self._write(planned.patches.pop(0))
        elif planned.messages:
            self._say(planned.messages.pop(0), planned.situation)
        if not planned.patches and not planned.messages:
            del self.rounds[group]
            self.touch((group,))

    def _situation(self, group: GroupKey) -> Situation:
        return Situation(
            cluster=CLUSTER,
            group=group,
            view=self.view,
            submissions=self.submissions.of_group(group),
            owns=lambda _: True,
            now=NOW,
            refused=lambda uid, attempt: self._refused.get((uid, attempt), ""),
            forgotten=self.submissions.forgotten,
        )

    def tell_all(self) -> dict[str, tuple[Told, DecisionMessage | None]]:
        """Say of each pod why it waits, and what was last decided of it."""
        found: dict[str, tuple[Told, DecisionMessage | None]] = {}
        for group in {*self.view.groups(), *self.submissions.groups()}:
            known = sorted(self.submissions.of_group(group), key=lambda s: s.age)
            for told in plan_gang(self._situation(group)).told:
                for pod in told.pods:
                    uid = pod.metadata.uid
                    said = [s.decision for s in known if uid in s.pods or not s.pods]
                    waits = [item for item in said if isinstance(item, GangPending)]
                    held = [item for item in said if isinstance(item, GangAllocated)]
                    last = (waits or held or said or [None])[-1]
                    found[uid] = told, told.decision or last
        return found

    def _write(self, patch: Patch) -> None:
        try:
            self._refuse_or_take(patch)
        except Refused as refused:
            if refused.why == "invalid" and patch.gang:
                self._refused[GangUID(patch.gang), patch.attempt] = str(refused)
        found = self._world.values.get((patch.kind, patch.key))
        self._believe(patch.kind, patch.key, found, patch.uid)

    def _remove(self, pod: Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        known = self._world.get("Pod", key)
        if known is not None and known["metadata"]["uid"] == pod.metadata.uid:
            self._world.delete_pod(key)

    def _refuse_or_take(self, patch: Patch) -> None:
        if patch.gang and self.refusing:
            self.refusing -= 1
            raise Refused("invalid", "as the test wants it")
        self._world.patch(patch)

    def _say(self, message: GangMessage, situation: Situation) -> None:
        expected = None
        if isinstance(message, ConfirmationMessage):
            known = (s for s in situation.submissions if s.uid == message.uid)
            expected = next((s.confirmed_at for s in known), 0)
        sequence = self._bus.publish(message, expected)
        if sequence or not isinstance(message, ConfirmationMessage):
            self.submissions.apply(message, sequence)
            return
        stream = self._bus.streams["CONF"]
        last = self._bus.last.get(message.uid, 0)
        found: Any = stream[last - 1][1] if last else None
        self.submissions.correct(message.uid, found, last)
