"""What was asked of the services while things are killed, and what must hold of it."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from msgspec import structs

from contracts import topics
from contracts.claim import CELDeviceSelector, DeviceClaim, DeviceSelector
from contracts.gang import Gang, GangPhase
from contracts.ids import DeviceID, GangUID, Namespace
from contracts.lifecycle import GangRecord
from contracts.messages import CancelGang, ReleaseGang
from moorings.bus_client import Client
from moorings.demo.workload import make_gang
from moorings.errors import CannotReadError
from moorings.local.fleets import find_fleet, make_classes
from runtime.bus.bus import Bus
from runtime.errors import BusUnavailableError, PublishRefusedError
from runtime.wire import Outgoing
from tests.lab.services import CLUSTER, submit

FLEET = find_fleet("small")
MOST_LIVING = 40
"""So that a thousand rounds take no longer each than the first."""
ACKNOWLEDGED_S = 180.0


class Asked:
    """The gangs that were accepted, and those of them that were ended."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self.accepted: list[Gang] = []
        self.ended: set[str] = set()
        self.records: list[GangRecord] = []
        """As `settled` saw them last."""
        self._unsettled = ""
        self._device_class = str(make_classes(FLEET)[0].metadata.name)

    async def submit_some(self, bus: Bus, at_least: int = 0) -> None:
        """Submit a few gangs; only those that were acknowledged count."""
        for _ in range(self._draw.randint(at_least, 3)):
            number = len(self.accepted) + 1
            gang = make_gang(
                number,
                self._draw.randint(1, 4),
                self._draw.choice([1, 1, 2, 4]),
                self._device_class,
                0,
            )
            gang = with_selector(gang, f"device.driver != 'none-{number}'")
            await until_acknowledged(partial(submit, bus, gang))
            self.accepted.append(gang)

    async def end_some(self, bus: Bus) -> None:
        """Release or cancel a gang now and then; never are there many."""
        living = [g for g in self.accepted if g.metadata.uid not in self.ended]
        if len(living) < 6 or self._draw.random() < 0.3:
            return
        for gang in self._draw.sample(living, max(1, len(living) - MOST_LIVING)):
            await self._end(bus, gang)

    async def _end(self, bus: Bus, gang: Gang) -> None:
        kind = self._draw.choice([ReleaseGang, CancelGang])
        uid, namespace = (
            GangUID(gang.metadata.uid),
            Namespace(gang.metadata.namespace),
        )
        message = kind(cluster=CLUSTER, namespace=namespace, uid=uid)
        subject = topics.COMMANDS.subject(CLUSTER, namespace, uid)
        data = topics.COMMANDS.codec.encode(message)
        outgoing = Outgoing(subject=subject, data=data)
        await until_acknowledged(partial(bus.publish, outgoing))
        self.ended.add(gang.metadata.uid)

    async def settled(self, client: Client) -> bool:
        """Say whether every accepted gang has come to rest."""
        try:
            self.records = await client.fetch_gangs()
        except (BusUnavailableError, CannotReadError) as error:
            self._unsettled = str(error)
            return False
        records = {record.uid: record for record in self.records}
        for gang in self.accepted:
            record = records.get(GangUID(gang.metadata.uid))
            self._unsettled = f"{gang.metadata.name}: {record}"
            if record is None or record.decision is None:
                return False
            if record.phase is GangPhase.DECIDED or record.ending is not None:
                return False
        # An agent that starts slowly has announced nothing yet: all wait, and will not.
        self._unsettled = "nobody holds a device"
        accepted = (records[GangUID(gang.metadata.uid)] for gang in self.accepted)
        return any(record.allocated is not None for record in accepted)

    def describe_unsettled(self) -> str:
        """Say what did not come to rest when `settled` last looked."""
        return f"all is settled: {self._unsettled}"

    def check(self) -> None:
        """Every gang has one end or a reason; no device is in two allocations."""
        by_uid = {record.uid: record for record in self.records}
        held: Counter[DeviceID] = Counter()
        for gang in self.accepted:
            record = by_uid[GangUID(gang.metadata.uid)]
            if gang.metadata.uid in self.ended:
                assert record.phase.is_terminal, record
            elif record.phase is GangPhase.PENDING:
                assert record.reasons, record
            else:
                assert record.phase is GangPhase.ALLOCATED, record
            decision = record.allocated
            for member in decision.members if decision is not None else ():
                for claim in member.claims:
                    held.update(r.device_id for r in claim.allocation.devices.results)
        twice = {str(device): count for device, count in held.items() if count > 1}
        assert not twice
        assert held


def with_selector(gang: Gang, expression: str) -> Gang:
    """Have its devices selected, too: one that nobody asked before is evaluated."""
    (member,) = gang.spec.members
    (claim,) = member.claims
    assert claim.spec is not None
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    selector = DeviceSelector(cel=CELDeviceSelector(expression=expression))
    exactly = structs.replace(request.exactly, selectors=(selector,))
    devices = DeviceClaim(requests=(structs.replace(request, exactly=exactly),))
    asked = structs.replace(claim, spec=structs.replace(claim.spec, devices=devices))
    members = (structs.replace(member, claims=(asked,)),)
    return structs.replace(gang, spec=structs.replace(gang.spec, members=members))


async def until_acknowledged(send: Callable[[], Awaitable[object]]) -> None:
    """Send again for as long as a server that is cut off from the others says no."""
    deadline = time.monotonic() + ACKNOWLEDGED_S
    while True:
        try:
            await send()
        except BusUnavailableError:
            assert time.monotonic() < deadline
        except PublishRefusedError as error:
            # Uids are ours alone: one of the attempts before was stored.
            if error.kind != "exists":
                raise
            return
        else:
            return


def is_written(manifests: Path, records: list[GangRecord]) -> bool:
    """Say whether the folder holds the claims of the written gangs and no others."""
    wanted = {
        claim.ref.name
        for record in records
        if (decision := record.allocated) is not None
        for member in decision.members
        for claim in member.claims
    }
    found = set()
    for file in manifests.rglob("*.json"):
        document = json.loads(file.read_text())
        if document["kind"] == "ResourceClaim":
            found.add(document["metadata"]["name"])
    return found == wanted
