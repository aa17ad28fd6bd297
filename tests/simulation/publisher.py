"""A publisher in the game: it carries out what the plans say, one round at a time.

It knows only what it heard: changes and messages reach it when the player of the game
says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct

from contracts.avoidance import NodesAvoided
from contracts.ids import GangKey, GangUID, Namespace
from contracts.messages import (
    ConfirmationMessage,
    DecisionMessage,
    GangAllocated,
    GangPending,
)
from contracts.pods.gang_owners import GangOwner
from contracts.pods.membership import WorkloadAPI
from contracts.workload import Pod
from publisher.gangs.context import PlanContext, PublisherMessage, StatusReport
from publisher.gangs.known_nodes import KnownNode
from publisher.gangs.patches import Patch
from publisher.gangs.plan_gang import plan_gang
from publisher.gangs.records import PodGangRecords
from publisher.gangs.running.avoidance import SeenRefusals
from publisher.gangs.view import GroupKey, View
from tests.simulation.players import CLUSTER, STREAMS, Bus
from tests.simulation.world import THEIRS, Refused, World


class Round(Struct):
    """What a publisher has planned for a group and not carried out yet."""

    context: PlanContext
    patches: list[Patch]
    removals: list[Pod]
    messages: list[PublisherMessage]
    heard: int
    """How many changes it knew when it planned."""


class Publisher:
    """Plans from what it heard, and carries out one step at a time."""

    def __init__(
        self,
        world: World,
        bus: Bus,
        apis: Collection[WorkloadAPI] = (),
        owners: Iterable[GangOwner] = (),
    ) -> None:
        """`apis` put pods together, as `owners` say how many they are."""
        self._world = world
        self._bus = bus
        self._apis = apis
        self._owners = tuple(owners)
        self.informed = False
        """Whether it knows all that was said before it plans."""
        self.refusing = 0
        """So many of the next writes of a decision the API server refuses for good."""
        self.restart()

    def restart(self) -> None:
        """Begin with nothing, and read everything that is there."""
        self.view = View(self._apis)
        for owner in self._owners:
            self.view.apply_owner(owner.key, owner)
        self.records = PodGangRecords()
        self.rounds: dict[GroupKey, Round] = {}
        self._refused: dict[tuple[GangUID, int], str] = {}
        self._touched: dict[GroupKey, None] = {}
        self._heard = dict.fromkeys(STREAMS, 0)
        self._refusals = SeenRefusals()
        self._avoided: dict[tuple[str, str], NodesAvoided] = {}
        self._later: dict[GroupKey, float] = {}
        """When groups are to be looked at, though nothing happened."""
        for kind, key in sorted(self._world.objects):
            self._apply(kind, key, self._world.values[kind, key], "")
        self.heard = len(self._world.changes)
        for stream in STREAMS:
            self.hear_bus(stream, len(self._bus.streams[stream]))
        self._hear_avoided()
        self.touch((*self.view.groups(), *self.records.groups()))

    # --- hearing --------------------------------------------------------------------

    def hear(self) -> None:
        """Hear everything that happened."""
        self.hear_api(len(self._world.changes))
        for stream in STREAMS:
            self.hear_bus(stream, len(self._bus.streams[stream]))
        self._hear_avoided()
        passed_s = self._world.passed_s
        due = [group for group, due_s in self._later.items() if due_s <= passed_s]
        for group in due:
            del self._later[group]
        self.touch(due)

    def _hear_avoided(self) -> None:
        for message in self._bus.avoided:
            self._avoided[message.namespace, message.name] = message

    def hear_api(self, count: int) -> None:
        """Hear of the next changes."""
        for change in self._world.changes[self.heard : self.heard + count]:
            self.touch(self._apply(change.kind, change.key, change.value, change.uid))
        self.heard = min(self.heard + count, len(self._world.changes))

    def hear_bus(self, stream: str, count: int) -> None:
        """Read the next messages of a stream."""
        first = self._heard[stream]
        for sequence, message in self._bus.streams[stream][first : first + count]:
            group = self.records.apply(message, sequence)
            self.touch(() if group is None else (group,))
            self._heard[stream] = sequence

    def touch(self, groups: Iterable[GroupKey]) -> None:
        """Look at these groups, soon."""
        self._touched |= dict.fromkeys(groups)

    def _apply(self, kind: str, key: str, value: Any, uid: str) -> frozenset[GroupKey]:
        if kind == "Node":
            labels = {} if value is None else value.metadata.labels
            node = KnownNode(state=labels.get("state", ""), labels=labels)
            return self.view.apply_node(key, None if value is None else node)
        if kind == "Pod":
            uid = uid or ("" if value is None else value.metadata.uid)
            self._refusals.apply(uid, value, self._world.now)
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
        context = self._context(group)
        plan = plan_gang(context)
        namespace = Namespace(group.namespace)
        self.records.forget(GangKey(namespace, uid) for uid in plan.forget)
        self.reports = plan.reports
        if plan.look_again_s is not None:
            due_s = self._world.passed_s + plan.look_again_s
            self._later[group] = min(due_s, self._later.get(group, due_s))
        writes = plan.patches or plan.removals
        messages = () if writes else plan.messages
        if writes or messages:
            self.rounds[group] = Round(
                context,
                list(plan.patches),
                list(plan.removals),
                list(messages),
                self.heard,
            )
        return group

    def carry_out(self, group: GroupKey) -> None:
        """Do the next thing that was planned for a group."""
        planned = self.rounds[group]
        if planned.patches:
            self._world.planned = planned.heard
            self._write(planned.patches.pop(0))
        elif planned.removals:
            self._remove(planned.removals.pop(0))
        elif planned.messages:
            self._say(planned.messages.pop(0), planned.context)
        if not (planned.patches or planned.removals or planned.messages):
            del self.rounds[group]
            self.touch((group,))

    def _context(self, group: GroupKey) -> PlanContext:
        return PlanContext(
            cluster=CLUSTER,
            group=group,
            view=self.view,
            records=self.records.of_group(group),
            owns=lambda claim: f"-{THEIRS}" not in claim.metadata.name,
            now=self._world.now,
            refused=lambda uid, attempt: self._refused.get((uid, attempt), ""),
            forgotten=lambda uid: self.records.forgotten(
                GangKey(Namespace(group.namespace), uid)
            ),
            refused_since=self._refusals.since,
            avoided=lambda name: self._avoided.get((group.namespace, name)),
        )

    def report_group(self, group: GroupKey) -> tuple[StatusReport, ...]:
        """Say what is reported of a group now."""
        return plan_gang(self._context(group)).reports

    def tell_all(self) -> dict[str, tuple[StatusReport, DecisionMessage | None]]:
        """Say of each pod why it waits, and what was last decided of it."""
        reports: dict[str, tuple[StatusReport, DecisionMessage | None]] = {}
        for group in {*self.view.groups(), *self.records.groups()}:
            records = sorted(self.records.of_group(group), key=lambda r: r.age)
            for report in plan_gang(self._context(group)).reports:
                for pod in report.pods:
                    uid = pod.metadata.uid
                    said = [r.decision for r in records if uid in r.pods or not r.pods]
                    waits = [d for d in said if isinstance(d, GangPending)]
                    held = [d for d in said if isinstance(d, GangAllocated)]
                    last = (waits or held or said or [None])[-1]
                    reports[uid] = report, report.decision or last
        return reports

    def _write(self, patch: Patch) -> None:
        try:
            self._refuse_or_take(patch)
        except Refused as refused:
            if refused.why == "invalid" and patch.gang:
                self._refused[GangUID(patch.gang), patch.attempt] = str(refused)
        answer = self._world.values.get((patch.kind, patch.key))
        self._apply(patch.kind, patch.key, answer, patch.uid)

    def _remove(self, pod: Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        there = self._world.get("Pod", key)
        if there is not None and there["metadata"]["uid"] == pod.metadata.uid:
            self._world.terminate_pod(key)
        self._apply("Pod", key, self._world.values.get(("Pod", key)), pod.metadata.uid)

    def _refuse_or_take(self, patch: Patch) -> None:
        if patch.gang and self.refusing:
            self.refusing -= 1
            raise Refused("invalid", "as the test wants it")
        self._world.patch(patch)

    def _say(self, message: PublisherMessage, context: PlanContext) -> None:
        if isinstance(message, NodesAvoided):
            self._bus.avoided.append(message)
            self._avoided[message.namespace, message.name] = message
            return
        expected = None
        if isinstance(message, ConfirmationMessage):
            confirmed = (
                record.confirmation_sequence
                for record in context.records
                if record.uid == message.uid
            )
            expected = next(confirmed, 0)
        sequence = self._bus.publish(message, expected)
        if sequence or not isinstance(message, ConfirmationMessage):
            self.records.apply(message, sequence)
            return
        stream = self._bus.streams["CONF"]
        last = self._bus.last.get(message.uid, 0)
        confirmation: Any = stream[last - 1][1] if last else None
        self.records.correct(message.key, confirmation, last)
