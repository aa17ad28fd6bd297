"""What many gangs wait for is said once."""

from __future__ import annotations

from moorings.views.reasons import FEW, describe_facts, share_reasons

LONG = "JointCapacity: 12 devices are asked for, and 8 are free"


def test_a_reason_of_many_is_a_mark_in_each_row_and_one_line_below() -> None:
    other = "Queued: more urgent gangs came first"
    reasons = [LONG, "", other, *(LONG,) * FEW, *(other,) * FEW]
    cells, lines = share_reasons(reasons)
    assert cells[:4] == ["JointCapacity [1]", "", "Queued [2]", "JointCapacity [1]"]
    assert cells.count("JointCapacity [1]") == FEW + 1
    assert lines == [f"[1] {FEW + 1} gangs: {LONG}", f"[2] {FEW + 1} gangs: {other}"]


def test_few_are_told_in_full_and_short_words_stay() -> None:
    reasons = [*(LONG,) * FEW, *("waiting to be decided",) * 9]
    assert share_reasons(reasons) == (reasons, [])


def test_counts_of_devices_are_told_rule_by_rule() -> None:
    facts = {"devices": 1280, "free": 3, "pods": 2, "room": 0, "selected": 64}
    told = describe_facts({**facts, "eligible": 3, "onUsableNodes": 64})
    assert told == "devices: 1,280 in total, 64 match, 3 free; pods 2, room 0"


def test_other_counts_are_told_by_name() -> None:
    assert describe_facts({"devices": 3, "maxPods": 1}) == "devices 3, max pods 1"
