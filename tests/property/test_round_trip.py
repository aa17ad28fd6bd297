"""decode(encode(value)) == value, for everything that travels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from contracts import (
    allocation,
    avoidance,
    claim,
    device,
    fence,
    gang,
    ids,
    liveness,
    messages,
    meta,
    solves,
    topics,
    workload,
)
from contracts.codec import Codec, convert, to_builtins
from contracts.kubernetes.decode import (
    V1,
    V1BETA1,
    V1BETA2,
    decode_object,
    to_kubernetes,
)
from contracts.structs import KubernetesExcerpt, KubernetesStruct
from tests import builders
from tests.draw import strategies
from tests.lab.soak import sized

FEW = settings(max_examples=sized(10, 200))
"""There are many types, and each field is independent."""
MODULES = (
    allocation,
    avoidance,
    claim,
    device,
    fence,
    gang,
    ids,
    liveness,
    messages,
    meta,
    solves,
    workload,
)
BASES = (Struct, KubernetesStruct, KubernetesExcerpt, messages.Message)
STRUCTS = sorted(
    {
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Struct) and kind not in BASES
    },
    key=lambda kind: kind.__name__,
)
CHANNELS: dict[str, tuple[Codec[Any], tuple[type[Struct], ...]]] = {
    "inventory": (topics.INVENTORIES.codec, (messages.DevicesAnnounced,)),
    "health": (topics.HEALTH.codec, (messages.HealthJudged,)),
    "heartbeat": (topics.HEARTBEATS.codec, (messages.NodeSeen,)),
    "state": (topics.STATE.codec, (messages.ObjectObserved, messages.ObjectGone)),
    "submission": (topics.SUBMISSIONS.codec, (messages.SubmitGang,)),
    "command": (topics.COMMANDS.codec, (messages.CancelGang, messages.ReleaseGang)),
    "decision": (
        topics.DECISIONS.codec,
        (
            messages.GangAllocated,
            messages.GangPending,
            messages.GangRejected,
            messages.GangReleased,
        ),
    ),
    "solved": (topics.SOLVED.codec, (messages.BatchSolved,)),
    "solve": (topics.SOLVES.codec, (solves.SolveOpened, solves.SolveDecided)),
    "confirmation": (
        topics.CONFIRMATIONS.codec,
        (
            messages.AllocationWritten,
            messages.GatesOpened,
            messages.AllocationRefused,
            messages.AllocationLost,
            messages.ClaimsReleased,
        ),
    ),
    "liveness": (topics.LEADERS.codec, (liveness.PublisherLeads,)),
    "avoidance": (topics.AVOIDANCES.codec, (avoidance.NodesAvoided,)),
    "fence": (topics.FENCE.codec, (fence.EpochClaimed,)),
}


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
@FEW
@given(data=st.data())
def test_every_struct_survives_json(kind: type[Struct], data: st.DataObject) -> None:
    """Encoding and decoding gives an equal value."""
    codec: Codec[Struct] = Codec(kind, kind.__name__)
    value = data.draw(strategies.of(kind))

    assert codec.decode(codec.encode(value)) == value
    assert convert(to_builtins(value), kind, kind.__name__) == value


@pytest.mark.parametrize("channel", CHANNELS)
@FEW
@given(data=st.data())
def test_every_message_survives_its_subject(channel: str, data: st.DataObject) -> None:
    """Every message can be read by whoever follows its subject."""
    codec, kinds = CHANNELS[channel]
    value = data.draw(st.one_of([strategies.of(kind) for kind in kinds]))

    assert codec.decode(codec.encode(value)) == value


def test_every_message_type_has_a_channel() -> None:
    """No message can be made that nobody could send."""
    sent = {kind for _, kinds in CHANNELS.values() for kind in kinds}
    kinds = {kind for kind in STRUCTS if issubclass(kind, messages.Message)}
    bases = {base for kind in kinds for base in kind.__mro__[1:]}

    assert sent == kinds - bases


@pytest.mark.parametrize("version", [V1, V1BETA2, V1BETA1])
@FEW
@given(
    value=strategies.resource_slices()
    | strategies.claims()
    | strategies.device_classes()
)
def test_every_version_of_kubernetes_holds_the_same_object(
    version: str, value: Any
) -> None:
    """Written in any version it reads back whole."""
    written = to_kubernetes(value, version)
    read = decode_object(written)

    assert read.value == value
    assert read.unknown == ()
    assert written["apiVersion"] == version
    assert written["kind"] == type(value).__name__


@FEW
@given(value=strategies.request_lists().map(lambda r: builders.claim_template(*r)))
def test_templates_survive_every_version(value: Any) -> None:
    """Written in any version they read back whole."""
    for version in (V1, V1BETA2, V1BETA1):
        assert decode_object(to_kubernetes(value, version)).value == value


@FEW
@given(value=strategies.gangs())
def test_gangs_survive_kubernetes(value: gang.Gang) -> None:
    """A Gang object reads back whole."""
    assert decode_object(to_kubernetes(value)).value == value
