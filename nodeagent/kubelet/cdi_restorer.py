"""Writes CDI files that are missing or outdated when the agent starts.

They lie in memory, and what a source gives containers may differ after an upgrade. From
the records of prepared claims, until each has its file or is unprepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from contracts.ids import ClaimUID
from nodeagent.errors import CardChangedError, PrepareError
from nodeagent.kubelet.preparer import Preparer
from runtime.kube.errors import KubernetesError
from runtime.log import get_logger
from runtime.waits import first_of

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0

log = get_logger(__name__)


class CdiRestorer:
    """The claims that were prepared before this process started."""

    def __init__(self, preparers: Sequence[Preparer]) -> None:
        self._due = [
            (preparer, uid)
            for preparer in preparers
            for uid in preparer.checkpoint.claims
        ]
        self._failures: dict[ClaimUID, str] = {}
        """Why the file of a claim cannot be written, as last logged."""

    async def run(self, stop: asyncio.Event) -> None:
        """Write all files; what cannot be written now is tried again."""
        pause_s = _FIRST_PAUSE_S
        while self._due and not stop.is_set():
            self._due = [
                (preparer, uid)
                for preparer, uid in self._due
                if not await self._try_claim(preparer, uid)
            ]
            if self._due:
                await first_of(stop, within_s=pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        await stop.wait()

    async def _try_claim(self, preparer: Preparer, uid: ClaimUID) -> bool:
        """Write the file of one claim; False: it is to be tried again."""
        try:
            await preparer.restore_cdi(uid)
        except CardChangedError as error:
            log.warning("card.changed", uid=uid, reason=str(error))
        except (PrepareError, KubernetesError, OSError) as error:
            reason = str(error)
            if self._failures.get(uid) != reason:
                log.warning("cdi.unrestored", uid=uid, reason=reason)
            self._failures[uid] = reason
            return False
        return True
