"""Tells by log and metric where what runs here differs from what was decided."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, ClaimUID, DeviceID
from nodeagent.drift import ClaimOnRecord, Drift, DriftKind, DriftWatch, NodeSight
from nodeagent.errors import PodResourcesError, PrepareError
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.pod_resources import PodResources
from nodeagent.kubelet.preparer import Preparer
from nodeagent.metrics import DRIFT
from runtime.kube.errors import KubernetesError, NotFoundError
from runtime.log import get_logger
from runtime.retry import Outage
from runtime.waits import first_of

LOOK_S = 15.0

log = get_logger(__name__)


class DriftTeller:
    """Looks at kubelet, claims and records, over and over."""

    def __init__(
        self,
        pod_resources: PodResources,
        reader: ClaimReader,
        preparers: Iterable[Preparer],
        *,
        lasts_s: float,
    ) -> None:
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
                sight = await self._see()
            except (PodResourcesError, KubernetesError, OSError) as error:
                await self._outage.wait(error, stop)
                continue
            self._outage.note_success()
            self._tell(*self._watch.look(sight, time.monotonic()))
            await first_of(stop, within_s=self._look_s)

    async def _see(self) -> NodeSight:
        in_use = await self._pod_resources.list_in_use(self._preparers.keys())
        prepared: dict[ClaimRef, frozenset[DeviceID]] = {}
        for preparer in self._preparers.values():
            preparer.checkpoint.refresh()
            for record in preparer.checkpoint.claims.values():
                devices = prepared.get(record.claim, frozenset())
                prepared[record.claim] = devices | frozenset(record.device_ids)
        named = {ClaimRef(ref.namespace, ref.name) for ref in prepared}
        named |= {use.claim for use in in_use}
        claims: dict[ClaimRef, ClaimOnRecord | None] = {}
        for ref in sorted(named):
            try:
                claims[ref] = _read_record(await self._reader.read(ref))
            except PrepareError as error:
                if isinstance(error.__cause__, NotFoundError):
                    claims[ref] = None
        return NodeSight(in_use=in_use, prepared=prepared, claims=claims)

    def _tell(self, began: Iterable[Drift], ended: Iterable[Drift]) -> None:
        for event, drifts in (("drift.began", began), ("drift.ended", ended)):
            for drift in drifts:
                log.warning(
                    event,
                    kind=drift.kind.value,
                    claim=drift.claim,
                    device=drift.device,
                    pod=drift.pod,
                )
        counts = Counter(drift.kind for drift in self._watch.told)
        for kind in DriftKind:
            DRIFT.labels(kind.value).set(counts[kind])


def _read_record(claim: ResourceClaim) -> ClaimOnRecord:
    allocation = claim.allocation
    results = () if allocation is None else allocation.devices.results
    devices = frozenset(result.device_id for result in results)
    return ClaimOnRecord(ClaimUID(claim.metadata.uid), devices)
