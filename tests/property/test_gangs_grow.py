"""Whatever comes and goes: what gangs have they keep, and nothing is taken twice.

Elastic gangs and others are submitted, end, are confirmed or refused, in any order,
beside nodes that come. Each answer is judged before it counts (`allocate`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contracts.gang import Gang
from contracts.ids import GangUID, NodeName
from contracts.lifecycle import GangRecord
from contracts.messages import (
    AllocationRefused,
    AllocationWritten,
    CancelGang,
    DevicesAnnounced,
    GangReleased,
    ReleaseOutcome,
    SubmitGang,
)
from tests.builders import devices, gang, member, member_claim, pool, request
from tests.builders.problems import CLUSTER, snapshot_of
from tests.builders.solving import Solving

Event = tuple[str, int, int, int]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "submit", "end", "write", "refuse", "void", "node"]),
        st.integers(1, 3),
        st.integers(0, 3),
        st.integers(0, 1),
    ),
    min_size=2,
    max_size=12,
)


def asking(number: int, count: int, least: int, priority: int) -> Gang:
    claim = member_claim(request())
    return gang(
        member(claim, name="lead", count=1),
        member(claim, count=count, min_count=min(least, count)),
        name=f"g{number}",
        uid=f"00000000-0000-4000-8000-{number:012}",
        priority=priority,
    )


class World:
    """What happens to a solver's gangs."""

    def __init__(self) -> None:
        nodes = {"n0": [pool(*devices(2), name="n0")]}
        self.solving = Solving(snapshot_of(nodes))
        self.devices = 2
        self._number = 0

    def play(self, event: Event) -> None:
        """Let something happen, as far as it can."""
        kind, count, least, priority = event
        self._number += 1
        if kind == "submit":
            asked = asking(self._number, count, least, priority)
            uid = GangUID(asked.metadata.uid)
            self.solving.hear(SubmitGang(cluster=CLUSTER, uid=uid, gang=asked))
        elif kind == "node":
            self._announce(f"n{self._number}", least)
        elif (record := self._choose(least)) is not None:
            self._tell(kind, record)

    def _announce(self, name: str, count: int) -> None:
        self.devices += count
        content = pool(*devices(count), name=name)
        self.solving.hear(
            DevicesAnnounced(cluster=CLUSTER, node=NodeName(name), pools=(content,))
        )

    def _choose(self, number: int) -> GangRecord | None:
        living = [r for r in self.solving.snapshot.gangs.values() if not r.is_over]
        living.sort(key=lambda record: record.key)
        return living[number % len(living)] if living else None

    def _tell(self, kind: str, record: GangRecord) -> None:
        about: dict[str, Any] = {
            "cluster": CLUSTER,
            "namespace": record.namespace,
            "uid": record.uid,
        }
        attempt = record.attempt
        if kind == "end":
            self.solving.hear(CancelGang(**about))
            outcome = ReleaseOutcome.CANCELLED
            name = record.name
            self.solving.hear(
                GangReleased(**about, name=name, epoch=1, outcome=outcome)
            )
        elif record.placed is not None and kind == "write":
            self.solving.hear(AllocationWritten(**about, attempt=attempt))
        elif record.placed is not None:
            keeps = kind == "refuse"
            self.solving.hear(
                AllocationRefused(**about, attempt=attempt, reason="x", keeps=keeps)
            )


def places(record: GangRecord | None) -> dict[tuple[str, int], object]:
    if record is None or record.placed is None:
        return {}
    return {
        (pod.member, pod.index): (pod.node, pod.claims) for pod in record.placed.members
    }


@given(EVENTS)
def test_what_gangs_have_they_keep(events: list[Event]) -> None:
    """Until they end or lose all of it; and who could grow, has grown."""
    world = World()
    for event in events:
        world.play(event)
        before = {r.key: places(r) for r in world.solving.snapshot.gangs.values()}
        world.solving.decide()
        after = world.solving.snapshot
        for key, had in before.items():
            assert had.items() <= places(after.gangs.get(key)).items()
        check(world.solving, world.devices)


def check(solving: Solving, devices_in_all: int) -> None:
    """Each device has one holder, and no free one is wanted by whoever grows."""
    held: Counter[tuple[str, str]] = Counter()
    for record in solving.snapshot.gangs.values():
        decision = record.placed
        if decision is None:
            continue
        assert record.submission is not None
        spec = record.submission.gang.spec
        counts = Counter(pod.member for pod in decision.members)
        for asked in spec.members:
            indices = [p.index for p in decision.members if p.member == asked.name]
            assert indices == list(range(len(indices)))
            assert asked.least <= counts[asked.name] <= asked.count
            growing = decision.growing.get(asked.name, 0)
            assert counts[asked.name] + growing == asked.count
        for pod in decision.members:
            for claim in pod.claims:
                for result in claim.allocation.devices.results:
                    held[result.pool, result.device] += 1
    assert all(count == 1 for count in held.values())
    assert not (held.total() < devices_in_all and solving.snapshot.growing)
