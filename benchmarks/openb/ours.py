"""Moorings as a policy: every batch goes the service's way, in this process.

The fleet is announced as pools of GPUs that may be shared by thousandths, a pod is a
gang of one member with one claim. Snapshot, selectors, Problem, Decision, judge, and
what was decided applied as the bus would bring it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import NAMESPACE_DNS, uuid5

from benchmarks.openb.fleet import Placement
from benchmarks.openb.trace import MILLI, Trace, TraceNode, TracePod
from benchmarks.solver.full_path import ALL, Decider
from benchmarks.worlds.fleets import CLASS, CLUSTER, DRIVER, observed_class
from contracts.claim import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from contracts.device import Device, DeviceAttribute, DeviceCapacity, ResourcePool
from contracts.gang import Gang, GangSpec, Member, MemberClaim, MemberNode
from contracts.ids import (
    DeviceName,
    DriverName,
    GangUID,
    NodeName,
    PoolName,
    SolveID,
)
from contracts.lifecycle import GangRecord
from contracts.messages import (
    DecisionMessage,
    DevicesAnnounced,
    MemberAllocated,
    ReleaseOutcome,
    SubmitGang,
)
from contracts.meta import ObjectMeta
from contracts.quantity import Quantity
from solver.cel.evaluator import SelectorEvaluator
from solver.decision import GangDecision
from solver.problem.problem import Parameters
from solver.queueing.gang_queue import choose_batch
from solver.service.messages import make_decision, make_release
from solver.snapshot.snapshot import Snapshot, apply

GPU, MODEL, SHARE = "gpu-", "model", "milli"
"""How GPUs are named; their attribute; the capacity that pods share."""
_UUIDS = uuid5(NAMESPACE_DNS, "openb.moorings.dev")


class Moorings:
    """The allocator on one fleet."""

    def __init__(
        self, trace: Trace, evaluator: SelectorEvaluator, parameters: Parameters
    ) -> None:
        self._places = {node.name: i for i, node in enumerate(trace.nodes)}
        self._pods = 0
        self._held: dict[Placement, GangRecord] = {}
        """Whose place it is; of pods that share GPUs, the last one's."""
        snapshot = apply(Snapshot(), observed_class())
        for node in trace.nodes:
            snapshot = apply(snapshot, announcement(node))
        self._snapshot = snapshot
        self._decider = Decider(evaluator, parameters)

    def place(self, pods: Sequence[TracePod]) -> list[Placement | None]:
        """Decide a batch; None: the pod is refused, and never tried again."""
        first = self._pods + 1
        self._pods += len(pods)
        for number, pod in enumerate(pods, start=first):
            message = submission(number, pod)
            self._snapshot = apply(self._snapshot, message, sequence=number)
        records = choose_batch(self._snapshot, ALL)
        decision = self._decider.decide(self._snapshot).decision
        return [
            self._believe(answer, record)
            for answer, record in zip(decision.gangs, records, strict=True)
        ]

    def end(self, placement: Placement) -> None:
        """End the pod that has this place."""
        former = self._held.pop(placement)
        record = self._snapshot.gangs.get(former.key) or former
        message = make_release(
            record, ReleaseOutcome.COMPLETED, cluster=CLUSTER, epoch=1
        )
        after = record.submission_sequence + 1
        self._snapshot = apply(self._snapshot, message, sequence=after)

    def _believe(self, answer: GangDecision, record: GangRecord) -> Placement | None:
        """Apply an answer as if it came back over the bus; who waits is cancelled."""
        if answer.failed or answer.rejected:
            raise ValueError(f"{answer.name}: {answer.reasons}")
        message: DecisionMessage | None = None
        if answer.members:
            message = make_decision(
                answer, record, cluster=CLUSTER, solve=SolveID("openb"), epoch=1
            )
        if message is None:
            outcome = ReleaseOutcome.CANCELLED
            message = make_release(record, outcome, cluster=CLUSTER, epoch=1)
        self._snapshot = apply(
            self._snapshot, message, sequence=record.submission_sequence
        )
        if not answer.members:
            return None
        placement = self._placement(answer.members[0])
        self._held[placement] = record
        return placement

    def _placement(self, member: MemberAllocated) -> Placement:
        results = [
            result
            for claim in member.claims
            for result in claim.allocation.devices.results
        ]
        gpus = tuple(int(result.device.removeprefix(GPU)) for result in results)
        return Placement(self._places[member.node], gpus)


def announcement(node: TraceNode) -> DevicesAnnounced:
    """Announce a node: each of its GPUs may be shared by thousandths."""
    devices = tuple(
        Device(
            name=DeviceName(f"{GPU}{index}"),
            attributes={MODEL: DeviceAttribute(string_value=node.model)},
            capacity={SHARE: DeviceCapacity(value=Quantity.of(MILLI))},
            allow_multiple_allocations=True,
        )
        for index in range(node.gpus)
    )
    pool = ResourcePool(
        driver=DriverName(DRIVER),
        name=PoolName(node.name),
        generation=1,
        devices=devices,
    )
    return DevicesAnnounced(
        cluster=CLUSTER,
        node=NodeName(node.name),
        pools=(pool,),
        resources=resources(node),
    )


def submission(number: int, pod: TracePod) -> SubmitGang:
    """Ask for a pod: a gang of one member, with a claim if it wants GPUs."""
    claim = MemberClaim(name="gpus", spec=claim_spec(pod))
    member = Member(
        name="pod",
        claims=(claim,) if pod.gpus else (),
        node=MemberNode(resources=resources(pod)),
    )
    uid = str(uuid5(_UUIDS, str(number)))
    return SubmitGang(
        cluster=CLUSTER,
        uid=GangUID(uid),
        gang=Gang(
            metadata=ObjectMeta(name=f"pod-{number}", namespace="openb", uid=uid),
            spec=GangSpec(members=(member,)),
        ),
    )


def claim_spec(pod: TracePod) -> ResourceClaimSpec:
    """Ask for its GPUs, for its share of each, and for a model that will do."""
    name = f'device.attributes["{DRIVER}"].{MODEL}'
    listed = ", ".join(f'"{model}"' for model in pod.models)
    selector = CELDeviceSelector(expression=f"{name} in [{listed}]")
    request = ExactDeviceRequest(
        device_class_name=CLASS,
        count=pod.gpus,
        selectors=(DeviceSelector(cel=selector),) if pod.models else (),
        capacity=CapacityRequirements(requests={SHARE: Quantity.of(pod.gpu_milli)}),
    )
    return ResourceClaimSpec(
        devices=DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=request),))
    )


def resources(of: TraceNode | TracePod) -> dict[str, Quantity]:
    """Return the CPU and memory of a node or pod; nothing where it has none."""
    amounts = {
        "cpu": Quantity.parse(f"{of.cpu_milli}m"),
        "memory": Quantity.parse(f"{of.memory_mib}Mi"),
    }
    return {name: amount for name, amount in amounts.items() if amount.nano}
