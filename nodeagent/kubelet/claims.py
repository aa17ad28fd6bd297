"""Reads this node's claims from the API server, and lets go of those that are gone."""

from __future__ import annotations

import asyncio
import time

from contracts.claim import ResourceClaim
from contracts.errors import ContractsError
from contracts.ids import ClaimRef, ClaimUID, NodeName, object_key
from contracts.kubernetes.decode import decode_object
from nodeagent.errors import PrepareError
from nodeagent.kubelet.preparer import Preparer
from nodeagent.prepare.prepared import PreparedClaim
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import KubernetesError, NotFoundError, UnavailableError
from runtime.kube.kinds import Kind, ServedKinds
from runtime.kube.lenient import ALTERED
from runtime.log import get_logger
from runtime.waits import first_of

log = get_logger(__name__)

ANSWER_S = 20.0
"""Kubelet waits 45 s for all of it, and then nobody says what was waited for."""
SWEEP_S = 60.0
GONE_S = 300.0
"""For so long a claim must have been gone: kubelet itself unprepares until then."""


class ClaimReader:
    """Reads claims in the version that the cluster serves."""

    def __init__(self, api: KubernetesApi, *, answer_s: float = ANSWER_S) -> None:
        self.api = api
        self._answer_s = answer_s
        self._served: ServedKinds | None = None

    async def find_kind(self) -> Kind:
        """Return the kind of claims in the version that the cluster serves.

        Raises:
            KubernetesError: the API server does not say.
        """
        if self._served is None:
            self._served = await self.api.fetch_served_kinds()
        return self._served.resource_claim

    async def read(self, asked: ClaimRef) -> ResourceClaim:
        """Read a claim by name as it is now.

        Raises:
            PrepareError: it does not exist, or cannot be read.
            KubernetesError: the API server does not answer, or does not let us.
        """
        try:
            async with asyncio.timeout(self._answer_s):
                kind = await self.find_kind()
                key = object_key(asked.namespace, asked.name)
                raw = await self.api.get(kind, key)
        except NotFoundError as error:
            raise PrepareError(f"ResourceClaim {asked} does not exist") from error
        except TimeoutError as error:
            what = f"get ResourceClaim {asked}"
            reason = f"the API server did not answer within {self._answer_s:g} s"
            raise UnavailableError(what, reason) from error
        if ALTERED in raw:
            raise PrepareError(f"ResourceClaim {asked}: {raw[ALTERED]}")
        try:
            claim = decode_object(raw).value
        except ContractsError as error:
            raise PrepareError(str(error)) from error
        if not isinstance(claim, ResourceClaim):
            raise PrepareError(f"ResourceClaim {asked} is not a ResourceClaim")
        return claim

    async def is_gone(self, prepared: PreparedClaim, node: NodeName) -> bool:
        """True if a claim no longer holds what was prepared for it on this node.

        It was deleted, deallocated or replaced, or allocated elsewhere since.

        Raises:
            KubernetesError: the API server does not say.
        """
        held = prepared.claim
        try:
            claim = await self.read(held)
        except PrepareError as error:
            return isinstance(error.__cause__, NotFoundError)
        if claim.metadata.uid != held.uid or claim.allocation is None:
            return True
        allocated = {result.device_id for result in claim.allocation.devices.results}
        is_elsewhere = claim.allocation.only_node not in ("", node)
        return is_elsewhere or not allocated.issuperset(prepared.device_ids)


class ForgottenClaims:
    """Unprepares claims that kubelet has forgotten, such as after losing its state."""

    def __init__(
        self, preparers: tuple[Preparer, ...], reader: ClaimReader, node: NodeName
    ) -> None:
        self._preparers = preparers
        self._reader = reader
        self._node = node
        self._gone_since_s: dict[ClaimUID, float] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Check all prepared claims from time to time."""
        while not stop.is_set():
            await first_of(stop, within_s=SWEEP_S)
            for preparer in self._preparers:
                if not stop.is_set():
                    await self.sweep(preparer, time.monotonic())

    async def sweep(self, preparer: Preparer, now_s: float) -> None:
        """Check the prepared claims of one driver."""
        for uid, prepared in tuple(preparer.checkpoint.claims.items()):
            try:
                if not await self._reader.is_gone(prepared, self._node):
                    self._gone_since_s.pop(uid, None)
                elif now_s - self._gone_since_s.setdefault(uid, now_s) >= GONE_S:
                    log.warning("claim.forgotten", claim=str(prepared.claim), uid=uid)
                    await preparer.unprepare(prepared.claim)
                    self._gone_since_s.pop(uid, None)
            except (KubernetesError, PrepareError, OSError) as error:
                log.warning("sweep.failed", uid=uid, reason=str(error))
