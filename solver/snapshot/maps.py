"""An immutable map: a change copies one small bucket.

`{**mapping, key: value}` copies everything for each message; ten thousand nodes make
that the most expensive line of the service. Buckets follow from the key's text, so
the order of iteration is the same in every process.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

BUCKETS = 256


class FrozenMap(Generic[K, V]):
    """A frozen map; equal keys are those of equal text."""

    __slots__ = ("_buckets", "_size")

    def __init__(
        self, buckets: tuple[dict[K, V], ...] = ({},) * BUCKETS, size: int = 0
    ) -> None:
        self._buckets = buckets
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: K) -> bool:
        return key in self._buckets[_bucket_of(key)]

    def __iter__(self) -> Iterator[K]:
        return (key for bucket in self._buckets for key in bucket)

    def values(self) -> Iterator[V]:
        """Yield the values, in the order of the keys."""
        return (value for bucket in self._buckets for value in bucket.values())

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield keys and values."""
        return (item for bucket in self._buckets for item in bucket.items())

    def get(self, key: K) -> V | None:
        """Look up a value."""
        if not self._size:  # as most maps are while a whole cluster is read
            return None
        return self._buckets[_bucket_of(key)].get(key)

    def with_item(self, key: K, value: V) -> FrozenMap[K, V]:
        """Map the key to the value."""
        number = _bucket_of(key)
        bucket = self._buckets[number]
        size = self._size + (key not in bucket)
        return self._with_bucket(number, {**bucket, key: value}, size)

    def with_items(self, items: Mapping[K, V]) -> FrozenMap[K, V]:
        """Map each key to its value; each bucket is copied once."""
        buckets, copies, size = list(self._buckets), dict[int, dict[K, V]](), self._size
        for key, value in items.items():
            number = _bucket_of(key)
            copy = copies.get(number)
            if copy is None:
                copy = buckets[number] = copies[number] = dict(buckets[number])
            size += key not in copy
            copy[key] = value
        return FrozenMap(tuple(buckets), size) if copies else self

    def without(self, key: K) -> FrozenMap[K, V]:
        """Leave a key out; itself when it is not there."""
        number = _bucket_of(key)
        bucket = self._buckets[number]
        if key not in bucket:
            return self
        kept = {name: value for name, value in bucket.items() if name != key}
        return self._with_bucket(number, kept, self._size - 1)

    def without_items(self, keys: Iterable[K]) -> FrozenMap[K, V]:
        """Leave keys out; each bucket is copied once, and itself returned if none is.

        Keys that are not there change nothing.
        """
        buckets, copies, size = list(self._buckets), dict[int, dict[K, V]](), self._size
        for key in keys:
            number = _bucket_of(key)
            if key not in buckets[number]:
                continue
            if number not in copies:
                buckets[number] = copies[number] = dict(buckets[number])
            del copies[number][key]
            size -= 1
        return FrozenMap(tuple(buckets), size) if copies else self

    def _with_bucket(
        self, number: int, bucket: dict[K, V], size: int
    ) -> FrozenMap[K, V]:
        buckets = self._buckets
        return FrozenMap((*buckets[:number], bucket, *buckets[number + 1 :]), size)


def _bucket_of(key: Hashable) -> int:
    return zlib.crc32(str(key).encode()) % BUCKETS
