"""Gangs as people know them: by name, with all that was submitted for one.

While a gang runs, pods that replace some of its own are submitted by themselves, as a
gang of its name; and pods wait that were never submitted. All of that is one story.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct, structs

from contracts.gang import GangPhase
from contracts.ids import GangKey, GangUID
from contracts.lifecycle import GangRecord
from contracts.messages import AllocationWritten
from contracts.names import GANG, OF_CLAIM, WORKLOAD
from contracts.reports import (
    PHASES_BY_URGENCY,
    WAITING,
    GroupReported,
    PodsReport,
)

WrittenGangs = Mapping[GangKey, AllocationWritten]
"""The written claims of each gang's last attempt."""

CLAIM = "claim/"
"""Begins the names of claims that are allocated without a pod; no gang has a slash."""
_CLAIM_WORDS = ("claim", "claims", "resourceclaim", "resourceclaims")
_GANG_WORD = "gang.moorings.dev"
"""Before a gang's name, as `get -o name` prints it; no namespace has dots."""
LEAST_OF_UID = 4
"""Characters of a uid that name a gang by its beginning."""


class HeldObjects(Struct, frozen=True, kw_only=True, dict=True):
    """Pods and claims of gangs in the cluster, as the publisher last reported them."""

    pods: dict[str, GangUID] = {}
    """By `namespace/name`, the gang that a pod runs for; empty: none."""
    claims: frozenset[str] = frozenset()
    """The claims that hold devices, by `namespace/name`."""

    @cached_property
    def pod_counts(self) -> Counter[tuple[str, GangUID]]:
        """How many pods run for each gang, by namespace and uid."""
        return Counter((pod.partition("/")[0], uid) for pod, uid in self.pods.items())

    def count_pods(self, record: GangRecord) -> int:
        """Count the pods that run for a gang.

        One that was on its node before it was asked for names no gang.
        """
        marked = self.pod_counts[record.namespace, record.uid]
        if marked or record.submission is None:
            return marked
        places = record.submission.places.values()
        names = (pod.name for each in places for place in each for pod in place.pods)
        return sum(self.pods.get(f"{record.namespace}/{name}") == "" for name in names)

    def has_pod(self, record: GangRecord, pod: str) -> bool:
        """True if this pod runs for this gang and is not another of the same name."""
        marked = self.pods.get(f"{record.namespace}/{pod}")
        is_bound = marked == "" and not self.pod_counts[record.namespace, record.uid]
        return is_bound or marked == record.uid


class GangQuery(Struct, frozen=True, kw_only=True):
    """A gang as typed: `name`, `namespace/name`, a uid or its beginning.

    Or a claim that is allocated without a pod: `claim/name`.
    """

    name: str
    namespace: str | None = None
    """None: any."""

    @classmethod
    def of(cls, text: str, namespace: str | None = None) -> GangQuery:
        """Read what was typed; `namespace` is given besides."""
        before, slash, after = text.partition("/")
        if slash and before == _GANG_WORD:
            return cls.of(after, namespace)
        if slash and before in _CLAIM_WORDS:
            return cls(name=f"{CLAIM}{after}", namespace=namespace)
        if slash and namespace is None:
            return cls(name=after, namespace=before)
        return cls(name=text, namespace=namespace)

    def is_of(self, record: GangRecord) -> bool:
        """True if it names this submission."""
        if record.uid == self.name:
            return True
        in_namespace = self.namespace in (None, record.namespace)
        return name_gang(record) == self.name and in_namespace

    def among(self, records: Iterable[GangRecord]) -> GangQuery:
        """Name the one gang whose uid begins so, if no gang has this name."""
        known = list(records)
        if len(self.name) < LEAST_OF_UID or any(map(self.is_of, known)):
            return self
        begun = {r.uid for r in known if r.uid.startswith(self.name)}
        return self if len(begun) != 1 else structs.replace(self, name=begun.pop())

    def is_in(self, story: GangStory) -> bool:
        """True if it names this gang, or one of its submissions."""
        in_namespace = self.namespace in (None, story.namespace)
        is_same = story.name == self.name and in_namespace
        return is_same or any(record.uid == self.name for record in story.records)


class GangStory(Struct, frozen=True, kw_only=True):
    """All submissions and reports of one gang."""

    namespace: str
    name: str
    is_lone: bool
    """True if it is a pod without a gang."""
    records: tuple[GangRecord, ...] = ()
    """Its submissions, oldest first."""
    reports: tuple[PodsReport, ...] = ()
    """Reports about its pods: what is wrong, or why they are not submitted yet."""
    since: str = ""
    """RFC 3339: since when those hold."""

    @property
    def living(self) -> tuple[GangRecord, ...]:
        """Its unfinished submissions."""
        return tuple(record for record in self.records if not record.phase.is_terminal)

    @property
    def phase(self) -> str:
        """The phase that needs attention most; of what is over, the last one."""
        phases = [*(str(record.phase) for record in self.living)]
        phases += [report.phase for report in self.reports]
        if not phases:
            return str(self.records[-1].phase)
        return min(phases, key=_urgency)

    def count_pods(self, held: HeldObjects | None) -> int:
        """Count its pods: those that wait, and of those that run the ones there are.

        Without `held` nobody knows which are gone.
        """
        if not self.records:
            return sum(report.pods for report in self.reports)
        waiting = sum(r.pods for r in self.reports if r.phase == WAITING)
        if any(record.phase is not GangPhase.RUNNING for record in self.living):
            waiting = 0  # they are those of the submission
        records = self.living or (() if waiting else self.records[-1:])
        return waiting + sum(count_pods(record, held) for record in records)


