"""Who plays beside the plans: the bus, and a solver that gives each device once.

The solver keeps the real life of gangs (`contracts.lifecycle`) and chooses nodes in the
simplest way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from contracts.allocation import AllocationResult
from contracts.avoidance import NodesAvoided
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
from contracts.lifecycle import GangRecord, LifecycleMessage
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
from contracts.pods.members import group_connected
from contracts.pods.node_affinity import read_pinned_node, read_required_nodes
from tests import builders
from tests.simulation.world import World, devices_of

CLUSTER = ClusterName("east")
STREAMS = ("SUBMIT", "CMD", "DEC", "CONF")
_Place: TypeAlias = tuple[Member, int]
"""A pod of a gang: its member and its index."""


class Bus:
    """Four streams; SUBMIT takes one message a gang, CONF only the next one."""

    def __init__(self) -> None:
        self.streams: dict[str, list[tuple[int, LifecycleMessage]]] = {
            s: [] for s in STREAMS
        }
        self.last: dict[GangUID, int] = {}
        """The sequence of the last confirmation of each gang."""
        self.avoided: list[NodesAvoided] = []
        """What was said of nodes that gangs avoid."""

    def publish(self, message: LifecycleMessage, expected: int | None = None) -> int:
        """Store a message; 0: it was refused."""
        stream = self.streams[stream_of(message)]
        taken = isinstance(message, SubmitGang) and any(
            other.uid == message.uid for _, other in stream
        )
        if taken or expected not in (None, self.last.get(message.uid, 0)):
            return 0
        sequence = len(stream) + 1
        if isinstance(message, ConfirmationMessage):
            self.last[message.uid] = sequence
        stream.append((sequence, message))
        return sequence

    def commands(self, uid: GangUID) -> list[CommandMessage]:
        """Return the commands about a gang, in their order."""
        about = (message for _, message in self.streams["CMD"] if message.uid == uid)
        return [message for message in about if isinstance(message, CommandMessage)]


def stream_of(message: LifecycleMessage) -> str:
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
        for record in sorted(
            self.records.values(), key=lambda r: (r.submission_sequence, r.uid)
        ):
            message = self._next(record)
            if message is not None:
                self.say(message)
                return True
        return False

    def say(self, message: DecisionMessage) -> None:
        """Publish a decision and apply it."""
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
                self._apply(message, sequence)
            self._heard[stream] = len(self._bus.streams[stream])

    def _apply(self, message: LifecycleMessage, sequence: int) -> None:
        record = self.records.get(message.uid) or GangRecord.of(message)
        self.records[message.uid] = record.apply(message, sequence)

    def free(self) -> dict[str, list[str]]:
        """Return the devices that nothing holds, by node."""
        taken: set[tuple[str, str]] = set()
        for _, claim in self._world.all("ResourceClaim"):
            taken |= devices_of(claim)
        for record in self.records.values():
            decision = record.allocated
            for member in decision.members if decision is not None else ():
                for given in member.claims:
                    results = given.allocation.devices.results
                    taken |= {(str(r.pool), str(r.device)) for r in results}
        return {
            node: [name for name in names if (node, name) not in taken]
            for node, names in self._devices.items()
            if self._world.get("Node", node) is not None
        }

    def _place(self, submission: SubmitGang) -> tuple[MemberAllocated, ...] | None:
        """Place all pods, or of each member as many as fit if they are enough."""
        free = self.free()
        allocated: dict[tuple[str, int], MemberAllocated] = {}
        members = submission.gang.spec.members
        full: set[str] = set()
        for together in _list_together(members):
            names = {member.name for member, _ in together}
            node = None if names & full else _node_for(together, free)
            if node is None:
                full |= names
                continue
            shared: dict[str, AllocationResult] = {}
            for member, index in together:
                allocated[member.name, index] = _allocate(
                    member, index, node, free[node], shared
                )
        counts = Counter(name for name, _ in allocated)
        if any(counts[member.name] < member.least for member in members):
            return None
        order = [(member.name, n) for member in members for n in range(member.count)]
        return tuple(allocated[place] for place in order if place in allocated)


def _list_together(members: Sequence[Member]) -> list[list[_Place]]:
    """List the pods by those that share claims, which are on one node here."""
    places = [(member, index) for member in members for index in range(member.count)]

    def ties(place: _Place) -> list[str]:
        member, _ = place
        return [claim.claim_name for claim in member.claims if claim.claim_name]

    return group_connected(places, ties)


def _node_for(together: Sequence[_Place], free: Mapping[str, list[str]]) -> str | None:
    only: set[str | None] = set()
    left_out: set[str] = set()
    wanted: set[object] = set()
    for member, index in together:
        only |= {member.node.node_name, read_pinned_node(member.node.affinity)}
        left_out |= set(_list_left_out(member))
        for claim in member.claims:
            wanted.add(claim.claim_name or (member.name, index, claim.name))
    only -= {"", None}
    for node, names in free.items():
        if len(names) >= len(wanted) and only <= {node} and node not in left_out:
            return node
    return None


def _list_left_out(member: Member) -> Iterator[str]:
    """Name the nodes that the affinity of a member leaves out."""
    selector = read_required_nodes(member.node.affinity)
    for term in () if selector is None else selector.node_selector_terms:
        for field in term.match_fields:
            if field.operator == "NotIn":
                yield from field.values


def _allocate(
    member: Member,
    index: int,
    node: str,
    free: list[str],
    shared: dict[str, AllocationResult],
) -> MemberAllocated:
    """Give a pod the next devices; what it shares is given once, in `shared`."""
    claims = []
    for claim in member.claims:
        held = shared.get(claim.claim_name or "")
        if held is None:
            request = (
                "gpu" if claim.spec is None else claim.spec.devices.requests[0].name
            )
            held = builders.allocation(
                builders.result(free.pop(0), request=request, pool=node), node=node
            )
        if claim.claim_name:
            shared[claim.claim_name] = held
        ref = ClaimRef(Namespace(builders.NAMESPACE), "any", ClaimUID("any"))
        claims.append(ClaimAllocated(claim=claim.name, ref=ref, allocation=held))
    return MemberAllocated(
        member=member.name, index=index, node=NodeName(node), claims=tuple(claims)
    )
