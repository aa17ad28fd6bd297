"""Decides what a claim's allocation asks of this node, and refuses what is not right.

Whatever is refused is said in words that an operator reads in the pod's events. Pure:
the claim as the API server has it, what is on the node and what is prepared go in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import structs

from contracts.allocation import DeviceRequestAllocationResult
from contracts.claim import ResourceClaim
from contracts.ids import ClaimRef, DriverName, NodeName
from nodeagent.errors import CardChangedError, PrepareError
from nodeagent.prepare.parameters import MergedParameters, merge
from nodeagent.prepare.prepared import PreparedClaim, PreparedDevice

MAX_RESULTS = 32
"""Of one claim (DRA: AllocationResultsMaxSize)."""
_UID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


def check_names(asked: ClaimRef) -> None:
    """Refuse a claim whose names cannot be those of one: they become names of files.

    Raises:
        PrepareError: which of them, and why.
    """
    rules = (
        ("uid", asked.uid, _UID),
        ("namespace", asked.namespace, _LABEL),
        ("name", asked.name, _NAME),
    )
    for field, value, rule in rules:
        if not rule.fullmatch(value):
            raise PrepareError(f"claim {field} {value[:64]!r} is no {field} of a claim")


def plan_devices(
    asked: ClaimRef,
    claim: ResourceClaim,
    node: NodeName,
    driver: DriverName,
) -> tuple[PreparedDevice, ...]:
    """List the devices of this driver that the claim holds.

    Raises:
        PrepareError: the claim is another one, is not allocated, is not of this node,
            or says what cannot be done.
    """
    if claim.metadata.uid != asked.uid:
        raise PrepareError(
            f"ResourceClaim {asked} has uid {claim.metadata.uid[:64]!r}, not"
            f" {asked.uid!r}: it was deleted and created again"
        )
    if claim.allocation is None:
        raise PrepareError(f"ResourceClaim {asked} is not allocated")
    only_node = claim.allocation.only_node
    if only_node and only_node != node:
        raise PrepareError(
            f"ResourceClaim {asked} is allocated on node {only_node[:253]!r}, and this"
            f" is {node!r}"
        )
    allocated = claim.allocation.devices
    if len(allocated.results) > MAX_RESULTS:
        raise PrepareError(f"ResourceClaim {asked} has over {MAX_RESULTS} devices")
    planned: list[PreparedDevice] = []
    for result in allocated.results:
        if result.driver == driver:
            if not _LABEL.fullmatch(result.device):
                raise PrepareError(f"{result.device[:64]!r} is not a device name")
            parameters = merge(allocated.config, driver, result.request)
            number = len(planned)
            name = f"{asked.uid}-{number}-{result.device}"
            planned.append(_make_device(result, name, parameters))
    if not planned:
        raise PrepareError(f"ResourceClaim {asked} holds no device of {driver}")
    _check_distinct(asked, planned)
    return tuple(planned)


def keep_cards(
    held: PreparedClaim, devices: Iterable[PreparedDevice]
) -> tuple[PreparedDevice, ...]:
    """Return a claim's devices, with cards that are not known now as recorded.

    Raises:
        CardChangedError: the name of a device is that of another card now.
    """
    cards = {(device.pool, device.device): device.card for device in held.devices}
    kept: list[PreparedDevice] = []
    for device in devices:
        before = cards.get((device.pool, device.device), "")
        if before and device.card and device.card != before:
            raise CardChangedError(
                f"device {device.pool}/{device.device} was {before} when ResourceClaim"
                f" {held.claim} was prepared, and is {device.card} now: delete its pod"
            )
        kept.append(structs.replace(device, card=device.card or before))
    return tuple(kept)


def find_renamed(
    wanted: Iterable[PreparedDevice], prepared: Iterable[PreparedClaim]
) -> tuple[tuple[PreparedClaim, PreparedDevice], ...]:
    """Find devices of other names whose records have the cards that are wanted.

    Partitions of one card, or one card that got another name since.
    """
    names = {(device.pool, device.device) for device in wanted}
    cards = {device.card for device in wanted if device.card and not device.is_admin}
    return tuple(
        (claim, device)
        for claim in prepared
        for device in claim.devices
        if device.card in cards
        and not device.is_admin
        and (device.pool, device.device) not in names
    )


def check_free(wanted: PreparedClaim, prepared: Iterable[PreparedClaim]) -> None:
    """Refuse devices that another claim holds.

    Shares of one device bear each other, and admin access bears everything.

    Raises:
        PrepareError: which device, and who holds it.
    """
    others = {
        (device.pool, device.device): (other.claim, device.is_exclusive)
        for other in prepared
        if other.claim.uid != wanted.claim.uid
        for device in other.devices
        if not device.is_admin
    }
    for device in wanted.devices:
        holder, is_exclusive = others.get((device.pool, device.device), (None, False))
        if holder and not device.is_admin and (is_exclusive or device.is_exclusive):
            raise PrepareError(
                f"device {device.pool}/{device.device} is prepared for ResourceClaim"
                f" {holder} (uid {holder.uid}): it is free once kubelet has unprepared"
                " that claim"
            )


def _make_device(
    result: DeviceRequestAllocationResult,
    cdi_name: str,
    parameters: MergedParameters,
) -> PreparedDevice:
    return PreparedDevice(
        request=result.request,
        pool=result.pool,
        device=result.device,
        cdi_name=cdi_name,
        share_id=result.share_id or "",
        is_admin=bool(result.admin_access),
        consumed_capacity={
            name: amount.text for name, amount in result.consumed_capacity.items()
        },
        env=parameters.env,
        partition=parameters.partition,
    )


def _check_distinct(asked: ClaimRef, devices: list[PreparedDevice]) -> None:
    held: set[tuple[str, str]] = set()
    for device in devices:
        key = (device.pool, device.device)
        if key in held and device.is_exclusive:
            raise PrepareError(
                f"ResourceClaim {asked} holds device {device.pool}/{device.device}"
                " twice"
            )
        if not device.is_admin:
            held.add(key)
