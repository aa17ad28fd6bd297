"""From the Snapshot to what is decided: the Problem of a batch.

Resolves the gangs, says which verdicts of selectors are still unknown, and picks from
the known ones exactly those that the Problem needs, so that equal situations make
equal bytes whatever was known besides. The caller evaluates what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from contracts.claim import IMPLICIT_RESOURCE, ResourceClaim, ResourceClaimTemplate
from contracts.device import Device
from contracts.features import Features
from contracts.ids import DeviceClassName
from contracts.lifecycle import GangRecord
from contracts.messages import SubmitGang
from solver.cache import Slots
from solver.devices.candidates import select_projected
from solver.devices.facts import pool_of
from solver.devices.pool_projections import (
    MOST_LISTS,
    find_distinct_pools,
    forget_distinct_pools,
)
from solver.errors import VerdictMissingError
from solver.problem.affinity.neighbours import find_neighbours
from solver.problem.attributes import DERIVED
from solver.problem.gangs import GangPart
from solver.problem.growth.grow import ask_for_more, join_running
from solver.problem.problem import (
    ExpectedPart,
    Parameters,
    Problem,
    QuotaPart,
    keep_countable,
)
from solver.problem.quota.asked import make_queue_part
from solver.problem.quota.queues import find_queue
from solver.problem.resolve import ResolveOptions
from solver.problem.resolved import resolve_once
from solver.problem.sharing import refuse_shared
from solver.selectors.projection import Projection
from solver.selectors.table import SelectorTable, VerdictRow
from solver.snapshot.pages import Page
from solver.snapshot.parts import ClassPart, class_key
from solver.snapshot.snapshot import Snapshot

MissingVerdict = tuple[str, str, Device]
"""(expression, driver, device) of a verdict that is not known."""
_ROWS: Slots[tuple[str, ...], frozenset[VerdictRow]] = Slots(MOST_LISTS)
"""By page: the rows that it needs, by list of selectors."""


class SnapshotLookup:
    """Looks up the references of gangs in a Snapshot."""

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

    def claim_holder(self, key: str) -> GangRecord | None:
        """Find the gang that was given a claim by `namespace/name`, if any was."""
        holder = self._snapshot.claim_holders.get(key)
        return None if holder is None else self._snapshot.gangs.get(holder)

    def class_serving(self, resource: str) -> DeviceClassName | None:
        """Find the class that serves an extended resource (KEP-5004).

        Of two classes the one that was created later wins, then the smaller name.
        """
        implicit = resource.removeprefix(IMPLICIT_RESOURCE)
        if implicit != resource:
            implicit_class = self.device_class(DeviceClassName(implicit))
            return None if implicit_class is None else implicit_class.name
        serving = [
            value
            for value in self._snapshot.inventory.pages.of("")
            if isinstance(value, ClassPart) and value.extended_resource_name == resource
        ]
        last = max((candidate.created for candidate in serving), default="")
        return min(
            (candidate.name for candidate in serving if candidate.created == last),
            default=None,
        )


def resolve_gangs(
    snapshot: Snapshot,
    records: Iterable[GangRecord],
    features: Features,
    *,
    lenient: bool = False,
) -> tuple[GangPart, ...]:
    """Make submitted gangs ready to be decided; `lenient` as in `ResolveOptions`.

    In their order: of several that name one ResourceClaim the first is tried.
    """
    how = ResolveOptions(
        lookup=SnapshotLookup(snapshot), features=features, lenient=lenient
    )
    has_queues = len(snapshot.queues.cluster_queues) > 0 and not lenient
    resolved = []
    for record in records:
        if record.submission is not None:
            gang = _resolve_one(record, record.submission, how)
            if record.aged:
                priority = gang.priority + record.aged
                gang = structs.replace(gang, priority=priority, aged=record.aged)
            if has_queues:
                gang = _with_queue(snapshot, record, record.submission, gang)
            resolved.append(gang)
    return tuple(resolved if lenient else refuse_shared(resolved))


def _with_queue(
    snapshot: Snapshot, record: GangRecord, submission: SubmitGang, gang: GangPart
) -> GangPart:
    """Let a gang count for its queue, or refuse it for now where it cannot.

    Pods that replace lost ones do not count: their gang holds what those took.
    """
    objects = snapshot.queues
    found = find_queue(objects, submission.gang)
    if found is None or gang.refused or submission.restores:
        return gang
    closed, part = found.closed, None
    if not closed and found.queue is not None:
        class_of = SnapshotLookup(snapshot).device_class
        part, closed = make_queue_part(
            found.name, found.queue, gang, objects.mappings, class_of
        )
    if closed:
        reason = structs.replace(found, closed=closed).reason
        return structs.replace(gang, refused=(reason,), rejected=False)
    if part is not None and record.allocated is not None and record.allocated.quota:
        part = structs.replace(part, flavors=record.allocated.quota.flavors)
    return structs.replace(gang, queue=part)


def _resolve_one(
    record: GangRecord, submission: SubmitGang, how: ResolveOptions
) -> GangPart:
    """Resolve a gang; for one that is in, ask for the pods without a place."""
    of_pods = bool(submission.places)
    options = structs.replace(how, of_pods=of_pods)
    gang = resolve_once(record.uid, submission.gang, options)
    if record.wants_growth and record.allocated is not None:
        return ask_for_more(gang, record.allocated)
    if submission.joins is not None:
        return join_running(gang, submission.gang.spec, submission.joins)
    return gang


def find_missing_verdicts(
    snapshot: Snapshot,
    gangs: Iterable[GangPart],
    table: SelectorTable,
    expected: Iterable[ExpectedPart] = (),
) -> list[MissingVerdict]:
    """List what must be evaluated next; ask again until the list is empty.

    A selector is only asked about devices that passed those before it, so a list may
    be followed by another.
    """
    missing_by_row: dict[tuple[str, Projection], MissingVerdict] = {}
    pages = [(page, _ROWS.of(page.memory)) for page in snapshot.inventory.pages]
    for selectors in _list_selectors(gangs, expected):
        for page, known in pages:
            if selectors in known:
                continue
            for distinct, part in find_distinct_pools(page, selectors).items():
                pool = pool_of(part)
                missing = select_projected(distinct, selectors, table).missing
                for expression, projection, index in missing:
                    missing_verdict = (expression, pool.driver, pool.devices[index])
                    missing_by_row.setdefault((expression, projection), missing_verdict)
    return list(missing_by_row.values())


def assemble(
    snapshot: Snapshot,
    gangs: tuple[GangPart, ...],
    table: SelectorTable,
    parameters: Parameters,
    expected: tuple[ExpectedPart, ...] = (),
    *,
    quotas: tuple[QuotaPart, ...] = (),
) -> Problem:
    """Make the Problem, with the verdicts that it needs and no others.

    Raises:
        VerdictMissingError: `find_missing_verdicts` was not empty.
    """
    needed: set[frozenset[VerdictRow]] = set()
    pages = [(page, _ROWS.of(page.memory)) for page in snapshot.inventory.pages]
    for selectors in _list_selectors(gangs, expected):
        for page, known in pages:
            rows = known.get(selectors)
            if rows is None:
                rows = _collect_rows(page, selectors, table)
            if rows is None:
                raise VerdictMissingError(selectors[0])
            needed.add(rows)
    recorded = SelectorTable.of(frozenset[VerdictRow]().union(*needed))
    return Problem(
        snapshot.inventory.pages,
        gangs,
        recorded,
        parameters,
        expected,
        neighbours=find_neighbours(snapshot.inventory, gangs),
        quotas=quotas,
    )


def _list_selectors(
    gangs: Iterable[GangPart], expected: Iterable[ExpectedPart]
) -> list[tuple[str, ...]]:
    """List the different selector lists of a batch, and its derived attributes."""
    members = [m for gang in gangs if not gang.refused for m in gang.members]
    members += [keep_countable(part.member) for part in expected]
    alternatives = [
        alternative
        for member in members
        for claim in member.claims
        for request in claim.requests
        for alternative in request.alternatives
    ]
    derived = {
        (DERIVED + expression,)
        for alternative in alternatives
        for _, expression in alternative.derived_attributes
    }
    derived |= {
        (DERIVED + expression,)
        for gang in gangs
        for pod in gang.standing
        for held in pod.devices
        for _, expression in held.derived_attributes
    }
    return sorted({alternative.selectors for alternative in alternatives} | derived)


def _collect_rows(
    page: Page, selectors: tuple[str, ...], table: SelectorTable
) -> frozenset[VerdictRow] | None:
    """Collect the rows that a page needs; None: the table lacks some."""
    row_sets = set()
    for projection in find_distinct_pools(page, selectors):
        selection = select_projected(projection, selectors, table)
        if selection.missing:
            return None
        row_sets.add(selection.rows)
    forget_distinct_pools(page, selectors)
    return _ROWS.of(page.memory).keep(selectors, _unite_rows(row_sets))


def _unite_rows(row_sets: set[frozenset[VerdictRow]]) -> frozenset[VerdictRow]:
    """Unite sets; a single set is returned itself: equal ones stay one object."""
    if len(row_sets) == 1:
        return row_sets.pop()
    return frozenset[VerdictRow]().union(*row_sets)
