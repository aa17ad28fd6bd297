"""Objects of one kind by name, of each the newest that was seen or written.

A watch lags behind our own writes: what it says of an object is only believed when it
is newer than what a write has answered. Pure; knows no kind and no API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from contracts.meta import ObjectMeta


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=_Object)


class ObjectCache(Generic[T]):
    """The objects that are there, as far as is known."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}
        self._deleted: dict[str, str] = {}
        """Uids, by name, of what we deleted and the watch still shows."""

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def get(self, name: str) -> T | None:
        """Give the object of a name."""
        return self._items.get(name)

    def put(self, item: T) -> bool:
        """Believe an object; False: it is not news."""
        metadata = item.metadata
        known = self._items.get(metadata.name)
        if self._deleted.get(metadata.name) == metadata.uid:
            return False
        if known is not None and _version(item) <= _version(known):
            return False
        self._items[metadata.name] = item
        return True

    def remove(self, name: str) -> T | None:
        """Believe the watch that an object is gone; gives it if that is news."""
        if self._deleted.pop(name, None) is not None:
            return None
        return self._items.pop(name, None)

    def delete(self, item: T) -> None:
        """Note that we deleted an object, which the watch does not know yet."""
        metadata = item.metadata
        known = self._items.get(metadata.name)
        if known is not None and known.metadata.uid == metadata.uid:
            del self._items[metadata.name]
            self._deleted[metadata.name] = metadata.uid


def _version(item: _Object) -> int:
    """Give an object's version; those of one kind compare as numbers (KEP-5504)."""
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() else 0
