"""The record of a prepared claim, and its bytes in the checkpoint.

A record says its version and carries a checksum: what a crash or a full disk tore is
told from what was written whole. Pure.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from contracts.codec import encode
from contracts.ids import ClaimRef, DeviceID, DeviceName, DriverName, PoolName
from nodeagent.errors import TornRecordError

VERSION = 1
"""Of records; a later one that cannot be read as this one gets another number."""


class PreparedDevice(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One device of a prepared claim."""

    request: str
    """`request`, or `request/subrequest` of a prioritized list."""
    pool: PoolName
    device: DeviceName
    cdi_name: str = ""
    """In the claim's CDI file; empty: the container gets nothing for it."""
    card: str = ""
    """The hardware behind the name, such as a UUID; empty: it was not known."""
    share_id: str = ""
    """Of a device that several claims share (KEP-5075)."""
    is_admin: bool = False
    """Held beside others, to look after it (KEP-5018)."""
    consumed_capacity: dict[str, str] = {}
    env: dict[str, str] = {}
    """Variables that parameters give containers with it."""
    partition: dict[str, str | int | bool] = {}
    """Parameters given to the programs that set it up."""

    @property
    def is_exclusive(self) -> bool:
        """True if no other claim may hold it at the same time."""
        return not self.share_id and not self.is_admin

    @property
    def base_request(self) -> str:
        """The request as pods name it: without the alternative that was chosen."""
        return self.request.partition("/")[0]


class PreparedClaim(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """A claim that was prepared, or that is being prepared."""

    claim: ClaimRef
    driver: DriverName
    devices: tuple[PreparedDevice, ...]
    since: str
    """RFC 3339, UTC."""

    @property
    def device_ids(self) -> tuple[DeviceID, ...]:
        """Its devices, unique in the cluster."""
        return tuple(
            DeviceID(self.driver, device.pool, device.device) for device in self.devices
        )


class _Record(Struct, frozen=True, kw_only=True):
    version: int
    checksum: str
    content: msgspec.Raw


def encode_record(claim: PreparedClaim) -> bytes:
    """Write a record; equal claims, equal bytes."""
    content = encode(claim)
    record = {
        "version": VERSION,
        "checksum": sha256(content).hexdigest(),
        "content": msgspec.Raw(content),
    }
    return msgspec.json.encode(record, order="deterministic")


def decode_record(data: bytes) -> PreparedClaim:
    """Read a record.

    Raises:
        TornRecordError: it is torn, changed by hand, or of an unknown version.
    """
    try:
        record = msgspec.json.decode(data, type=_Record)
        if record.version != VERSION:
            raise TornRecordError(f"version {record.version} is not {VERSION}")
        content = bytes(record.content)
        if sha256(content).hexdigest() != record.checksum:
            raise TornRecordError("its checksum is not that of its content")
        return msgspec.json.decode(content, type=PreparedClaim)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TornRecordError(str(error)) from error


def describe_for_hook(
    driver: DriverName, claim: ClaimRef, device: PreparedDevice
) -> dict[str, Any]:
    """Describe a device for a program that sets it up or tears it down."""
    return {
        "claim": {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid},
        "driver": driver,
        "pool": device.pool,
        "device": device.device,
        "request": device.request,
        "shareID": device.share_id,
        "consumedCapacity": device.consumed_capacity,
        "parameters": device.partition,
    }
