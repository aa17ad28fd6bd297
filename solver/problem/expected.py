"""Which pods are expected next: what was asked for lately, and whole nodes.

The past is a bounded summary: how many pods of each kind the last gangs asked for that
came up for a decision. No namespace pushes out gangs of others of which fewer are
known, nor counts for more than all others together. Beside it stand pods that would
take all devices of a class that a node has, or a half, a quarter, down to one of them:
before there is a past they alone count, and later the less, the more has come. What
follows is written into the Problem, so an answer depends on the Problem alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import structs

from contracts.codec import encode
from contracts.ids import DeviceClassName, GangKey, Namespace
from contracts.lifecycle import GangRecord
from solver.devices.pool_projections import Selectors
from solver.problem.gangs import (
    ClaimPart,
    GangPart,
    MemberPart,
    RequestPart,
    SubrequestPart,
)
from solver.problem.problem import (
    DEVICE,
    MAX_SIZE,
    MAX_WEIGHT,
    ExpectedPart,
    keep_countable,
)
from solver.problem.surveys import ClassSurvey, Surveys
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import Page

PAST_GANGS = 1024
"""Gangs that the summary is of, those that came last."""
NAMESPACE_PODS = 256
"""Pods of a namespace that count, however few the others have asked for."""
PAST_KINDS = 24
"""Kinds of pods that are expected because they came."""
REVIEW = 256
"""Gangs after which it is chosen anew which kinds are expected; at first more often."""
PRIOR = 1
"""Pods that the shapes of nodes count as: to begin with, and where pods that came have
no preference. More of them keeps nodes whole without anyone asking for that."""
MOST_PODS = 4096
"""Largest batch whose answer regards what is left over."""
MOST_CLASSES, MOST_SHAPES = 4, 2
"""Classes whose shapes count, and different nodes of each."""


class PastDemand:
    """Counts what was asked for, and predicts what will be."""

    def __init__(self) -> None:
        self._gangs: dict[Namespace, dict[GangKey, Counter[bytes]]] = {}
        """The last gangs of each namespace, oldest first: the pods of each kind."""
        self._pods: dict[Namespace, Counter[bytes]] = {}
        """By namespace and kind."""
        self._kinds: dict[bytes, MemberPart] = {}
        self._chosen: set[bytes] = set()
        """The kinds that are expected."""
        self._noted = 0
        self._surveys = Surveys()

    def note(self, gangs: Iterable[GangPart]) -> None:
        """Count gangs that came up for a decision, each once."""
        for gang in gangs:
            if gang.key not in self._gangs.get(gang.namespace, ()) and not gang.refused:
                self._note_gang(gang)

    def expect(
        self, batch: Iterable[GangPart], pages: Iterable[Page], table: SelectorTable
    ) -> tuple[ExpectedPart, ...]:
        """Return which pods are expected, as far as the table knows their selectors.

        None beside a batch of more than `MOST_PODS`. Kinds keep their order while they
        stay, so that what was read of nodes holds.
        """
        if sum(gang.pods for gang in batch) > MOST_PODS:
            return ()
        self._surveys.follow(pages)
        chosen, pods = self._list_known(table), self._count_pods()
        classes = self._list_classes(chosen, pods)
        surveys = {
            sub.selectors: self._surveys.of(sub.selectors, table) for sub in classes
        }
        # A class of partitions has large and small ones: its requests say which.
        surveys |= {
            sub.selectors: self._surveys.of(sub.selectors, table)
            for key in chosen
            for sub in _list_first(self._kinds[key])
            if (of_class := surveys.get(_class_of(sub))) is not None and of_class.drawn
        }
        most = max([PRIOR, *(pods[key] for key in chosen)])
        past = (
            ExpectedPart(
                member=member,
                weight=_scale(pods[key], most),
                size=_size_of(member, surveys),
            )
            for key, member in chosen.items()
        )
        return (*past, *_list_prior(classes, surveys, most))

    def _list_known(self, table: SelectorTable) -> dict[bytes, MemberPart]:
        """List the chosen kinds whose selectors the table knows."""
        return {
            key: self._kinds[key]
            for key in sorted(self._chosen)
            if all(
                self._surveys.is_known(sub.selectors, table)
                for sub in _list_first(self._kinds[key])
            )
        }

    def _note_gang(self, gang: GangPart) -> None:
        pods: Counter[bytes] = Counter()
        for member in gang.members:
            kind = _strip_member(member)
            if kind is not None:
                key = encode(kind)
                self._kinds.setdefault(key, kind)
                pods[key] += member.count
        self._gangs.setdefault(gang.namespace, {})[gang.key] = pods
        self._pods.setdefault(gang.namespace, Counter()).update(pods)
        if sum(map(len, self._gangs.values())) > PAST_GANGS:
            self._forget_one()
        self._noted += 1
        is_early = self._noted < REVIEW and self._noted.bit_count() == 1
        if is_early or self._noted % REVIEW == 0:
            self._choose_kinds()

    def _forget_one(self) -> None:
        """Forget the oldest gang of the namespace with the most gangs."""
        most = max(self._gangs, key=lambda namespace: len(self._gangs[namespace]))
        gangs = self._gangs[most]
        self._pods[most].subtract(gangs.pop(next(iter(gangs))))
        self._pods[most] = +self._pods[most]
        if not gangs:
            del self._gangs[most], self._pods[most]

    def _count_pods(self) -> Counter[bytes]:
        """Count the pods of each kind, no namespace for more than all others.

        `NAMESPACE_PODS` count of each in any case; of one alone all do.
        """
        totals = {name: pods.total() for name, pods in self._pods.items()}
        everything = sum(totals.values())
        counted: Counter[bytes] = Counter()
        for namespace, pods in self._pods.items():
            total = totals[namespace]
            others = everything - total
            most = max(NAMESPACE_PODS, others) if others else total
            for key, count in pods.items():
                counted[key] += count if total <= most else -(-count * most // total)
        return counted

    def _choose_kinds(self) -> None:
        """Choose anew which kinds are expected, and forget those without pods."""
        pods = self._count_pods()
        self._kinds = {key: self._kinds[key] for key in pods}
        often = sorted(pods, key=lambda key: (-pods[key], key))
        self._chosen = set(often[:PAST_KINDS])

    def _list_classes(
        self, chosen: Iterable[bytes], pods: Counter[bytes]
    ) -> list[SubrequestPart]:
        """List the classes that are asked for most, as requests for one device."""
        asked: Counter[tuple[DeviceClassName, Selectors]] = Counter()
        for key in chosen:
            for sub in _list_first(self._kinds[key]):
                of_class = _class_of(sub)
                asked[sub.device_class, of_class] += pods[key]
        ordered = sorted(asked, key=lambda name: (-asked[name], name))
        return [
            SubrequestPart(
                device_class=name, selectors=selectors, class_selectors=len(selectors)
            )
            for name, selectors in ordered[:MOST_CLASSES]
        ]


def list_last(records: Iterable[GangRecord]) -> list[GangRecord]:
    """List those of these gangs that the past still counts, oldest first.

    Of each namespace the last ones, as many as the others have.
    """
    newest = sorted(records, key=lambda record: -record.submission_sequence)
    ranks: Counter[Namespace] = Counter()
    ranked: list[tuple[int, int, GangRecord]] = []
    for record in newest:
        ranked.append((ranks[record.namespace], -record.submission_sequence, record))
        ranks[record.namespace] += 1
    kept = sorted(ranked, key=lambda entry: entry[:2])[:PAST_GANGS]
    last = [record for _, _, record in kept]
    return sorted(last, key=lambda record: record.submission_sequence)


def _strip_member(member: MemberPart) -> MemberPart | None:
    """Strip a member to what its kind has in common; None: nothing of it is counted."""
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
    """Yield what is counted of a kind: the first choice of each request."""
    for claim in member.claims:
        for request in claim.requests:
            yield request.alternatives[0]


def _class_of(sub: SubrequestPart) -> Selectors:
    return sub.selectors[: sub.class_selectors]


def _scale(pods: int, most: int) -> int:
    return max(1, pods * MAX_WEIGHT // most)


def _whole(sub: SubrequestPart, count: int) -> MemberPart:
    """Make a member that asks for so many devices of a class at once."""
    request = RequestPart(
        name="shape", alternatives=(structs.replace(sub, count=count),)
    )
    return MemberPart(name="", claims=(ClaimPart(name="", requests=(request,)),))


def _size_of(member: MemberPart, surveys: dict[Selectors, ClassSurvey]) -> int:
    """Count the thousandths of devices that a pod takes."""
    size = 0
    for sub in _list_first(member):
        survey = surveys.get(sub.selectors) or surveys.get(_class_of(sub))
        capacity = {} if survey is None else survey.capacity
        whole = DEVICE if survey is None else survey.drawn or DEVICE
        parts = [
            -(-amount.nano * DEVICE // capacity[name])
            for name, amount in sub.capacity.items()
            if capacity.get(name)
        ]
        size += sub.count * min(DEVICE, max(parts, default=whole))
    return max(0, min(size, MAX_SIZE))


def _list_prior(
    classes: Iterable[SubrequestPart],
    surveys: dict[Selectors, ClassSurvey],
    most: int,
) -> list[ExpectedPart]:
    """List what is expected without a past: the shapes of nodes, class by class.

    `most` pods were asked for of the kind that counts most.
    """
    shapes = [
        (_whole(sub, count), count)
        for sub in classes
        if not surveys[sub.selectors].drawn
        for count in _list_shapes(surveys[sub.selectors].nodes)
    ]
    # Parts of a device exclude each other, so that numbers of them say little: there,
    # any device that is still to be had is worth something.
    if any(surveys[sub.selectors].drawn for sub in classes):
        shapes.append((_whole(SubrequestPart(), 1), 1))
    return [
        ExpectedPart(
            member=member,
            weight=_scale(PRIOR, most * len(shapes)),
            size=min(count * DEVICE, MAX_SIZE),
        )
        for member, count in shapes
    ]


def _list_shapes(nodes: dict[int, int]) -> list[int]:
    """List the whole nodes that have most of a class, and halves of them, and so on."""
    often = sorted(nodes, key=lambda count: (-count * nodes[count], count))
    shapes: set[int] = set()
    for count in often[:MOST_SHAPES]:
        shapes.update(count >> halvings for halvings in range(count.bit_length()))
    return sorted(shapes)
