"""Which pods are expected next: what was asked for lately, and whole nodes.

The past is a bounded summary: how many pods of each kind the last gangs asked for that
came up for a decision. Beside it stand pods that would take all devices of a class that
a node has, or a half, a quarter, down to one of them: before there is a past they alone
count, and later the less, the more has come. What follows is written into the Problem,
so an answer depends on the Problem alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from contracts.codec import encode
from contracts.ids import DeviceClassName, GangKey
from solver.cache import Slots
from solver.devices.candidates import (
    MOST_LISTS,
    indices_of,
    pools_of,
    select_devices,
)
from solver.devices.pools import pool_of
from solver.problem.problem import (
    DEVICE,
    MAX_SIZE,
    MAX_WEIGHT,
    ClaimPart,
    ExpectedPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
    keep_countable,
)
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import Page

PAST_GANGS = 1024
"""Gangs that the summary is of, those that came last."""
PAST_KINDS = 24
"""Kinds of pods that are expected because they came."""
REVIEW = 256
"""Gangs after which it is chosen anew which kinds are expected; at first more often."""
PRIOR = 16
"""Pods that the shapes of nodes count as."""
MOST_PODS = 4096
"""Of a batch whose answer regards what is left over."""
MOST_CLASSES, MOST_SHAPES = 4, 2
"""Classes whose shapes count, and different nodes of each."""
Selectors = tuple[str, ...]


class PastKind(Struct, frozen=True):
    """Pods that were asked for, without what tells gangs apart."""

    key: bytes
    member: MemberPart


class ClassSurvey(Struct, frozen=True):
    """What nodes have of a class."""

    nodes: dict[int, int]
    """How many nodes have so many devices."""
    capacity: dict[str, int]
    """Of devices that may be shared, the most of each capacity; 1e-9 units."""


_SURVEYS: Slots[Selectors, ClassSurvey] = Slots(MOST_LISTS)
"""Of a page: what its nodes have of a class."""


class PastDemand:
    """Counts what was asked for, and says what is expected."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, tuple[tuple[bytes, int], ...]] = {}
        """The last gangs, oldest first: their kinds, and the pods of each."""
        self._pods: Counter[bytes] = Counter()
        """Of each kind."""
        self._kinds: dict[bytes, MemberPart] = {}
        self._chosen: set[bytes] = set()
        """The kinds that are expected."""
        self._noted = 0

    def note(self, gangs: Iterable[GangPart]) -> None:
        """Count gangs that came up for a decision, each once."""
        for gang in gangs:
            if gang.key not in self._gangs and not gang.refused:
                self._note(gang)

    def expect(
        self, batch: Iterable[GangPart], pages: Iterable[Page], table: SelectorTable
    ) -> tuple[ExpectedPart, ...]:
        """Say which pods are expected, as far as the table knows their selectors.

        None beside a batch of more than `MOST_PODS`. Kinds keep their order while they
        stay, so that what was read of nodes holds.
        """
        if sum(gang.pods for gang in batch) > MOST_PODS:
            return ()
        pages = tuple(pages)
        known: dict[Selectors, bool] = {}

        def is_known(selectors: Selectors) -> bool:
            if selectors not in known:
                known[selectors] = all(
                    _survey(page, selectors, table) is not None for page in pages
                )
            return known[selectors]

        chosen = {
            key: self._kinds[key]
            for key in sorted(self._chosen)
            if all(is_known(sub.selectors) for sub in _list_first(self._kinds[key]))
        }
        classes = self._list_classes(chosen)
        surveys = {
            sub.selectors: _unite(pages, sub.selectors, table) for sub in classes
        }
        shapes = [
            (_whole(sub, count), count)
            for sub in classes
            for count in _list_shapes(surveys[sub.selectors].nodes)
        ]
        most = max([PRIOR, *(self._pods[key] for key in chosen)])
        past = (
            ExpectedPart(
                member=member,
                weight=_scale(self._pods[key], most),
                size=_size_of(member, surveys),
            )
            for key, member in chosen.items()
        )
        prior = (
            ExpectedPart(
                member=member,
                weight=_scale(PRIOR, most * len(shapes)),
                size=min(count * DEVICE, MAX_SIZE),
            )
            for member, count in shapes
        )
        return (*past, *prior)

    def _note(self, gang: GangPart) -> None:
        pods: Counter[bytes] = Counter()
        for member in gang.members:
            kind = _strip(member)
            if kind is not None:
                key = encode(kind)
                self._kinds.setdefault(key, kind)
                pods[key] += member.count
        self._gangs[gang.key] = tuple(pods.items())
        self._pods.update(pods)
        if len(self._gangs) > PAST_GANGS:
            self._pods.subtract(dict(self._gangs.pop(next(iter(self._gangs)))))
        self._noted += 1
        is_early = self._noted < REVIEW and self._noted.bit_count() == 1
        if is_early or self._noted % REVIEW == 0:
            self._review()

    def _review(self) -> None:
        """Choose anew which kinds are expected, and forget those that nobody wants."""
        self._pods = +self._pods
        self._kinds = {key: self._kinds[key] for key in self._pods}
        often = sorted(self._pods, key=lambda key: (-self._pods[key], key))
        self._chosen = set(often[:PAST_KINDS])

    def _list_classes(self, chosen: Iterable[bytes]) -> list[SubrequestPart]:
        """List the classes that are asked for most, as requests for one device."""
        pods: Counter[tuple[DeviceClassName, Selectors]] = Counter()
        for key in chosen:
            for sub in _list_first(self._kinds[key]):
                of_class = sub.selectors[: sub.class_selectors]
                pods[sub.device_class, of_class] += self._pods[key]
        ordered = sorted(pods, key=lambda name: (-pods[name], name))
        return [
            SubrequestPart(
                device_class=name, selectors=selectors, class_selectors=len(selectors)
            )
            for name, selectors in ordered[:MOST_CLASSES]
        ]


