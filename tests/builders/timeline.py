"""Clusters of equal nodes on which gangs run, for order over time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import structs

from contracts.allocation import Reason
from contracts.gang import Member
from contracts.ids import GangUID, SolveID
from contracts.kueue import QUEUE_NAME
from contracts.lifecycle import GangRecord, LifecycleMessage
from contracts.messages import (
    AllocationRefused,
    CancelGang,
    ExpectedStart,
    GangPending,
    GatesOpened,
    NodesLacking,
    ObjectGone,
    SubmitGang,
)
from contracts.names import GANG_UID
from solver.allocate import allocate
from solver.problem.assemble import find_missing_verdicts, resolve_gangs
from solver.problem.quota.asked import count_held
from solver.selectors.table import SelectorTable
from solver.service.messages import make_decision
from solver.snapshot.snapshot import Snapshot, apply
from solver.timeline.asking import Asker
from tests.builders.claims import claim, request
from tests.builders.devices import devices, pool
from tests.builders.gangs import gang, member, member_claim, node, pod
from tests.builders.problems import (
    CLUSTER,
    PARAMETERS,
    evaluate,
    observe,
    observe_core,
    snapshot_of,
)

RACK = "topology.kubernetes.io/rack"


def worker(pods: int = 1, gpus: int = 8, cpu: int = 0, name: str = "worker") -> Member:
    """Make equal pods, with one claim each."""
    claims = member_claim(request(count=gpus))
    resources = {"cpu": cpu} if cpu else None
    return member(claims, name=name, count=pods, resources=resources)


class World:
    """A cluster of equal nodes, and its gangs by name."""

    def __init__(self, nodes: int, gpus: int = 8, rack: int = 0, **device: Any) -> None:
        """Make the nodes, with GPUs that are so.

        `rack`: so many nodes are in one, 0: there are none.
        """
        names = (f"n-{number}" for number in range(nodes))
        pools = {name: [pool(*devices(gpus, **device), name=name)] for name in names}
        nodes_seen = (
            node(name, labels={RACK: f"r-{number // rack}"} if rack else None)
            for number, name in enumerate(pools)
        )
        self.snapshot: Snapshot = observe_core(snapshot_of(pools), *nodes_seen)
        self._came = 0
        self._table = SelectorTable()

    def __getitem__(self, name: str) -> GangRecord:
        """Return the record of a gang by its name."""
        return next(r for r in self.snapshot.gangs.values() if r.name == name)

    def submit(
        self,
        name: str,
        pods: int = 1,
        gpus: int = 8,
        cpu: int = 0,
        at_s: float = 0.0,
        **spec: Any,
    ) -> GangRecord:
        """Submit a gang of equal pods; it waits."""
        return self.submit_members(name, worker(pods, gpus, cpu), at_s=at_s, **spec)

    def submit_members(
        self,
        name: str,
        *members: Member,
        at_s: float = 0.0,
        queue: str = "",
        **spec: Any,
    ) -> GangRecord:
        """Submit a gang of these pods; it waits."""
        made = gang(*members, name=name, uid=name, **spec)
        if queue:
            labels = {QUEUE_NAME: queue}
            metadata = structs.replace(made.metadata, labels=labels)
            made = structs.replace(made, metadata=metadata)
        message = SubmitGang(cluster=CLUSTER, uid=GangUID(name), gang=made)
        self._believe(message, at_s)
        return self[name]

    def wait_for(self, name: str, at_s: float = 0.0, **spec: Any) -> GangRecord:
        """Submit a gang at a time that is tried in vain."""
        record = self.submit(name, at_s=at_s, **spec)
        (answer,) = allocate(self.asker(record).question(self.snapshot, record)).gangs
        assert not answer.members
        message = make_decision(
            answer, record, cluster=CLUSTER, solve=SolveID("s"), epoch=1
        )
        assert message is not None
        self._believe(message, at_s)
        return self[name]

    def tell(
        self,
        name: str,
        expected: ExpectedStart | None,
        lacks: tuple[NodesLacking, ...] = (),
        reasons: tuple[Reason, ...] = (),
    ) -> None:
        """Tell a gang that waits when it starts, which nodes it lacks, and why.

        Without reasons it waits for the same as before.
        """
        record = self[name]
        message = GangPending(
            cluster=CLUSTER,
            namespace=record.namespace,
            name=name,
            uid=record.uid,
            solve=SolveID("s"),
            attempt=record.attempt,
            epoch=1,
            reasons=reasons or record.reasons,
            expected=expected,
            lacks=lacks,
        )
        self._believe(message)

    def cancel(self, name: str, reason: str = "") -> None:
        """Let nobody want a gang any longer."""
        record = self[name]
        message = CancelGang(
            cluster=CLUSTER, namespace=record.namespace, uid=record.uid, reason=reason
        )
        self._believe(message)

    def remove(self, node: str) -> None:
        """Let a node go."""
        self.snapshot = apply(
            self.snapshot, ObjectGone(cluster=CLUSTER, kind="Node", key=node)
        )

    def start(
        self, name: str, pods: int = 1, gpus: int = 8, at_s: float = 0.0, **spec: Any
    ) -> GangRecord:
        """Submit a gang and decide it, at a time.

        Raises:
            AssertionError: it has no place.
        """
        cpu = spec.pop("cpu", 0)
        return self.start_members(name, worker(pods, gpus, cpu), at_s=at_s, **spec)

    def start_members(
        self, name: str, *members: Member, at_s: float = 0.0, **spec: Any
    ) -> GangRecord:
        """Submit a gang of these pods and decide it, at a time.

        Raises:
            AssertionError: it has no place.
        """
        record = self.submit_members(name, *members, **spec)
        reasons = self.decide(record, self.snapshot, at_s)
        assert self[name].placed is not None, reasons
        return self[name]

    def decide(
        self, record: GangRecord, state: Snapshot, at_s: float = 0.0
    ) -> tuple[Reason, ...]:
        """Decide a gang that waits in a state of the cluster; gives why it waits."""
        question = self.asker(record).question(state, record)
        (answer,) = allocate(question).gangs
        message = make_decision(
            answer,
            record,
            cluster=CLUSTER,
            solve=SolveID("s"),
            epoch=1,
            quota=count_held(question.gangs[0], answer.members),
        )
        if message is not None:
            self._believe(message, at_s)
        return answer.reasons

    def run(self, name: str, cpu: int = 0) -> GangRecord:
        """Let a gang that was decided run: Kubernetes' own objects say what it has."""
        record = self[name]
        assert record.placed is not None
        marks = {GANG_UID: record.uid}
        for placed in record.placed.members:
            for each in placed.claims:
                # Kubernetes makes claims of templates by names of its own.
                made_name = f"{each.ref.name}-x7f2k"
                held = claim(name=made_name, allocated=each.allocation)
                key = f"{each.ref.namespace}/{made_name}"
                self.snapshot = observe(self.snapshot, key, held)
            made = pod(
                f"{name}-{placed.member}-{placed.index}",
                annotations=marks,
                requests={"cpu": cpu},
                node_name=placed.node,
                phase="Running",
            )
            self.snapshot = observe_core(self.snapshot, made)
        opened = GatesOpened(
            cluster=CLUSTER,
            namespace=record.namespace,
            uid=record.uid,
            attempt=record.attempt,
            state=0,
        )
        self._believe(opened)
        return self[name]

    def refuse_growth(self, name: str) -> None:
        """Let a gang be decided to grow, which is not written."""
        record = self[name]
        assert record.placed is not None
        kept = dict(Counter(pod.member for pod in record.placed.members))
        attempt = record.attempt + 1
        self._believe(structs.replace(record.placed, attempt=attempt, kept=kept))
        refused = AllocationRefused(
            cluster=CLUSTER,
            namespace=record.namespace,
            uid=record.uid,
            attempt=attempt,
            reason="no",
            keeps=True,
        )
        self._believe(refused)

    def asker(self, *records: GangRecord) -> Asker:
        """Return who asks about these gangs, selectors evaluated.

        One table for all that is asked of a world, as the service has one for all.
        """
        gangs = resolve_gangs(self.snapshot, records, PARAMETERS.features)
        while wanted := find_missing_verdicts(self.snapshot, gangs, self._table):
            verdicts = [evaluate(*row) for row in wanted]
            self._table = self._table.with_verdicts(wanted, verdicts)
        return Asker(table=self._table, parameters=PARAMETERS)

    def _believe(self, message: LifecycleMessage, at_s: float = 0.0) -> None:
        self._came += 1
        self.snapshot = apply(self.snapshot, message, sequence=self._came, time_s=at_s)
