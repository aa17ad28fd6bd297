"""The one way to remember results: typed, with an owner and a bound.

What is remembered is what a pure function gave, under everything that it depends on, so
no answer can show whether it was; `tests/property/test_no_answer_depends_on_a_cache.py`
decides the same with nothing remembered at all. Each result has one owner:

- a module or an object holds a `Cache`, or where one result is enough a `Last`,
- a function with `@cached` holds its own,
- what hangs on a part, a page or a table lies in its `Memory` and goes with it. Whoever
  derives something declares a `Slot` (one result) or `Slots` (results by key) for it,
  and nobody else can read, replace or evict what lies there.

What a value is made of once (`cached_property`) and what an algorithm still needs is
no cache: it is neither bounded nor forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")


class Cache(dict[K, V], Generic[K, V]):
    """Results by key; where there is no room the oldest are forgotten first.

    `bound` limits the entries, or with `weigh` the sum of what they weigh (an entry
    weighs 1 at least); what is heavier than all of it alone is not kept. Read it as the
    dict that it is, add by `keep` alone. `keep` again what was used, and the oldest are
    those not used for longest.
    """

    # There is one a part and slot, many thousands in a large cluster.
    __slots__ = ("_weigh", "bound")

    is_on: ClassVar[bool] = True
    """False: nothing is remembered from now on, by anybody. For tests alone."""

    def __init__(self, bound: int, *, weigh: Callable[[V], int] | None = None) -> None:
        self.bound = bound
        self._weigh = weigh

    def keep(self, key: K, value: V) -> V:
        """Remember a result and return it."""
        if self._weigh is None and len(self) < self.bound and key not in self:
            if Cache.is_on:
                self[key] = value
            return value
        self.pop(key, None)
        weight = 1 if self._weigh is None else max(1, self._weigh(value))
        if weight > self.bound or not Cache.is_on:
            return value
        while self._total_weight() + weight > self.bound:
            # An eighth at once: finding the first of a dict that lost many is slow.
            for oldest in list(islice(self, 1 + len(self) // 8)):
                self.pop(oldest, None)
        self[key] = value
        return value

    def _total_weight(self) -> int:
        if self._weigh is None:
            return len(self)
        return sum(max(1, self._weigh(value)) for value in self.values())


def cached(bound: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Remember what a pure function of hashable arguments gave; errors are not kept."""

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        results: Cache[object, V] = Cache(bound)

        @wraps(function)
        def remembering(*args: P.args, **kwargs: P.kwargs) -> V:
            key = (args, tuple(kwargs.items())) if kwargs else args
            try:
                return results[key]
            except KeyError:
                pass
            return results.keep(key, function(*args, **kwargs))

        return remembering

    return decorate


class Memory(dict[object, Any]):
    """What is remembered of one thing, as long as that thing lives; read by slots.

    A result must not refer to that thing: the worker collects cycles late or never, so
    whatever is replaced must be free by counting references.
    """

    __slots__ = ()


class Slot(Generic[V]):
    """The place for one result in the memory of each thing of a sort."""

    def get(self, memory: Memory) -> V | None:
        """Read what is remembered; None: nothing."""
        value: V | None = memory.get(self)
        return value

    def keep(self, memory: Memory, value: V) -> V:
        """Remember a result in the place of the last one, and return it."""
        if Cache.is_on:
            memory[self] = value
        return value


class Slots(Generic[K, V]):
    """The place for some results by key in the memory of each thing of a sort."""

    def __init__(self, bound: int) -> None:
        self._bound = bound

    def of(self, memory: Memory) -> Cache[K, V]:
        """Read the results about one thing, to read and to add to."""
        results: Cache[K, V] | None = memory.get(self)
        if results is None:
            results = memory[self] = Cache(self._bound)
        return results

    def find(self, memory: Memory, key: K) -> V | None:
        """Read one result about a thing; None: it is not remembered."""
        results: Cache[K, V] | None = memory.get(self)
        return None if results is None else results.get(key)


class Last(Generic[K, V]):
    """A cache of one: the result about the very thing that was asked about last."""

    def __init__(self) -> None:
        self._entry: tuple[K, V] | None = None

    def get(self, thing: K) -> V | None:
        """Read the result about a thing; None: another one was asked about since."""
        entry = self._entry
        return entry[1] if entry is not None and entry[0] is thing else None

    def keep(self, thing: K, value: V) -> V:
        """Remember a result in the place of the last one, and return it."""
        if Cache.is_on:
            self._entry = (thing, value)
        return value
