"""Writes what this node knows of prepared devices into the status of their claims.

After a claim is prepared, and never in the way of it: containers start whether or not
anybody can be told. A pod's network is set up later, and links change while it runs, so
devices are described again and again, and what changed is written. By server-side
apply, so that what others say stays.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice

from contracts.ids import ClaimRef, ClaimUID, DeviceID
from nodeagent.errors import PrepareError
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.describe import describe_devices
from nodeagent.kubelet.preparer import Preparer
from nodeagent.prepare.device_status import Entry, StatusPlan, plan_status
from nodeagent.prepare.prepared import PreparedClaim
from nodeagent.sources.source import DeviceDescription, DeviceSource
from runtime.kube.device_status import DeviceStatusField
from runtime.kube.errors import (
    ConflictError,
    InvalidError,
    KubernetesError,
    NotFoundError,
    PermissionDeniedError,
)
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.retry import Outage
from runtime.waits import first_of
from runtime.wire import Refused

_AT_ONCE = 4
"""Few: Prepare reads its claims through the same connections."""
FOLLOW_S = 10.0
"""How often the devices of all prepared claims are described again."""
_DENIED_PAUSE_S = 60.0
"""A person must add the right; meanwhile thousands of nodes ask."""
_OUTDATED = (ConflictError, NotFoundError)
"""The claim is another one or gone: kubelet will have it unprepared."""

log = get_logger(__name__)


class PreparedStatusWriter:
    """The claims of this node to be written of."""

    def __init__(
        self,
        reader: ClaimReader,
        source: DeviceSource,
        preparers: Sequence[Preparer],
        *,
        follow_s: float = FOLLOW_S,
    ) -> None:
        """`preparers` may grow until `run`."""
        self._follow_s = follow_s
        self._reader = reader
        self._field = DeviceStatusField(reader.api)
        self._source = source
        self._preparers = preparers
        self._due: dict[ClaimRef, None] = {}
        """Oldest first."""
        self._plans: dict[ClaimUID, StatusPlan] = {}
        """What was written last of each prepared claim."""
        self._known: dict[DeviceID, DeviceDescription] = {}
        """The last description of each device of these: one that cannot be described
        now stays as it was."""
        self._logged: dict[DeviceID, str] = {}
        self._wake = asyncio.Event()
        self._outage = Outage("write device status into claims")
        self._refusals = Refusals()

    def note(self, claim: ClaimRef) -> None:
        """Write of a claim soon: it was prepared."""
        self._due[claim] = None
        # It may have been deallocated since, which clears what was written.
        self._plans.pop(claim.uid, None)
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Write of all claims that are prepared, and of each that will be."""
        # Whether it was written before this process began, nobody knows.
        follow_at_s = time.monotonic()
        while not stop.is_set():
            self._wake.clear()
            if time.monotonic() >= follow_at_s:
                self._note_prepared()
                follow_at_s = time.monotonic() + self._follow_s
            chunk = list(islice(self._due, _AT_ONCE))
            for claim in chunk:
                del self._due[claim]
            ends = await asyncio.gather(*map(self._try_claim, chunk))
            failed = [end for end in ends if isinstance(end, KubernetesError)]
            if failed:
                pause_s = self._outage.note_failure(failed[0])
                if isinstance(failed[0], PermissionDeniedError):
                    pause_s = max(pause_s, _DENIED_PAUSE_S)
                # One claim may be denied and the next one not.
                await first_of(stop, self._wake, within_s=pause_s)
            elif any(ends):
                self._outage.note_success()
            if not self._due:
                left_s = max(0.0, follow_at_s - time.monotonic())
                await first_of(stop, self._wake, within_s=left_s)

    def _note_prepared(self) -> None:
        """Look at all prepared claims again, and forget what is prepared no more."""
        records = [
            record
            for preparer in self._preparers
            for record in preparer.checkpoint.claims.values()
        ]
        for record in records:
            self._due.setdefault(record.claim)
        uids = {record.claim.uid for record in records}
        devices = {device for record in records for device in record.device_ids}
        self._plans = {u: plan for u, plan in self._plans.items() if u in uids}
        self._known = {d: known for d, known in self._known.items() if d in devices}
        self._logged = {d: why for d, why in self._logged.items() if d in devices}

    async def _try_claim(self, claim: ClaimRef) -> KubernetesError | bool:
        """Write of one claim; True if it was written, an error: it is to be retried."""
        with self._refusals.guard(f"ResourceClaim/{claim}"):
            try:
                return await self._write_claim(claim)
            except _OUTDATED as error:
                log.info("device_status.outdated", claim=str(claim), reason=str(error))
            except InvalidError as error:
                self._log_refusal(claim, error.field, error.reason)
            except KubernetesError as error:
                self._due[claim] = None
                return error
        return False

    async def _write_claim(self, claim: ClaimRef) -> bool:
        """Write of one claim, unless that was written last; True if it was written."""
        records: list[PreparedClaim] = []
        for preparer in self._preparers:
            preparer.checkpoint.refresh()
            if claim.uid in preparer.checkpoint.claims:
                records.append(preparer.checkpoint.claims[claim.uid])
        devices = [device for record in records for device in record.device_ids]
        self._known |= await describe_devices(self._source, devices, self._logged)
        last = self._plans.get(claim.uid)
        told: Sequence[Entry] = () if last is None else last.entries
        known = [self._known[device] for device in devices if device in self._known]
        if last is None and any(description.conditions for description in known):
            told = await self._read_told(claim)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        plan = plan_status(records, self._known, told=told, now=now)
        if plan == last:
            return False
        for left_out in plan.left_out:
            field = f"{left_out.device}: {left_out.field}"
            self._log_refusal(claim, field, left_out.reason)
        is_told = bool(plan.entries or (last is not None and last.entries))
        try:
            if is_told:
                await self._apply_entries(claim, plan.entries)
        except (InvalidError, *_OUTDATED):
            self._plans[claim.uid] = plan  # the same would be refused again
            raise
        self._plans[claim.uid] = plan
        return is_told

    async def _read_told(self, claim: ClaimRef) -> Sequence[Entry]:
        """Read what a claim says by now: an agent before us knew since when.

        Raises:
            KubernetesError: the API server does not say.
        """
        try:
            status = (await self._reader.read(claim)).status
        except PrepareError:
            return ()  # as good as gone, which the write will show
        return () if status is None else status.devices

    async def _apply_entries(self, claim: ClaimRef, entries: tuple[Entry, ...]) -> None:
        kind = await self._reader.find_kind()
        if await self._field.apply(kind, claim, entries):
            log.info("device_status.written", claim=str(claim), devices=len(entries))

    def _log_refusal(self, claim: ClaimRef, field: str, reason: str) -> None:
        subject = f"ResourceClaim/{claim}"
        self._refusals.note(
            Refused(subject=subject, field=field, reason=reason, sequence=0)
        )
