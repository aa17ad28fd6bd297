"""Which messages a start passes over: they are about gangs that are over.

Decisions are read first; what else is said of a gang that they say is over is passed
over, until everything has been read. Pure.
"""

from __future__ import annotations

from contracts.lifecycle import LifecycleMessage
from contracts.messages import DecisionMessage, GangRejected, GangReleased
from runtime.past_gangs import PastGangs


def passes_over(past: PastGangs, message: LifecycleMessage, *, is_known: bool) -> bool:
    """True if a message is about such a gang, and so changes nothing.

    `is_known` says that something else is kept of the gang already.
    """
    if not past.is_open:
        return False
    if isinstance(message, GangReleased | GangRejected) and not is_known:
        past.add(message.key)
        return True
    if isinstance(message, DecisionMessage):
        past.discard(message.key)
    return past.has(message.key)
