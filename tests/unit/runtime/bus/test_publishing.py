"""What is sent at once, and what waits for answers first."""

from __future__ import annotations

from runtime.bus.publishing import _cut_windows
from runtime.wire import Outgoing


def test_windows_hold_no_more_than_their_bytes() -> None:
    """In order, nothing lost, and one message at least."""
    messages = [Outgoing(subject=str(n), data=bytes(n)) for n in (3, 3, 9, 1, 2, 3)]

    windows = list(_cut_windows(messages, 6))

    assert [[len(m.data) for m in window] for window in windows] == [
        [3, 3],
        [9],
        [1, 2, 3],
    ]
