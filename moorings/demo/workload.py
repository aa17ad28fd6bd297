"""Gangs for the demo: whole-GPU pods of the openb trace, grouped by a stated rule.

The pods are drawn by seed from the published distribution, or taken from the trace
itself. Pure but for the two functions that read a file.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

import yaml

from contracts.claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from contracts.gang import Gang, GangSpec, Member, MemberClaim
from contracts.ids import DeviceClassName
from contracts.meta import ObjectMeta
from moorings.errors import BadInputError

RULE = (
    "pods in order of arrival; runs of equal requests become gangs of 1 to 8 pods, "
    "the size drawn by seed"
)
SIZES = (1, 1, 2, 2, 4, 4, 8)
"""Pods of a gang, drawn evenly from these."""
TRACE = "openb_pod_list_default.csv"
_UUIDS = uuid5(NAMESPACE_DNS, "demo.moorings.dev")
OPENB = Path(__file__).parent.parent / "workloads" / "openb.yaml"


def draw_pods(seed: int) -> Iterator[int]:
    """Draw pods for ever: how many GPUs each asks for."""
    pods_by_gpus: dict[int, int] = yaml.safe_load(OPENB.read_text())["podsByGpus"]
    draw = random.Random(seed)  # noqa: S311  # a repeatable workload
    sizes, weights = list(pods_by_gpus), list(pods_by_gpus.values())
    while True:
        yield from draw.choices(sizes, weights, k=1000)


def read_trace(folder: Path) -> list[int]:
    """Read the whole-GPU pods of the real trace, in order of arrival.

    Raises:
        BadInputError: the folder does not hold the trace.
    """
    file = folder / TRACE
    try:
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))
        return [
            int(row["num_gpu"])
            for row in sorted(rows, key=lambda row: float(row["creation_time"]))
            if int(row["num_gpu"]) >= 1 and int(row["gpu_milli"]) == 1000
        ]
    except OSError as error:
        raise BadInputError(str(file), str(error.strerror)) from error
    except (KeyError, ValueError) as error:
        reason = f"no trace of that form: {error}"
        raise BadInputError(str(file), reason) from error


def group_pods(pods: Iterable[int], seed: int) -> Iterator[tuple[int, int]]:
    """Group pods into gangs by `RULE`: (pods, GPUs of each)."""
    draw = random.Random(seed + 1)  # noqa: S311  # a repeatable workload
    for gpus, run in groupby(pods):
        while chunk := list(islice(run, draw.choice(SIZES))):
            yield len(chunk), gpus


def make_gang(
    number: int, pods: int, gpus: int, device_class: str, priority: int
) -> Gang:
    """Make a gang of equal pods with so many GPUs each."""
    request = ExactDeviceRequest(
        device_class_name=DeviceClassName(device_class),
        allocation_mode="ExactCount",
        count=gpus,
    )
    spec = ResourceClaimSpec(
        devices=DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=request),))
    )
    claim = MemberClaim(name="gpus", spec=spec)
    name = f"train-{number:04}"
    return Gang(
        metadata=ObjectMeta(name=name, namespace="demo", uid=str(uuid5(_UUIDS, name))),
        spec=GangSpec(
            priority=priority,
            members=(Member(name="worker", count=pods, claims=(claim,)),),
        ),
    )


def count_gpus(gang: Gang) -> int:
    """Count the GPUs that all pods of a demo gang request."""
    member = gang.spec.members[0]
    spec = member.claims[0].spec
    exactly = spec.devices.requests[0].exactly if spec is not None else None
    return member.count * (exactly.count if exactly is not None else 1)
