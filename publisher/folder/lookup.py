"""Finding out, on the bus, where the claims of a gang come from.

Asks for the one submission and the few objects that a decision needs, so the publisher
keeps no submissions in memory and cannot be behind. Decides nothing.
"""

from __future__ import annotations

import asyncio

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.ids import ClusterName
from contracts.kubernetes.decode import decode_object
from contracts.messages import GangAllocated, ObjectObserved
from contracts.topics import STATE, SUBMISSIONS, M, Topic
from publisher.folder.sources import ClaimSources, find_references, find_sources
from publisher.steps import ObjectKey
from runtime.bus.bus import Bus
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.wire import Incoming

log = get_logger(__name__)


async def fetch_sources(
    bus: Bus, decision: GangAllocated, refusals: Refusals
) -> ClaimSources:
    """Find the spec of every claim; nothing when the submission cannot be had.

    Raises:
        BusError: the bus does not answer.
    """
    address = decision.address
    submission = await _fetch_last(bus, refusals, SUBMISSIONS, *address)
    if submission is None:
        log.warning("submission.missed", subject=SUBMISSIONS.subject(*address))
        return {}
    keys = sorted(find_references(submission))
    objects = await asyncio.gather(
        *(_fetch_object(bus, refusals, decision.cluster, key) for key in keys)
    )
    objects_by_key = {
        key: value
        for key, value in zip(keys, objects, strict=True)
        if value is not None
    }
    return find_sources(submission, objects_by_key)


async def _fetch_object(
    bus: Bus, refusals: Refusals, cluster: ClusterName, key: ObjectKey
) -> ResourceClaim | ResourceClaimTemplate | None:
    message = await _fetch_last(bus, refusals, STATE, cluster, key.kind, str(key))
    if not isinstance(message, ObjectObserved):
        return None
    value: object = None
    with refusals.guard(STATE.subject_of(message)):
        value = decode_object(message.object).value
    return value if isinstance(value, ResourceClaim | ResourceClaimTemplate) else None


async def _fetch_last(
    bus: Bus, refusals: Refusals, topic: Topic[M], *names: str
) -> M | None:
    """Read the last message of a subject; None: there is none, or it is refused."""
    last: Incoming[M] | None = None
    with refusals.guard(topic.subject(*names)):
        last = await bus.read_last(topic, *names)
    return None if last is None else last.message
