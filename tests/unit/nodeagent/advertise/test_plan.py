"""What is written into a Node's status, and what is left to others."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.names import AGENT_MANAGER
from nodeagent.advertise.plan import (
    PERSON_MANAGER,
    AdvertisementPlan,
    list_written,
    plan_advertisement,
)
from nodeagent.errors import AdvertisementError

DONGLE = "example.com/dongle"


def node(status: dict[str, Any], **writers: str) -> dict[str, Any]:
    """Make a Node on whose capacity each manager wrote one resource."""
    managed = [
        {
            "manager": manager.replace("_", "-"),
            "fieldsV1": {"f:status": {"f:capacity": {f"f:{resource}": {}}}},
        }
        for manager, resource in writers.items()
    ]
    return {"metadata": {"name": "n1", "managedFields": managed}, "status": status}


def both(**amounts: str) -> dict[str, Any]:
    """Make a status in which allocatable is what capacity is."""
    named = {name.replace("_", "/"): amount for name, amount in amounts.items()}
    return {"capacity": {"cpu": "8", **named}, "allocatable": {"cpu": "8", **named}}


def plan(raw: dict[str, Any], count: int, *, force: bool = False) -> AdvertisementPlan:
    """Plan by hand that there are so many dongles."""
    wanted = {DONGLE: count}
    return plan_advertisement(raw, wanted, manager=PERSON_MANAGER, force=force)


def test_both_maps_are_written_each_key_escaped() -> None:
    """A slash in a JSON pointer is `~1`."""
    made = plan(node(both()), 4)
    assert made.operations == (
        {"op": "add", "path": "/status/capacity/example.com~1dongle", "value": "4"},
        {"op": "add", "path": "/status/allocatable/example.com~1dongle", "value": "4"},
    )
    assert (made.before, made.after) == ({DONGLE: None}, {DONGLE: "4"})


def test_a_node_without_amounts_gets_the_maps_first() -> None:
    """As one that nobody has said anything of."""
    paths = [operation["path"] for operation in plan(node({}), 4).operations]
    assert paths[0] == "/status/capacity"
    assert paths[2] == "/status/allocatable"


@pytest.mark.parametrize("written", ["4", "4000m"])
def test_what_is_as_it_should_be_is_not_written(written: str) -> None:
    """However it is written."""
    raw = node({"capacity": {DONGLE: written}, "allocatable": {DONGLE: written}})
    assert plan(raw, 4).operations == ()


def test_what_kubelet_has_not_copied_yet_is_written() -> None:
    """Or has kept of earlier days."""
    raw = node({"capacity": {DONGLE: "4"}, "allocatable": {DONGLE: "2"}})
    (operation,) = plan(raw, 4).operations
    assert operation["path"] == "/status/allocatable/example.com~1dongle"


def test_what_is_withdrawn_goes_from_both() -> None:
    """And what is not there needs nothing."""
    raw = node(both(**{"example.com_dongle": "4"}))
    made = plan_advertisement(
        raw, {}, (DONGLE, "example.com/none"), manager=PERSON_MANAGER
    )
    assert [operation["op"] for operation in made.operations] == ["remove", "remove"]
    assert made.after == {DONGLE: None, "example.com/none": None}


def test_what_others_offer_stays_theirs_unless_forced() -> None:
    """Such as kubelet, for a device plugin."""
    raw = node(both(**{"example.com_dongle": "2"}), kubelet=DONGLE)
    with pytest.raises(AdvertisementError, match="is kubelet's"):
        plan(raw, 4)
    with pytest.raises(AdvertisementError, match="is kubelet's"):
        plan_advertisement(raw, {}, (DONGLE,), manager=PERSON_MANAGER)
    assert plan(raw, 4, force=True).operations


def test_what_kubelet_set_to_zero_is_offered_again() -> None:
    """It does so to all extended resources when it has lost its state."""
    raw = node(both(**{"example.com_dongle": "0"}), kubelet=DONGLE)
    assert len(plan(raw, 4).operations) == 2


def test_an_agent_takes_over_what_a_person_wrote_and_no_person_an_agents() -> None:
    """The configuration of an agent would win in the end anyway."""
    dongles = both(**{"example.com_dongle": "2"})
    by_hand = node(dongles, moorings_advertise=DONGLE)
    wanted = {DONGLE: 4}
    assert plan_advertisement(by_hand, wanted, manager=AGENT_MANAGER).operations
    with pytest.raises(AdvertisementError, match=AGENT_MANAGER):
        plan(node(dongles, moorings_nodeagent=DONGLE), 4)


def test_a_node_says_what_its_agent_has_written() -> None:
    """Also that of an agent before this one."""
    dongles = both(**{"example.com_dongle": "2"})
    assert list_written(node(dongles, moorings_nodeagent=DONGLE), AGENT_MANAGER) == {
        DONGLE
    }
    assert not list_written(node(dongles, kubelet=DONGLE), AGENT_MANAGER)
    assert not list_written(node(both(), moorings_nodeagent=DONGLE), AGENT_MANAGER)
