"""How many devices of a class each node has, counted again only where pools changed.

Before each batch all pages are looked at, of which few changed, and mostly by what is
used of their pools: that changes no count. Pure, but for what is remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import floor

from msgspec import Struct

from solver.cache import Cache
from solver.devices.candidates import indices_of, select_projected
from solver.devices.facts import facts_of, pool_of
from solver.devices.pool_projections import (
    MOST_LISTS,
    Selectors,
    find_distinct_pools,
    pools_of,
    projection_of,
)
from solver.problem.problem import DEVICE
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import Page
from solver.snapshot.parts import Part, PoolPart


class ClassSurvey(Struct, frozen=True):
    """How many devices of a class nodes have."""

    nodes: dict[int, int]
    """How many nodes have so many devices."""
    capacity: dict[str, int]
    """Of devices that may be shared, the most of each capacity; 1e-9 units."""
    drawn: int = 0
    """Thousandths of its counter sets that a device draws, the least; 0: none draws."""


class _SurveyedPage(Struct, frozen=True):
    page: Page
    pools: tuple[Part, ...]
    surveys: Cache[Selectors, ClassSurvey]
    """Surveys of these pools, by selectors."""
    known: Cache[Selectors, bool]
    """Selectors of which a table knew what they say of these pools."""


class Surveys:
    """Surveys of the pages that were followed last."""

    def __init__(self) -> None:
        self._pages: list[_SurveyedPage] = []
        self._unions: Cache[Selectors, ClassSurvey] = Cache(MOST_LISTS)
        """Surveys of all pages, where all is known."""
        self._known: Cache[Selectors, bool] = Cache(MOST_LISTS)
        """What the table knew of all pages."""
        self._table = SelectorTable()
        """The one that was asked last."""

    def follow(self, pages: Iterable[Page]) -> None:
        """Look at the pages as they are now."""
        pages, before = list(pages), self._pages
        if len(pages) != len(before):
            self._pages = [_survey_later(page) for page in pages]
        else:
            pairs = zip(pages, before, strict=True)
            self._pages = [_follow_page(page, last) for page, last in pairs]
        pairs_after = zip(before, self._pages, strict=False)
        if len(pages) != len(before) or any(
            last.surveys is not now.surveys for last, now in pairs_after
        ):
            self._unions.clear()
            self._known.clear()

    def is_known(self, selectors: Selectors, table: SelectorTable) -> bool:
        """True if the table has the verdicts of these selectors on every device."""
        self._forget_unless_grown(table)
        if selectors in self._known:
            return True
        pages = self._pages
        is_known = all(_is_known(page, selectors, table) for page in pages)
        return is_known and self._known.keep(selectors, True)

    def of(self, selectors: Selectors, table: SelectorTable) -> ClassSurvey:
        """Add up what the nodes of all pages have, as far as that is known."""
        self._forget_unless_grown(table)
        union = self._unions.get(selectors)
        if union is None:
            union = self._unite_surveys(selectors, table)
            if self.is_known(selectors, table):
                self._unions.keep(selectors, union)
        return union

    def _forget_unless_grown(self, table: SelectorTable) -> None:
        """Forget what was known, where a table may lack what the last one had."""
        if table is not self._table and not table.extends(self._table):
            self._known.clear()
            for page in self._pages:
                page.known.clear()
        self._table = table

    def _unite_surveys(self, selectors: Selectors, table: SelectorTable) -> ClassSurvey:
        nodes: Counter[int] = Counter()
        capacity: dict[str, int] = {}
        drawn: list[int] = []
        for page in self._pages:
            survey = _survey_pools(page, selectors, table)
            if survey is not None:
                nodes.update(survey.nodes)
                drawn += [survey.drawn] if survey.drawn else []
                for name, amount in survey.capacity.items():
                    capacity[name] = max(amount, capacity.get(name, 0))
        return ClassSurvey(dict(nodes), capacity, min(drawn, default=0))


def _survey_later(page: Page) -> _SurveyedPage:
    return _SurveyedPage(page, pools_of(page), Cache(MOST_LISTS), Cache(MOST_LISTS))


def _follow_page(page: Page, last: _SurveyedPage) -> _SurveyedPage:
    if page is last.page:
        return last
    pools = pools_of(page)
    if len(pools) == len(last.pools) and all(
        pool is other for pool, other in zip(pools, last.pools, strict=True)
    ):
        return _SurveyedPage(page, pools, last.surveys, last.known)
    return _survey_later(page)


def _is_known(page: _SurveyedPage, selectors: Selectors, table: SelectorTable) -> bool:
    """True if a table has the verdicts of selectors on the pools of a page."""
    if selectors in page.known:
        return True
    projections = find_distinct_pools(page.page, selectors)
    if any(
        select_projected(projection, selectors, table).missing
        for projection in projections
    ):
        return False
    return page.known.keep(selectors, True)


def _survey_pools(
    page: _SurveyedPage, selectors: Selectors, table: SelectorTable
) -> ClassSurvey | None:
    """Count what the nodes of a page have; None: the table does not know all."""
    survey = page.surveys.get(selectors)
    return survey or _count_devices(page, selectors, table)


def _count_devices(
    page: _SurveyedPage, selectors: Selectors, table: SelectorTable
) -> ClassSurvey | None:
    if not _is_known(page, selectors, table):
        return None
    projections = find_distinct_pools(page.page, selectors)
    bits_by_projection = {
        projection: select_projected(projection, selectors, table).bits
        for projection in projections
    }
    devices: dict[str, int] = {}
    capacity: dict[str, int] = {}
    drawn: list[int] = []
    for part in page.pools:
        bits = bits_by_projection[projection_of(part, selectors)]
        if bits and part.owner:
            devices[part.owner] = devices.get(part.owner, 0) + bits.bit_count()
        shareable = bits & facts_of(part).marks.shareable
        for index in indices_of(shareable) if shareable else ():
            for name, each in pool_of(part).devices[index].capacity.items():
                capacity[name] = max(each.value.nano, capacity.get(name, 0))
        counting = bits & facts_of(part).marks.counting
        if counting:
            # Pools list the parts of a device one like the other: the first will do.
            first = next(iter(indices_of(counting)))
            drawn.append(_measure_drawn(pool_of(part), first))
    found = ClassSurvey(
        dict(Counter(devices.values())), capacity, min(drawn, default=0)
    )
    return page.surveys.keep(selectors, found)


def _measure_drawn(pool: PoolPart, index: int) -> int:
    """Measure what a device draws of its counter sets, in thousandths of them.

    Of a set it is the mean over its counters.
    """
    sets = {
        each.name: each.counters
        for pool_slice in pool.slices
        for each in pool_slice.shared_counters
    }
    shares = [
        Fraction(
            consumption.counters[name].value.nano
            if name in consumption.counters
            else 0,
            len(counters) * counter.value.nano,
        )
        for consumption in pool.devices[index].consumes_counters
        for counters in [sets.get(consumption.counter_set, {})]
        for name, counter in counters.items()
        if counter.value.nano > 0
    ]
    return max(1, min(DEVICE, floor(DEVICE * sum(shares))))
