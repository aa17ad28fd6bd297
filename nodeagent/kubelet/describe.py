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
    source: DeviceSource, devices: Iterable[DeviceID]
) -> dict[DeviceID, DeviceDescription]:
    """Describe some devices; of one that cannot be described nothing is said."""
    asked = tuple(devices)
    answers = await asyncio.gather(*(_describe(source, device) for device in asked))
    return dict(zip(asked, answers, strict=True))


async def _describe(source: DeviceSource, device: DeviceID) -> DeviceDescription:
    try:
        async with asyncio.timeout(_LIMIT_S):
            return await source.describe(device)
    except (SourceError, TimeoutError) as error:
        reason = str(error) or "its source does not answer"
        log.info("device.undescribed", device=str(device), reason=reason)
        return DeviceDescription()
