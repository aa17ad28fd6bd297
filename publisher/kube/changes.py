"""What a follower of Kubernetes objects hands over: changes, in pages.

The interface between whoever watches the API server and whoever acts on what it
says. Knows neither of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Change(Struct, frozen=True):
    """An object as it is now, or (None) that it is gone."""

    kind: str
    """As in the object's `kind`, such as `ResourceClaim`."""
    key: str
    """`name` or `namespace/name`."""
    object: dict[str, Any] | None
    """As served: with `apiVersion` and `kind`, in the version that was asked for."""
    uid: str = ""
    """Of the object that is gone: another of its name may be there already."""


class ChangePage(Struct, frozen=True):
    """Changes in their order; of one object, only the last counts."""

    changes: tuple[Change, ...]
    synced: bool
    """Everything that existed when the follower began has been handed over."""
