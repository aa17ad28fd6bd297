"""What is remembered ends by itself and never grows past its bound."""

from __future__ import annotations

from authcallout.remembered import Remembered


def test_a_value_holds_for_its_time() -> None:
    remembered: Remembered[int] = Remembered(5.0, 10)
    remembered.keep(b"a", 1, now_s=100.0)

    assert remembered.find(b"a", 104.9) == 1
    assert remembered.find(b"a", 105.0) is None
    assert remembered.find(b"b", 100.0) is None


def test_it_holds_no_more_than_it_may() -> None:
    remembered: Remembered[int] = Remembered(5.0, 3)
    for number in range(1000):
        remembered.keep(str(number).encode(), number, now_s=1.0)

    kept = [n for n in range(1000) if remembered.find(str(n).encode(), 1.0) is not None]
    assert kept == [997, 998, 999]


def test_with_no_time_nothing_is_remembered() -> None:
    remembered: Remembered[int] = Remembered(0.0, 3)
    remembered.keep(b"a", 1, now_s=1.0)

    assert remembered.find(b"a", 1.0) is None
