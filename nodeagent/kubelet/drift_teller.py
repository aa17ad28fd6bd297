"""Tells where what runs here differs from what was decided: log, metric and bus."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from msgspec import structs

from contracts.claim import ResourceClaim
from contracts.drift import DeviceDrift, DriftKind
from contracts.ids import ClaimRef, ClaimUID, DeviceID, DriverName
from nodeagent.drift import (
    ClaimOnRecord,
    Drift,
    DriftWatch,
    NodeSight,
    find_settled,
)
from nodeagent.errors import PodResourcesError, PrepareError
from nodeagent.health import Moment
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.pod_resources import PodResources
from nodeagent.kubelet.preparer import Preparer
from nodeagent.metrics import DRIFT
from nodeagent.prepare.prepared import PreparedClaim
from runtime.kube.errors import KubernetesError, NotFoundError
from runtime.log import get_logger
from runtime.retry import Outage
from runtime.waits import first_of

LOOK_S = 15.0
_SETTLED_LOOKS = 20
"""So many looks believe what the API server said of a claim that nothing contradicts:
it is asked by every node."""

log = get_logger(__name__)

ListDropped = Callable[[Collection[DriverName]], Iterable[PreparedClaim]]
"""Lists the records of drivers that nobody serves, given those that we do; blocks."""


class DriftTeller:
    """Looks at kubelet, claims and records, over and over."""

    def __init__(
        self,
        pod_resources: PodResources,
        reader: ClaimReader,
        preparers: Iterable[Preparer],
        *,
        lasts_s: float,
        clock: Callable[[], Moment],
        list_dropped: ListDropped,
        tell: Callable[[tuple[DeviceDrift, ...]], None],
    ) -> None:
        """`tell` hears after each look of all that differs, for the bus."""
        self._list_dropped = list_dropped
        self._clock = clock
        self._tell_bus = tell
        self._known: dict[ClaimRef, tuple[ClaimOnRecord | None, float]] = {}
        """Answers of the API server, and when they came."""
        self._pod_resources = pod_resources
        self._reader = reader
        self._preparers = {preparer.driver: preparer for preparer in preparers}
        self._look_s = min(LOOK_S, lasts_s)
        self._watch = DriftWatch(lasts_s)
        self._outage = Outage("compare what runs with what was decided")

    async def run(self, stop: asyncio.Event) -> None:
        """Look until `stop`; kubelet or API server being away ends nothing."""
        while not stop.is_set():
            try:
                sight = await self._observe_node()
            except (PodResourcesError, KubernetesError, OSError) as error:
                await self._outage.wait(error, stop)
                continue
            self._outage.note_success()
            self._report_drift(*self._watch.look(sight, self._clock()))
            self._tell_bus(self._watch.told)
            await first_of(stop, within_s=self._look_s)

    async def _observe_node(self) -> NodeSight:
        in_use, wanted = await self._pod_resources.list_held(self._preparers.keys())
        records: list[PreparedClaim] = []
        for preparer in self._preparers.values():
            preparer.checkpoint.refresh()
            records.extend(preparer.checkpoint.claims.values())
        dropped = await asyncio.to_thread(self._list_dropped, self._preparers.keys())
        sight = NodeSight(
            in_use=in_use,
            wanted=wanted,
            prepared=_gather_devices(records),
            dropped=_gather_devices(dropped),
        )
        return structs.replace(sight, claims=await self._read_claims(sight))

    async def _read_claims(
        self, sight: NodeSight
    ) -> dict[ClaimRef, ClaimOnRecord | None]:
        """Read the claims that are named; what nothing contradicts only now and then.

        Raises:
            KubernetesError: the API server does not answer.
        """
        named = {ClaimRef(ref.namespace, ref.name) for ref in sight.prepared}
        named |= {wanted.claim for wanted in sight.wanted}
        settled = find_settled(sight)
        now_s = self._clock().monotonic_s
        oldest_s = now_s - _SETTLED_LOOKS * self._look_s
        known = {
            ref: known
            for ref, known in self._known.items()
            if ref in named
            and known[1] > oldest_s
            and _identify_claim(ref, known[0]) in settled
        }
        for ref in sorted(named - known.keys()):
            try:
                known[ref] = self._read_record(await self._reader.read(ref)), now_s
            except PrepareError as error:
                if isinstance(error.__cause__, NotFoundError):
                    known[ref] = None, now_s
        self._known = known
        return {ref: claim for ref, (claim, _) in known.items()}

    def _read_record(self, claim: ResourceClaim) -> ClaimOnRecord:
        allocation = claim.allocation
        results = () if allocation is None else allocation.devices.results
        devices = (result.device_id for result in results)
        ours = frozenset(
            device for device in devices if device.driver in self._preparers
        )
        return ClaimOnRecord(ClaimUID(claim.metadata.uid), ours)

    def _report_drift(self, began: Iterable[Drift], ended: Iterable[Drift]) -> None:
        for event, drifts in (("drift.began", began), ("drift.ended", ended)):
            for drift in drifts:
                log.warning(
                    event,
                    kind=drift.kind.value,
                    claim=drift.claim,
                    device=str(drift.device),
                    pod=drift.pod,
                )
        counts = Counter(drift.kind for drift in self._watch.told)
        for kind in DriftKind:
            DRIFT.labels(kind.value).set(counts[kind])


def _gather_devices(
    records: Iterable[PreparedClaim],
) -> dict[ClaimRef, frozenset[DeviceID]]:
    """Join the devices of each claim, of whatever drivers."""
    gathered: dict[ClaimRef, frozenset[DeviceID]] = {}
    for record in records:
        devices = gathered.get(record.claim, frozenset())
        gathered[record.claim] = devices | frozenset(record.device_ids)
    return gathered


def _identify_claim(name: ClaimRef, claim: ClaimOnRecord | None) -> ClaimRef | None:
    """Name a claim with its uid; None: there is none."""
    return None if claim is None else structs.replace(name, uid=claim.uid)
