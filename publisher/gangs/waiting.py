"""Why pods are not submitted yet, for their author."""

from __future__ import annotations

from msgspec import Struct


class Waiting(Struct, frozen=True, kw_only=True):
    """What is still to come, or to be put right."""

    reason: str
    """One word, such as `PodsMissing`."""
    message: str
