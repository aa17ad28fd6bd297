"""Writes what this node knows of prepared devices into the status of their claims.

After a claim is prepared, and never in the way of it: containers start whether or not
anybody can be told. By server-side apply, so that what others say stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from contracts.ids import ClaimRef
from nodeagent.kubelet.claims import ClaimReader
from nodeagent.kubelet.describe import describe_devices
from nodeagent.kubelet.preparer import Preparer
from nodeagent.prepare.device_status import Entry, plan_status
from nodeagent.prepare.prepared import PreparedClaim
from nodeagent.sources.source import DeviceSource
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
    ) -> None:
        """`preparers` may grow until `run`."""
        self._reader = reader
        self._field = DeviceStatusField(reader.api)
        self._source = source
        self._preparers = preparers
        self._due: dict[ClaimRef, None] = {}
        """Oldest first."""
        self._wake = asyncio.Event()
        self._outage = Outage("write device status into claims")
        self._refusals = Refusals()

    def note(self, claim: ClaimRef) -> None:
        """Write of a claim soon: it was prepared."""
        self._due[claim] = None
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Write of all claims that are prepared, and of each that will be."""
        for preparer in self._preparers:
            # Whether it was written before this process began, nobody knows.
            for record in preparer.checkpoint.claims.values():
                self.note(record.claim)
        while not stop.is_set():
            self._wake.clear()
            chunk = list(islice(self._due, _AT_ONCE))
            for claim in chunk:
                del self._due[claim]
            errors = await asyncio.gather(*map(self._try_claim, chunk))
            failed = [error for error in errors if error is not None]
            if failed:
                pause_s = self._outage.note_failure(failed[0])
                if isinstance(failed[0], PermissionDeniedError):
                    pause_s = max(pause_s, _DENIED_PAUSE_S)
                # One claim may be denied and the next one not.
                await first_of(stop, self._wake, within_s=pause_s)
            elif chunk:
                self._outage.note_success()
            if not self._due:
                await first_of(stop, self._wake)

    async def _try_claim(self, claim: ClaimRef) -> KubernetesError | None:
        """Write of one claim; returns why it is to be tried again."""
        with self._refusals.guard(f"ResourceClaim/{claim}"):
            try:
                await self._write_claim(claim)
            except _OUTDATED as error:
                log.info("device_status.outdated", claim=str(claim), reason=str(error))
            except InvalidError as error:
                self._log_refusal(claim, error.field, error.reason)
            except KubernetesError as error:
                self._due[claim] = None
                return error
        return None

    async def _write_claim(self, claim: ClaimRef) -> None:
        records: list[PreparedClaim] = []
        for preparer in self._preparers:
            preparer.checkpoint.refresh()
            if claim.uid in preparer.checkpoint.claims:
                records.append(preparer.checkpoint.claims[claim.uid])
        devices = [device for record in records for device in record.device_ids]
        descriptions = await describe_devices(self._source, devices)
        plan = plan_status(records, descriptions)
        for left_out in plan.left_out:
            field = f"{left_out.device}: {left_out.field}"
            self._log_refusal(claim, field, left_out.reason)
        if plan.entries:
            await self._apply_entries(claim, plan.entries)

    async def _apply_entries(self, claim: ClaimRef, entries: tuple[Entry, ...]) -> None:
        kind = await self._reader.find_kind()
        if await self._field.apply(kind, claim, entries):
            log.info("device_status.written", claim=str(claim), devices=len(entries))

    def _log_refusal(self, claim: ClaimRef, field: str, reason: str) -> None:
        subject = f"ResourceClaim/{claim}"
        self._refusals.note(
            Refused(subject=subject, field=field, reason=reason, sequence=0)
        )
