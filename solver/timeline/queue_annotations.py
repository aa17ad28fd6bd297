"""What ClusterQueues say to Moorings by annotations that cannot be read.

The rest of the queue counts all the same, as if they were not there; so somebody has to
be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from contracts.names import OURS
from solver.queueing.aging import AGING, read_aging
from solver.timeline.patience import (
    PATIENCE,
    PREEMPTION_DELAY,
    RESERVATIONS,
    read_patience,
    read_reservations,
)

_READERS: Mapping[str, Callable[[str], object]] = {
    AGING: read_aging,
    PATIENCE: read_patience,
    PREEMPTION_DELAY: read_patience,
    RESERVATIONS: read_reservations,
}


def find_unread(annotations: Mapping[str, str]) -> Iterator[str]:
    """Say of each annotation of ours that does not count why."""
    for name, text in sorted(annotations.items()):
        if not name.startswith(OURS):
            continue
        read = _READERS.get(name)
        if read is None:
            yield f"{name} is unknown; there are {', '.join(sorted(_READERS))}"
            continue
        try:
            read(text)
        except ValueError as error:
            yield f"{name} is {text!r}, which does not count: {error}"
