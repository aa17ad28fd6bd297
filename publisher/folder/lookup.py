"""Finding out, on the bus, where the claims of a gang come from.

Asks for the one submission and the few objects that a decision needs, so the publisher
keeps no submissions in memory and cannot be behind. Decides nothing.
"""

from __future__ import annotations

import asyncio

from contracts import messages, subjects
from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.errors import ContractsError
from contracts.ids import ClusterName
from contracts.kubernetes.decode import decode_object
from contracts.messages import GangAllocated, ObjectObserved, SubmitGang
from publisher.folder.sources import ClaimSources, objects_named, sources_of
from publisher.steps import ObjectKey
from runtime.bus.bus import Bus
from runtime.errors import MessageError
from runtime.log import get_logger
from runtime.wire import Received

log = get_logger(__name__)


async def fetch_sources(bus: Bus, decision: GangAllocated) -> ClaimSources:
    """Find the spec of every claim; nothing when the submission cannot be had.

    Raises:
        BusError: the bus does not answer.
    """
    subject = subjects.submit(decision.cluster, decision.namespace, decision.uid)
    submission = await _fetch_submission(bus, subject)
    if submission is None:
        log.warning("submission.missed", subject=subject)
        return {}
    keys = sorted(objects_named(submission))
    objects = await asyncio.gather(
        *(_fetch_object(bus, decision.cluster, key) for key in keys)
    )
    known = {
        key: item for key, item in zip(keys, objects, strict=True) if item is not None
    }
    return sources_of(submission, known)


async def _fetch_submission(bus: Bus, subject: str) -> SubmitGang | None:
    received = await _fetch(bus, "SUBMIT", subject)
    if received is None:
        return None
    try:
        return messages.SUBMISSION.decode(received.data)
    except ContractsError as error:
        log.warning("message.refused", subject=subject, reason=str(error))
        return None


async def _fetch_object(
    bus: Bus, cluster: ClusterName, key: ObjectKey
) -> ResourceClaim | ResourceClaimTemplate | None:
    subject = subjects.state(cluster, key.kind, str(key))
    received = await _fetch(bus, "STATE", subject)
    if received is None:
        return None
    try:
        message = messages.STATE.decode(received.data)
        if not isinstance(message, ObjectObserved):
            return None
        item = decode_object(message.object).value
    except ContractsError as error:
        log.warning("message.refused", subject=subject, reason=str(error))
        return None
    return item if isinstance(item, ResourceClaim | ResourceClaimTemplate) else None


async def _fetch(bus: Bus, stream: str, subject: str) -> Received | None:
    try:
        received = await bus.last(stream, subject)
    except MessageError as error:
        log.warning("message.refused", subject=subject, reason=str(error))
        return None
    return None if received is None or received.gone else received
