"""What the demo counts in gangs, decisions and folders. Pure but for the folder."""

from __future__ import annotations

from pathlib import Path

from contracts.gang import Gang
from contracts.ids import DeviceID
from contracts.messages import DecisionMessage, GangAllocated


def devices_in(decision: DecisionMessage) -> set[DeviceID]:
    """Name the devices that a decision gives; none unless it allocates."""
    if not isinstance(decision, GangAllocated):
        return set()
    return {
        result.device_id
        for member in decision.members
        for claim in member.claims
        for result in claim.allocation.devices.results
    }


def device_count(decision: DecisionMessage) -> int:
    """Count the devices that a decision gives."""
    return len(devices_in(decision))


def gpus_each(gang: Gang) -> int:
    """Count the GPUs that each pod of a demo gang asks for."""
    spec = gang.spec.members[0].claims[0].spec
    exactly = spec.devices.requests[0].exactly if spec is not None else None
    return exactly.count if exactly is not None else 1


def gpus_asked(gang: Gang) -> int:
    """Count the GPUs that a demo gang asks for."""
    return gang.spec.members[0].count * gpus_each(gang)


def count_files(folder: Path) -> int:
    """Count the manifests in a folder."""
    return sum(1 for path in folder.rglob("*") if path.suffix in (".json", ".yaml"))
