"""Which ClusterQueue a gang belongs to, and whether that lets anybody in.

A gang names a LocalQueue of its namespace by a label; where it names none, that of the
name `default` counts if it exists. What Kueue's controllers have admitted they count
themselves.

Source: Kueue's concepts "LocalQueue" and "ClusterQueue".
"""

from __future__ import annotations

from msgspec import Struct

from contracts.allocation import Reason, Rule
from contracts.gang import Gang
from contracts.ids import object_key
from contracts.kueue import (
    DEFAULT_QUEUE,
    MANAGED,
    NONE,
    PODSET,
    QUEUE_NAME,
    STRICT,
    ClusterQueue,
    list_uncounted,
)
from contracts.labels import LabelSelector, does_match
from solver.snapshot.queues import QueueObjects

NAME_LABEL = "kubernetes.io/metadata.name"
"""Label that every namespace has: its name."""


class FoundQueue(Struct, frozen=True, kw_only=True):
    """The queue of a gang."""

    name: str
    """Of the ClusterQueue; empty: it is not known which."""
    queue: ClusterQueue | None = None
    closed: str = ""
    """Why nobody is let in now; empty: it is open."""

    @property
    def is_strict(self) -> bool:
        """True if nobody is tried before those who are older."""
        return self.queue is not None and self.queue.spec.queueing_strategy == STRICT

    @property
    def reason(self) -> Reason:
        """Why a gang of a closed queue waits."""
        subject = f"ClusterQueue {self.name}" if self.name else "LocalQueue"
        return Reason(rule=Rule.QUEUE_CLOSED, subject=subject, message=self.closed)


def find_queue(objects: QueueObjects, gang: Gang) -> FoundQueue | None:
    """Find the queue of a gang; None: it has none, and no quota."""
    if not len(objects.cluster_queues) or _is_counted_by_kueue(gang):
        return None
    namespace, key = gang.metadata.namespace, _name_local(gang)
    local = objects.local_queues.get(key)
    if local is None:
        if not _label_of(gang, QUEUE_NAME):
            return None
        return FoundQueue(name="", closed=f"LocalQueue {key} does not exist")
    name = local.spec.cluster_queue
    queue = objects.cluster_queues.get(name)
    if queue is None:
        closed = f"ClusterQueue {name} of LocalQueue {key} does not exist"
    elif local.spec.stop_policy != NONE:
        closed = f"LocalQueue {key} is stopped ({local.spec.stop_policy})"
    else:
        closed = find_closed(objects, name) or _check_namespace(
            objects, queue.spec.namespace_selector, namespace
        )
    return FoundQueue(name=name, queue=queue, closed=closed)


def name_queue(objects: QueueObjects, gang: Gang) -> str:
    """Name the ClusterQueue of a gang, open or closed; empty: none."""
    if not len(objects.cluster_queues) or _is_counted_by_kueue(gang):
        return ""
    local = objects.local_queues.get(_name_local(gang))
    return "" if local is None else local.spec.cluster_queue


def _name_local(gang: Gang) -> str:
    """Name the LocalQueue of a gang by `namespace/name`, whether it exists or not."""
    named = _label_of(gang, QUEUE_NAME) or DEFAULT_QUEUE
    return object_key(gang.metadata.namespace, named)


def _is_counted_by_kueue(gang: Gang) -> bool:
    return bool(_label_of(gang, PODSET) or _label_of(gang, MANAGED))


def _label_of(gang: Gang, name: str) -> str:
    """Read a label of a gang, or one that all of its pods have."""
    labels = [gang.metadata.labels, *(m.node.labels for m in gang.spec.members)]
    return next((each[name] for each in labels if each.get(name)), "")


def find_closed(objects: QueueObjects, name: str) -> str:
    """Return why a ClusterQueue lets nobody in, of any namespace; empty: it does."""
    queue = objects.cluster_queues.get(name)
    if queue is None:
        return "it does not exist"
    spec, uncounted = queue.spec, list_uncounted(queue)
    if spec.stop_policy != NONE:
        return f"it is stopped ({spec.stop_policy})"
    if uncounted:
        return f"{uncounted[0]}: nobody answers it here"
    if objects.list_cohorts(name) is None:
        return f"cohort {spec.cohort_name} is its own ancestor"
    return ""


def _check_namespace(
    objects: QueueObjects, selector: LabelSelector | None, namespace: str
) -> str:
    if selector is None:
        return "spec.namespaceSelector: without one it is for no namespace"
    known = objects.namespaces.get(namespace)
    keys = {*selector.match_labels, *(e.key for e in selector.match_expressions)}
    if known is None and keys - {NAME_LABEL}:
        return (
            f"spec.namespaceSelector: the labels of namespace {namespace} are not known"
        )
    if not does_match(selector, {NAME_LABEL: namespace, **(known or {})}):
        return f"spec.namespaceSelector: it is not for namespace {namespace}"
    return ""
