"""Running gangs of which a device is not ready, for reasons that their author lists.

Kubernetes ends the pods of a device only for a taint that says so, and then only those.
A gang is often better made anew as a whole, elsewhere, for some of the reasons. What is
said of a device is in its claim, so it outlives publishers. Pure.
"""

from __future__ import annotations

from collections.abc import Container

from contracts.gang import GangPhase
from contracts.messages import MAX_REASON
from contracts.workload import Pod
from publisher.gangs.claims import list_unready_devices
from publisher.gangs.context import PlanContext, StatusReport, SubmittedGang
from publisher.gangs.view import claim_keys, is_gated

DEVICE_FAILED = "DeviceFailed"
"""The reason that people read."""
_NAMED = 5
"""So many devices are named in a text."""


def find_failed_devices(
    context: PlanContext, submitted: SubmittedGang, reasons: Container[str]
) -> StatusReport | None:
    """Report devices of a gang that failed for such reasons; None: none did.

    Also those of pods that it was decided without, as it is made anew with them. A
    reason is that of the device's condition, or the code before the colon of its
    message, as node agents write it.
    """
    opened = next((pod for pod in submitted.alive if not is_gated(pod)), None)
    texts: dict[str, str] = {}
    hit: list[Pod] = []
    for pod in () if opened is None else context.list_running_with(opened):
        if pod.metadata.deletion_timestamp is not None:
            continue
        claims = map(context.view.claim, claim_keys(pod).values())
        failed = {
            str(device): f"{reason}: {message}" if message else reason
            for claim in claims
            for device, reason, message in list_unready_devices(claim)
            if reason in reasons or message.partition(":")[0] in reasons
        }
        if failed:
            hit.append(pod)
            for device, words in failed.items():
                name = pod.metadata.name
                texts.setdefault(device, f"device {device} of pod {name}: {words}")
    if not hit:
        return None
    more = len(texts) - _NAMED
    others = f"; and {more} more" if more > 0 else ""
    return StatusReport(
        phase=GangPhase.RUNNING,
        reason=DEVICE_FAILED,
        message=f"{'; '.join(list(texts.values())[:_NAMED])}{others}"[:MAX_REASON],
        pods=tuple(hit),
        decision=submitted.record.in_force,
    )