def count_pods(record: GangRecord, held: HeldObjects | None) -> int:
    """Count the pods of one submission; pods that share a claim are several.

    Of one that runs those that have a place; a claim without a pod has none.
    """
    is_running = record.phase is GangPhase.RUNNING
    if is_running and held is not None:
        return held.count_pods(record)
    if record.submission is None or name_gang(record).startswith(CLAIM):
        return 0
    members = record.submission.gang.spec.members
    counts = {member.name: member.count for member in members}
    if is_running and record.placed is not None:
        # Those without a place wait, or are those of a later submission.
        counts = Counter(member.member for member in record.placed.members)
    places = record.submission.places
    return sum(
        sum(len(place.pods) for place in places[name][:count])
        if name in places
        else count
        for name, count in counts.items()
    )


def count_growing(record: GangRecord, later: Iterable[GangRecord]) -> dict[str, int]:
    """Count, by member, the pods that neither it nor a later submission has placed.

    `later`: what was submitted after it for the same gang, and is not over.
    """
    if record.placed is None:
        return {}
    decisions = [each.placed for each in later if each.placed is not None]
    placed = Counter(m.member for decision in decisions for m in decision.members)
    return dict(Counter(record.placed.growing) - placed)


def collect_stories(
    records: Iterable[GangRecord], reports: Iterable[GroupReported]
) -> list[GangStory]:
    """Collect the stories of gangs, by namespace, name and age.

    What was submitted over NATS alone has no pods that could be replaced: there each
    submission is a gang, whatever its name. All that was submitted for a claim is one.
    """
    by_key: dict[tuple[str, str, bool, str], list[GangRecord]] = {}
    for record in records:
        name = name_gang(record)
        is_one = has_pods(record) or name.startswith(CLAIM)
        uid = "" if is_one else str(record.uid)
        key = (str(record.namespace), name, _is_lone(record), uid)
        by_key.setdefault(key, []).append(record)
    reports_by_key = {
        (str(report.namespace), _name_group(report), report.kind == "Pod", ""): report
        for report in reports
        if report.reports  # one that says nothing was withdrawn, in other words
    }
    stories = []

    def order(key: tuple[str, str, bool, str]) -> tuple[str, str, bool, int, str]:
        """Sort by name, then by age."""
        first = by_key[key][0].submission_sequence if key in by_key else 0
        return (*key[:3], first, key[3])

    for key in sorted(by_key.keys() | reports_by_key.keys(), key=order):
        report = reports_by_key.get(key)
        namespace, name, is_lone, _ = key
        stories.append(
            GangStory(
                namespace=namespace,
                name=name,
                is_lone=is_lone,
                records=tuple(by_key.get(key, ())),
                reports=() if report is None else report.reports,
                since="" if report is None else report.since,
            )
        )
    return stories


def name_gang(record: GangRecord) -> str:
    """Name a gang as people see it: that of a claim without a pod is `claim/NAME`."""
    if record.submission is not None:
        notes = record.submission.gang.metadata.annotations
        kind, _, name = notes.get(WORKLOAD, "").partition("/")
        if kind == OF_CLAIM:
            return f"{CLAIM}{name}"
    return record.name


def _name_group(report: GroupReported) -> str:
    return f"{CLAIM}{report.name}" if report.kind == OF_CLAIM else report.name


def name_story(story: GangStory) -> str:
    """Name a gang among all: by uid where names are not unique, else by its name."""
    if story.records and not has_pods(story.records[-1]):
        return str(story.records[-1].uid)
    kind = "pod" if story.is_lone else "gang"
    return f"{kind}:{story.namespace}/{story.name}"


def has_pods(record: GangRecord) -> bool:
    """True if it was submitted for pods; else it came over NATS alone."""
    return record.submission is not None and bool(record.submission.places)


def _is_lone(record: GangRecord) -> bool:
    """True if it was submitted for a pod that is in no gang."""
    if record.submission is None or not record.submission.places:
        return False
    return GANG not in record.submission.gang.metadata.labels


def _urgency(phase: str) -> int:
    known = phase in PHASES_BY_URGENCY
    return PHASES_BY_URGENCY.index(phase) if known else len(PHASES_BY_URGENCY)
