"""Gangs are found by their pods, and what is over is remembered for a while."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contracts.ids import GangKey, GangUID, Namespace
from contracts.lifecycle import PUBLISHER
from contracts.messages import AllocationRefused, CancelGang, ClaimsReleased
from contracts.meta import OwnerReference
from publisher.gangs import records as records_module
from publisher.gangs.records import PodGangRecords
from publisher.gangs.view import GroupKey
from tests import builders
from tests.builders.decisions import gang_allocated, gang_released
from tests.builders.plans import TRAIN, record_of, submission_of
from tests.builders.pods import waiting_pod

POD = waiting_pod("a", gang="train", templates=["gpus"])
SUBMITTED = submission_of((POD,))
DECISION = gang_allocated()
UID = GangUID(builders.UID)
KEY = GangKey(Namespace(builders.NAMESPACE), UID)


def cancelled(reason: str = "") -> CancelGang:
    """Give the gang up."""
    return CancelGang(
        cluster=DECISION.cluster, namespace=DECISION.namespace, uid=UID, reason=reason
    )


def test_the_group_of_a_gang_is_known_with_its_submission() -> None:
    """A decision may be read before it: it names no pods."""
    records = PodGangRecords()
    assert records.apply(DECISION, 1) is None
    assert list(records.groups()) == []
    assert records.apply(SUBMITTED, 1) == TRAIN
    (record,) = records.of_group(TRAIN)
    assert record.decision == DECISION
    assert record.pods == {"uid-a"}


def test_a_pod_without_a_label_is_a_group_of_its_own() -> None:
    """It has the pod's name, and is not the gang of that name."""
    message = submission_of((POD,))
    message.gang.metadata.labels.clear()
    assert record_of(message).group == GroupKey(builders.NAMESPACE, "a", lone=True)


def test_what_was_submitted_again_is_newer() -> None:
    """The generation counts before the uid, which is drawn by lot."""
    gang = SUBMITTED.gang
    second = replace(gang, metadata=replace(gang.metadata, generation=2))
    again = replace(SUBMITTED, uid=GangUID("0"), gang=second)
    assert record_of(again).age > record_of(SUBMITTED).age


def test_a_group_is_finished_when_nothing_is_held_for_one_of_its_gangs() -> None:
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    records.apply(DECISION, 1)
    assert list(records.finished_groups()) == []
    records.apply(gang_released(), 2)
    assert list(records.finished_groups()) == []
    released = ClaimsReleased(
        cluster=DECISION.cluster, namespace=DECISION.namespace, uid=UID
    )
    records.apply(released, 1)
    assert list(records.finished_groups()) == [TRAIN]


def test_a_gang_object_has_its_devices_while_its_own_decision_counts() -> None:
    """Not by that for an object of the same name before it."""
    held, other = builders.gang(uid="held"), builders.gang(uid="other")
    owner = OwnerReference(
        api_version=held.api_version, kind="Gang", name="train", uid="held"
    )
    gang = SUBMITTED.gang
    meta = replace(gang.metadata, owner_references=(owner,))
    submitted = replace(SUBMITTED, gang=replace(gang, metadata=meta))
    decided = record_of(submitted, DECISION)
    assert decided.holds_for(held)
    assert not decided.holds_for(other)
    assert not record_of(submitted).holds_for(held)
    assert not record_of(submitted, DECISION, cancelled()).holds_for(held)


def test_who_is_forgotten_does_not_come_back() -> None:
    """A late message changes nothing, and the group is empty."""
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    records.forget([KEY])
    assert records.apply(DECISION, 1) is None
    assert (len(records), list(records.groups())) == (0, [])
    assert records.of_group(TRAIN) == ()


def test_who_is_submitted_again_lives_again() -> None:
    """All that was said of the gang before has left the streams by then."""
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    records.forget([KEY])
    assert records.apply(SUBMITTED, 1) is None
    assert records.apply(SUBMITTED, 2) is not None
    assert len(records) == 1


def test_only_what_the_publisher_gave_up_is_asked_for_again() -> None:
    """Somebody else's end is an end; of what was not forgotten nothing is said."""
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    assert records.forgotten(KEY) is None
    records.apply(cancelled(f"{PUBLISHER}its pods are gone"), 1)
    records.forget([KEY])
    assert records.forgotten(KEY) is True
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    records.apply(cancelled(), 1)
    records.forget([KEY])
    assert records.forgotten(KEY) is False


def test_a_correction_holds_against_what_was_known() -> None:
    """The bus says what is stored, even if that is nothing."""
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    refused = AllocationRefused(
        cluster=DECISION.cluster,
        namespace=DECISION.namespace,
        uid=UID,
        attempt=1,
        reason="no",
    )
    records.apply(refused, 9)
    records.correct(KEY, None, 4)
    (record,) = records.of_group(TRAIN)
    assert (record.confirmation, record.confirmation_sequence) == (None, 4)


def test_so_many_are_remembered_as_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first: their messages are no longer under way."""
    monkeypatch.setattr(records_module, "_FORGOTTEN", 2)
    records = PodGangRecords()
    keys = [GangKey(KEY.namespace, GangUID(uid)) for uid in "abc"]
    records.forget(keys)
    assert list(map(records.forgotten, keys)) == [None, False, False]


def test_a_uid_is_one_namespace_s_alone() -> None:
    """Who may speak of gangs of one namespace ends none of another."""
    records = PodGangRecords()
    records.apply(SUBMITTED, 1)
    elsewhere = replace(cancelled(), namespace=Namespace("other-tenant"))
    assert records.apply(elsewhere, 2) is None
    (record,) = records.of_group(TRAIN)
    assert record.command is None
    records.forget([elsewhere.key])
    assert records.forgotten(KEY) is None
    assert records.apply(DECISION, 1) == TRAIN
