"""Worlds of a fabric: a channel of each rack that its nodes see, and GPUs of their own.

A gang of workers has one GPU each, and one channel that all of them share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contracts.device import Device, ResourceSlice
from contracts.gang import Gang, MemberClaim
from solver.problem.problem import Parameters, Problem
from tests.builders.claims import request
from tests.builders.devices import device, devices, node_selector, pool, resource_slice
from tests.builders.gangs import gang, member, member_claim, node
from tests.builders.problems import (
    PARAMETERS,
    observe,
    observe_core,
    problem_of,
    snapshot_of,
)
from tests.builders.values import DRIVER

RACK = "example.com/rack"
FABRIC, CHANNEL = "imex.example.com", "channels"
GPUS = f'device.driver == "{DRIVER}"'


def channels_of(rack: str, *content: Device, **reach: Any) -> ResourceSlice:
    """Make the channels that the nodes of a rack see, or those of `reach`."""
    reach = reach or {"node_selector": node_selector(**{RACK: rack})}
    return resource_slice(
        *(content or (device("channel-0"),)),
        name=f"fabric-{rack}",
        pool=f"fabric-{rack}",
        driver=FABRIC,
        **reach,
    )


def shared_channel(
    *, claim: str = "channel", asked: Any = None, name: str = "channel"
) -> MemberClaim:
    """Make the claim of a channel, by the name of its ResourceClaim."""
    wanted = asked or request("channel", device_class=CHANNEL)
    return member_claim(wanted, name=name, claim=claim)


def workers(count: int, *claims: MemberClaim, **spec: Any) -> Gang:
    """Make a gang of workers with a GPU each, which share a channel."""
    gpu = member_claim(request("gpu", device_class="gpus"), name="gpu")
    claims = claims or (gpu, shared_channel())
    return gang(member(*claims, count=count), **spec)


def fabric(
    racks: Sequence[str],
    *gangs: Gang,
    gpus: int = 1,
    channels: Sequence[ResourceSlice] | None = None,
    parameters: Parameters = PARAMETERS,
) -> Problem:
    """Let gangs wait for nodes `n0`, `n1`, ... in these racks."""
    names = [f"n{number}" for number in range(len(racks))]
    pools = {name: [pool(*devices(gpus), name=name)] for name in names}
    classes = {"gpus": (GPUS,), CHANNEL: (f'device.driver == "{FABRIC}"',)}
    snapshot = snapshot_of(pools, gangs, classes=classes)
    labels = zip(names, racks, strict=True)
    snapshot = observe_core(snapshot, *(node(n, labels={RACK: r}) for n, r in labels))
    if channels is None:
        channels = [channels_of(rack) for rack in sorted(set(racks))]
    for item in channels:
        snapshot = observe(snapshot, item.metadata.name, item)
    return problem_of(snapshot, parameters)
