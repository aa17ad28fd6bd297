"""Gangs of one name are told apart, and one gang of two names is one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from msgspec import structs

from contracts.gang import Gang
from contracts.ids import GangUID, Namespace
from contracts.lifecycle import GangRecord
from moorings.bus_client import Client
from moorings.cli.gangs import find_each, find_namesakes
from tests import builders


async def find_gang(name: str, _: str | None) -> GangRecord:
    """Find any gang by the first letter of its name or uid."""
    return GangRecord(namespace=Namespace("team-a"), uid=GangUID(name[0]))


def test_a_gang_that_is_named_twice_is_one() -> None:
    client = cast("Client", SimpleNamespace(find_gang=find_gang))
    found = asyncio.run(find_each(client, ["b1", "a", "b2", "b"], None))
    assert [record.uid for record in found] == ["b", "a"]


def named(name: str, uid: str = "", namespace: str = "") -> Gang:
    """Make a gang as an author names it."""
    gang = builders.gang(builders.member())
    metadata = structs.replace(gang.metadata, name=name, uid=uid, namespace=namespace)
    return structs.replace(gang, metadata=metadata)


def test_gangs_of_one_input_may_have_one_name() -> None:
    """The same uid twice is one submission."""
    gangs = [named("a"), named("b"), named("a", namespace="default")]
    assert find_namesakes(gangs) == ["default/a"]
    assert find_namesakes([named("a"), named("a", namespace="team-a")]) == []
    assert find_namesakes([named("a", uid="1"), named("a", uid="1")]) == []
    assert find_namesakes([named("a", uid="1"), named("a", uid="2")]) == ["default/a"]
