"""What a gang asks is read once, and anew when what it refers to has changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from contracts.features import Features
from contracts.gang import Gang
from contracts.ids import GangUID
from solver.problem.assemble import SnapshotLookup
from solver.problem.gangs import GangPart
from solver.problem.resolve import ResolveOptions, resolve
from solver.problem.resolved import MOST_RESOLVED, resolve_once
from solver.snapshot.snapshot import Snapshot, apply
from tests.builders import (
    DEVICE_CLASS,
    NAMESPACE,
    claim,
    claim_template,
    device_class,
    gang,
    member,
    member_claim,
    request,
)
from tests.builders.decisions import gang_allocated, submission
from tests.builders.models import DRAWN_UID
from tests.builders.problems import observe, snapshot_of

RESOURCE = "example.com/gpu"
UID = GangUID("a gang that asks twice")
Change = Callable[[Snapshot], Snapshot]


def ask(
    snapshot: Snapshot, asking: Gang, *, once: bool = True, **options: Any
) -> GangPart:
    how = ResolveOptions(lookup=SnapshotLookup(snapshot), **options)
    return (resolve_once if once else resolve)(UID, asking, how)


def give_away(snapshot: Snapshot) -> Snapshot:
    """Let another gang have the claim."""
    uid = DRAWN_UID.format(1)
    other = gang(member(member_claim(claim="c")), uid=uid)
    snapshot = apply(snapshot, submission(other, uid=uid), sequence=1)
    return apply(snapshot, gang_allocated(uid=uid), sequence=1)


def put(key: str, value: Any) -> Change:
    return partial(observe, key=key, value=value)


@pytest.mark.parametrize(
    ("asking", "change"),
    [
        (
            gang(member()),
            put(DEVICE_CLASS, device_class(DEVICE_CLASS, "device.driver == 'other'")),
        ),
        (
            gang(member(member_claim(template="t"))),
            put(f"{NAMESPACE}/t", claim_template(request(count=2), name="t")),
        ),
        (
            gang(member(member_claim(claim="c"))),
            put(f"{NAMESPACE}/c", claim(request(count=2), name="c")),
        ),
        (gang(member(member_claim(claim="c"))), give_away),
        (
            gang(member(resources={RESOURCE: 1})),
            put("serving", device_class("serving", extended_resource_name=RESOURCE)),
        ),
    ],
    ids=["class", "template", "claim", "holder", "extended resource"],
)
def test_what_it_refers_to_is_followed(asking: Gang, change: Change) -> None:
    """Whatever changed, the gang is what it would be if asked for the first time."""
    before = snapshot_of({})
    first = ask(before, asking)
    assert ask(before, asking) is first
    assert ask(snapshot_of({}), asking) == first
    after = change(before)
    second = ask(after, asking)
    assert second == ask(after, asking, once=False) != first


def test_it_is_read_anew_by_other_features_and_of_other_words() -> None:
    """A submission that came again may say something else."""
    snapshot = snapshot_of({})
    asking = gang(member(resources={RESOURCE: 1}))
    offered = put("serving", device_class("serving", extended_resource_name=RESOURCE))
    snapshot = offered(snapshot)
    first = ask(snapshot, asking)
    without = Features(extended_resource=False)
    assert ask(snapshot, asking, features=without) != first
    other = structs.replace(asking, spec=gang(member(count=2)).spec)
    assert ask(snapshot, other) == ask(snapshot, other, once=False) != first


def test_few_are_remembered() -> None:
    """Those that were asked about last."""
    snapshot, asking = snapshot_of({}), gang(member())
    first = ask(snapshot, asking)
    how = ResolveOptions(lookup=SnapshotLookup(snapshot))
    for number in range(MOST_RESOLVED):
        resolve_once(GangUID(f"gang {number}"), asking, how)
    assert ask(snapshot, asking) is not first
