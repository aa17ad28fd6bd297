"""Two forecasts side by side."""

from __future__ import annotations

from moorings.what_if.answer import Forecasts, GangFate, compare_fates, count_pods

WAITS = GangFate(verdict="waits", reasons=("DevicesTaken",))
IN = GangFate(verdict="allocated", pods={"n-0": 2, "n-1": 1})


def test_gangs_stand_side_by_side_and_say_whether_they_differ() -> None:
    before, after = {"a": WAITS, "b": IN}, {"a": IN, "b": IN, "c": IN}
    answer = compare_fates(before, after, Forecasts())
    assert [each.name for each in answer.gangs if each.differs] == ["a", "c"]
    assert answer.is_yes
    assert not compare_fates(after, before, Forecasts()).gangs[2].after
    worse = compare_fates({"a": IN}, {"a": WAITS}, Forecasts())
    assert not worse.is_yes


def test_a_fate_is_said_in_a_few_words() -> None:
    assert str(IN) == "allocated on 2 nodes"
    assert str(WAITS) == "waits"
    promised = GangFate(verdict="waits", starts_by="2026-11-29T02:00:00Z")
    assert str(promised) == "waits, starts by 2026-11-29T02:00:00Z"
    assert count_pods(["n-1", "n-0", "n-1"]) == {"n-0": 1, "n-1": 2}
