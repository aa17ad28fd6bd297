"""How ClusterQueues are listed."""

from __future__ import annotations

from typing import cast

import pytest

from contracts.topics import STATE, SUBMISSIONS
from moorings.bus_client import Client
from moorings.cli.get_queues import fetch_places, list_queues, shorten
from moorings.errors import UnknownNameError
from runtime.bus.bus import Bus
from tests import builders
from tests.builders.decisions import CLUSTER, submission
from tests.builders.queues import cluster_queue, flavor, local_queue, observed
from tests.builders.stored_messages import StoredMessages

SUBMITTED = submission(builders.gang(builders.member()))


def client() -> Client:
    """Make a client of a bus with a queue, and a gang that waits in it."""
    objects = (
        flavor("any"),
        cluster_queue("q", {"any": {"memory": 8 * 2**40, "pods": 3}}),
        cluster_queue("stopped", {}, stopPolicy="Hold"),
        local_queue(builders.NAMESPACE, "q"),
    )
    said = [(STATE, observed(each)) for each in objects]
    return Client(cast("Bus", StoredMessages((SUBMISSIONS, SUBMITTED), *said)), CLUSTER)


async def test_a_queue_is_a_row() -> None:
    """With what its quotas are used for; who is closed is told below."""
    listing = await list_queues(client(), None, wide=True)
    assert [row[:6] for row in listing.rows] == [
        ["q", "<none>", "BestEffortFIFO", "None", "0", "1"],
        ["stopped", "<none>", "BestEffortFIFO", "Hold", "0", "0"],
    ]
    *_, quotas, aging, patience = listing.rows[0]
    assert (aging, patience) == ("<none>", "<none>")
    assert quotas == "memory 0/8Ti of any (8Ti left), pods 0/3 of any (3 left)"
    assert listing.below == ["stopped lets nobody in: it is stopped (Hold)"]


async def test_what_a_queue_says_in_vain_is_told_below() -> None:
    """The queue itself counts all the same."""
    made = cluster_queue("q", {})
    made["metadata"]["annotations"] = {"moorings.dev/patience": "soon"}
    bus = Client(cast("Bus", StoredMessages((STATE, observed(made)))), CLUSTER)
    (line,) = (await list_queues(bus, None, wide=False)).below
    assert line.startswith("q: moorings.dev/patience is 'soon', which does not count")


async def test_one_queue_is_found_by_its_name() -> None:
    (view,) = (await list_queues(client(), "q", wide=False)).views
    assert view["name"] == "q"
    with pytest.raises(UnknownNameError, match="stopped"):
        await list_queues(client(), "stoped", wide=False)


async def test_gangs_have_places_in_queues() -> None:
    bus = client()
    lines = await fetch_places(bus, await bus.fetch_gangs(), [])
    place = lines.view(SUBMITTED.key)
    assert place is not None
    assert (place["place"], place["queue"]) == (1, "q")


@pytest.mark.parametrize(
    ("resource", "amount", "written"),
    [
        ("memory", "8796093022208", "8Ti"),
        ("memory", "1610612736", "1.5Gi"),
        ("memory", "100", "100"),
        ("hugepages-2Mi", "2097152", "2Mi"),
        ("gpu.example.com", "2048", "2048"),
        ("cpu", "500m", "500m"),
    ],
)
def test_bytes_are_short(resource: str, amount: str, written: str) -> None:
    assert shorten(resource, amount) == written
