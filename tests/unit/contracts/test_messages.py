"""What messages say beyond their types."""

from __future__ import annotations

import pytest

from contracts.ids import ClusterName, GangUID, Namespace
from contracts.messages import MAX_BYTES, AllocationWritten, PodWritten
from contracts.topics import CONFIRMATIONS

WRITTEN = AllocationWritten(
    cluster=ClusterName("c"), namespace=Namespace("n"), uid=GangUID("u"), attempt=1
)


@pytest.mark.parametrize(("length", "named"), [(40, True), (200, False)])
def test_pods_are_named_unless_that_takes_too_much(length: int, named: bool) -> None:
    """A message fits the bus, with the names or without."""
    pods = tuple(
        PodWritten(member="w", index=i, pod="p" * length, claims={"gpus": "c" * 40})
        for i in range(5000)
    )
    message = WRITTEN.naming(pods)
    assert message.pods == (pods if named else ())
    assert message.pods_omitted is not named
    assert len(CONFIRMATIONS.codec.encode(message)) <= MAX_BYTES