def _strip(member: MemberPart) -> MemberPart | None:
    """Leave of a member what pods like it have in common; None: nothing is counted."""
    countable = keep_countable(member)
    claims = tuple(
        ClaimPart(name="", requests=claim.requests, constraints=claim.constraints)
        for claim in countable.claims
        if claim.requests
    )
    firsts = [request.alternatives[0] for claim in claims for request in claim.requests]
    if not claims or member.node_name or any(sub.derived_attributes for sub in firsts):
        return None
    return structs.replace(countable, name="", count=1, claims=claims)


def _list_first(member: MemberPart) -> Iterator[SubrequestPart]:
    """Go through what is counted of a kind: the first choice of each request."""
    for claim in member.claims:
        for request in claim.requests:
            yield request.alternatives[0]


def _scale(pods: int, most: int) -> int:
    return max(1, pods * MAX_WEIGHT // most)


def _whole(sub: SubrequestPart, count: int) -> MemberPart:
    """Ask for so many devices of a class at once."""
    request = RequestPart(
        name="shape", alternatives=(structs.replace(sub, count=count),)
    )
    return MemberPart(name="", claims=(ClaimPart(name="", requests=(request,)),))


def _size_of(member: MemberPart, surveys: dict[Selectors, ClassSurvey]) -> int:
    """Count the thousandths of devices that a pod takes."""
    size = 0
    for sub in _list_first(member):
        survey = surveys.get(sub.selectors[: sub.class_selectors])
        capacity = {} if survey is None else survey.capacity
        parts = [
            -(-amount.nano * DEVICE // capacity[name])
            for name, amount in sub.capacity.items()
            if capacity.get(name)
        ]
        size += sub.count * min(DEVICE, max(parts, default=DEVICE))
    return max(0, min(size, MAX_SIZE))


def _list_shapes(nodes: dict[int, int]) -> list[int]:
    """List the whole nodes that have most of a class, and halves of them, and so on."""
    often = sorted(nodes, key=lambda count: (-count * nodes[count], count))
    shapes: set[int] = set()
    for count in often[:MOST_SHAPES]:
        shapes.update(count >> halvings for halvings in range(count.bit_length()))
    return sorted(shapes)


def _unite(
    pages: Iterable[Page], selectors: Selectors, table: SelectorTable
) -> ClassSurvey:
    """Add up what the nodes of all pages have, as far as that is known."""
    nodes: Counter[int] = Counter()
    capacity: dict[str, int] = {}
    for page in pages:
        survey = _survey(page, selectors, table)
        if survey is not None:
            nodes.update(survey.nodes)
            for name, amount in survey.capacity.items():
                capacity[name] = max(amount, capacity.get(name, 0))
    return ClassSurvey(dict(nodes), capacity)


def _survey(
    page: Page, selectors: Selectors, table: SelectorTable
) -> ClassSurvey | None:
    """Count what the nodes of a page have; None: the table does not know all."""
    surveys = _SURVEYS.of(page.memory)
    survey = surveys.get(selectors)
    if survey is None:
        devices: Counter[str] = Counter()
        capacity: dict[str, int] = {}
        for part in pools_of(page):
            selection = select_devices(part, selectors, table)
            if selection.missing:
                return None
            pool = pool_of(part)
            if pool.node and selection.bits:
                devices[pool.node] += selection.bits.bit_count()
            for index in indices_of(selection.bits):
                device = pool.devices[index]
                for name, each in device.capacity.items():
                    if device.allow_multiple_allocations:
                        capacity[name] = max(each.value.nano, capacity.get(name, 0))
        found = ClassSurvey(dict(Counter(devices.values())), capacity)
        survey = surveys.keep(selectors, found)
    return survey
