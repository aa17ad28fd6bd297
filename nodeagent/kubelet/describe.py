"""Asks a source what it knows of devices, and waits for no answer for long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from contracts.ids import DeviceID
from nodeagent.errors import SourceError
from nodeagent.sources.source import DeviceDescription, DeviceSource
from runtime.log import get_logger

_LIMIT_S = 5.0

log = get_logger(__name__)


async def describe_devices(
    source: DeviceSource,
    devices: Iterable[DeviceID],
    logged: dict[DeviceID, str] | None = None,
) -> dict[DeviceID, DeviceDescription]:
    """Describe those devices of some that can be described.

    `logged` is kept by who asks again and again: why each device could not be
    described last, which is logged when it changes.
    """
    asked = tuple(devices)
    known = {} if logged is None else logged
    answers = await asyncio.gather(
        *(_describe(source, device, known) for device in asked)
    )
    return {
        device: answer
        for device, answer in zip(asked, answers, strict=True)
        if answer is not None
    }


async def _describe(
    source: DeviceSource, device: DeviceID, logged: dict[DeviceID, str]
) -> DeviceDescription | None:
    try:
        async with asyncio.timeout(_LIMIT_S):
            description = await source.describe(device)
    except (SourceError, TimeoutError) as error:
        reason = str(error) or "its source does not answer"
        if logged.get(device) != reason:
            log.info("device.undescribed", device=str(device), reason=reason)
        logged[device] = reason
        return None
    logged.pop(device, None)
    return description
