"""From what is believed to what is decided: the Problem of a batch.

Resolves the gangs, says which verdicts of selectors are still unknown, and picks from
the known ones exactly those that the Problem needs, so that equal situations make
equal bytes whatever was known besides. The caller evaluates what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.claim import ResourceClaim, ResourceClaimTemplate
from contracts.device import Device
from contracts.features import Features
from contracts.ids import DeviceClassName
from contracts.lifecycle import GangRecord
from solver.cache import Slots
from solver.devices.candidates import (
    MOST_LISTS,
    find_distinct_pools,
    forget_distinct_pools,
    pools_of,
    select_devices,
    select_projected,
)
from solver.devices.pools import pool_of
from solver.errors import VerdictMissingError
from solver.problem.attributes import DERIVED
from solver.problem.expected import counted
from solver.problem.problem import (
    ExpectedPart,
    GangPart,
    Parameters,
    Problem,
)
from solver.problem.resolve import IMPLICIT_RESOURCE, Resolving, resolve
from solver.selectors.projection import Projection
from solver.selectors.table import SelectorTable, VerdictRow
from solver.snapshot.pages import Page
from solver.snapshot.parts import ClassPart, class_key
from solver.snapshot.snapshot import Snapshot

Wanted = tuple[str, str, Device]
"""(expression, driver, device) of a verdict that is not known."""
_ROWS: Slots[tuple[str, ...], frozenset[VerdictRow]] = Slots(MOST_LISTS)
"""Of a page: the rows that it needs, by list of selectors."""


class SnapshotLookup:
    """Where the references of gangs lead."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def device_class(self, name: DeviceClassName) -> ClassPart | None:
        """Look up a class."""
        part = self._snapshot.inventory.pages.get("", class_key(name))
        return part if isinstance(part, ClassPart) else None

    def template(self, key: str) -> ResourceClaimTemplate | None:
        """Look up a template by `namespace/name`."""
        return self._snapshot.templates.get(key)

    def claim(self, key: str) -> ResourceClaim | None:
        """Look up a claim by `namespace/name`."""
        return self._snapshot.claims.get(key)

    def class_serving(self, resource: str) -> DeviceClassName | None:
        """Find the class that serves an extended resource (KEP-5004).

        Of two classes the one that was created later wins, then the smaller name.
        """
        implicit = resource.removeprefix(IMPLICIT_RESOURCE)
        if implicit != resource:
            known = self.device_class(DeviceClassName(implicit))
            return None if known is None else known.name
        serving = [
            value
            for value in self._snapshot.inventory.pages.of("")
            if isinstance(value, ClassPart) and value.extended_resource_name == resource
        ]
        last = max((item.created for item in serving), default="")
        return min((c.name for c in serving if c.created == last), default=None)


def resolve_gangs(
    snapshot: Snapshot,
    records: Iterable[GangRecord],
    features: Features,
    *,
    lenient: bool = False,
) -> tuple[GangPart, ...]:
    """Make submitted gangs ready to be decided; `lenient` as in `Resolving`."""
    how = Resolving(lookup=SnapshotLookup(snapshot), features=features, lenient=lenient)
    return tuple(
        resolve(
            record.uid,
            record.submission.gang,
            structs.replace(how, of_pods=bool(record.submission.places)),
        )
        for record in records
        if record.submission is not None
    )


def wanted_verdicts(
    snapshot: Snapshot,
    gangs: Iterable[GangPart],
    table: SelectorTable,
    expected: Iterable[ExpectedPart] = (),
) -> list[Wanted]:
    """List what must be evaluated next; ask again until the list is empty.

    A selector is only asked about devices that passed those before it, so a list may
    be followed by another.
    """
    found: dict[tuple[str, Projection], Wanted] = {}
    for selectors in _selectors(gangs, expected):
        for page in snapshot.inventory.pages:
            if selectors in _ROWS.of(page.memory):
                continue
            for sort, part in find_distinct_pools(page, selectors).items():
                pool = pool_of(part)
                missing = select_projected(sort, selectors, table).missing
                for expression, seen, index in missing:
                    wanted = (expression, pool.driver, pool.devices[index])
                    found.setdefault((expression, seen), wanted)
    return list(found.values())


def assemble(
    snapshot: Snapshot,
    gangs: tuple[GangPart, ...],
    table: SelectorTable,
    parameters: Parameters,
    expected: tuple[ExpectedPart, ...] = (),
) -> Problem:
    """Make the Problem, with the verdicts that it needs and no others.

    Raises:
        VerdictMissingError: `wanted_verdicts` was not empty.
    """
    needed: set[frozenset[VerdictRow]] = set()
    for selectors in _selectors(gangs, expected):
        for page in snapshot.inventory.pages:
            rows = _rows(page, selectors, table)
            if rows is None:
                raise VerdictMissingError(selectors[0])
            needed.add(rows)
    recorded = SelectorTable.of(frozenset[VerdictRow]().union(*needed))
    return Problem(snapshot.inventory.pages, gangs, recorded, parameters, expected)


def _selectors(
    gangs: Iterable[GangPart], expected: Iterable[ExpectedPart]
) -> list[tuple[str, ...]]:
    """List the different selector lists of a batch, and its derived attributes."""
    members = [m for gang in gangs if not gang.refused for m in gang.members]
    members += [counted(item.member) for item in expected]
    asked = [
        alternative
        for member in members
        for claim in member.claims
        for request in claim.requests
        for alternative in request.alternatives
    ]
    derived = {
        (DERIVED + expression,)
        for item in asked
        for _, expression in item.derived_attributes
    }
    return sorted({item.selectors for item in asked} | derived)


def _rows(
    page: Page, selectors: tuple[str, ...], table: SelectorTable
) -> frozenset[VerdictRow] | None:
    """Collect the rows that a page needs; None: the table lacks some."""
    known = _ROWS.of(page.memory).get(selectors)
    if known is None:
        different = set()
        for part in pools_of(page):
            found = select_devices(part, selectors, table)
            if found.missing:
                return None
            different.add(found.rows)
        known = _ROWS.of(page.memory).keep(selectors, _union(different))
        forget_distinct_pools(page, selectors)
    return known


def _union(different: set[frozenset[VerdictRow]]) -> frozenset[VerdictRow]:
    """Unite sets; of one, itself, so that equal ones are the same."""
    if len(different) == 1:
        return different.pop()
    return frozenset[VerdictRow]().union(*different)
