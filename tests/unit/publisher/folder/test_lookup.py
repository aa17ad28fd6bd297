"""Where claims come from is looked up on the bus; what is not there is not known."""

from __future__ import annotations

from typing import Any, cast

from contracts.codec import to_builtins
from contracts.gang import Gang
from contracts.kubernetes.decode import WritableObject, to_kubernetes
from contracts.messages import Message, ObjectObserved
from contracts.topics import STATE, SUBMISSIONS, Topic
from publisher.folder.lookup import fetch_sources
from publisher.folder.sources import ClaimSources
from runtime.bus.bus import Bus
from runtime.errors import MessageError
from runtime.refusals import Refusals
from runtime.wire import Incoming
from tests import builders
from tests.builders.decisions import CLUSTER, gang_allocated, submission

TEMPLATE = builders.claim_template(builders.request(count=2), name="gpus")
GANG = builders.gang(builders.member(builders.member_claim(template="gpus")))
CLAIM = ("worker", "gpus")


class LastMessages:
    """A bus with these messages, one a subject."""

    def __init__(self, *messages: tuple[Topic[Any], Message | Exception]) -> None:
        self._messages = {topic.entity: message for topic, message in messages}

    async def read_last(self, topic: Topic[Any], *names: str) -> Incoming[Any] | None:
        """Return the message of a topic."""
        message = self._messages.get(topic.entity)
        if isinstance(message, Exception):
            raise message
        if message is None:
            return None
        return Incoming(topic=topic, names=names, message=message, data=b"", sequence=1)


def observed(value: WritableObject) -> ObjectObserved:
    """Let the bus have an object."""
    raw = to_builtins(to_kubernetes(value))
    key = f"{value.metadata.namespace}/{value.metadata.name}"
    return ObjectObserved(cluster=CLUSTER, kind=raw["kind"], key=key, object=raw)


async def fetch(*state: Message | Exception, gang: Gang | None = GANG) -> ClaimSources:
    """Find the sources of a gang's claims."""
    said: list[tuple[Topic[Any], Message | Exception]] = []
    if gang is not None:
        said.append((SUBMISSIONS, submission(gang)))
    said += [(STATE, message) for message in state]
    bus = cast("Bus", LastMessages(*said))
    return await fetch_sources(bus, gang_allocated(), Refusals())


async def test_a_template_on_the_bus_is_the_spec_of_its_claims() -> None:
    """And it is said that the spec is from there."""
    source = (await fetch(observed(TEMPLATE)))[CLAIM]
    assert source.spec == TEMPLATE.spec.spec
    assert source.origin == "ResourceClaimTemplate gpus"


async def test_what_is_not_on_the_bus_is_not_known() -> None:
    """Nor what is there and cannot be read, or is something else."""
    broken = ObjectObserved(cluster=CLUSTER, kind="Pod", key="a/b", object={})
    for state in (
        [],
        [MessageError("state.v1", "no")],
        [broken],
        [observed(builders.device_class())],
    ):
        assert (await fetch(*state))[CLAIM].spec is None


async def test_without_a_submission_nothing_is_said() -> None:
    """It may have expired."""
    assert await fetch(observed(TEMPLATE), gang=None) == {}
