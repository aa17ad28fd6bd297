"""Which queue a gang belongs to, and who is let in."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.gang import Gang
from contracts.kueue import PODSET, QUEUE_NAME
from solver.problem.quota.queues import find_queue
from solver.snapshot.snapshot import Snapshot
from tests.builders import gang, member
from tests.builders.queues import cluster_queue, cohort, local_queue, with_queues


def asking(namespace: str = "team", **labels: str) -> Gang:
    return gang(member(labels=labels), namespace=namespace)


def snapshot_of(*objects: dict[str, Any], **spec: Any) -> Snapshot:
    queue = cluster_queue("q", {}, **spec)
    local = (local_queue("team", "q"), local_queue("team", "gone", "lost"))
    return with_queues(Snapshot(), queue, *local, *objects)


def test_a_label_names_the_queue_and_without_one_default_counts() -> None:
    """Nobody is held up where there are no queues, or none for it."""
    queues = snapshot_of().queues
    found = find_queue(queues, asking())
    assert found is not None
    assert (found.name, found.closed, found.is_strict) == ("q", "", False)
    assert find_queue(queues, asking("elsewhere")) is None
    assert find_queue(Snapshot().queues, asking(**{QUEUE_NAME: "any"})) is None


def test_what_kueue_has_admitted_it_counts_itself() -> None:
    """Pods of an admitted Workload have its label."""
    assert find_queue(snapshot_of().queues, asking(**{PODSET: "main"})) is None


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("none", "LocalQueue team/none does not exist"),
        ("lost", "ClusterQueue gone of LocalQueue team/lost does not exist"),
    ],
)
def test_a_queue_that_is_not_there_lets_nobody_in(label: str, why: str) -> None:
    """A misspelt name is not no name."""
    found = find_queue(snapshot_of().queues, asking(**{QUEUE_NAME: label}))
    assert found is not None
    assert found.closed == why


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"stopPolicy": "Hold"}, "it is stopped (Hold)"),
        ({"stopPolicy": "HoldAndDrain"}, "it is stopped (HoldAndDrain)"),
        ({"namespaceSelector": None}, "without one it is for no namespace"),
        (
            {"namespaceSelector": {"matchLabels": {"team": "a"}}},
            "the labels of namespace team are not known",
        ),
        (
            {
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": "b"}
                }
            },
            "it is not for namespace team",
        ),
        ({"admissionChecks": ["x"]}, "spec.admissionChecks: nobody answers it here"),
    ],
)
def test_a_closed_queue_says_why(spec: dict[str, Any], why: str) -> None:
    """What cannot be judged is a no, in words."""
    found = find_queue(snapshot_of(**spec).queues, asking())
    assert found is not None
    assert why in found.closed
    assert why in found.reason.message


def test_a_namespace_is_chosen_by_its_labels_where_they_are_known() -> None:
    """As Kueue does."""
    labels = {"metadata": {"name": "team", "labels": {"team": "a"}}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", **labels}
    selector = {"matchLabels": {"team": "a"}}
    found = find_queue(
        snapshot_of(namespace, namespaceSelector=selector).queues, asking()
    )
    assert found is not None
    assert found.closed == ""


def test_cohorts_in_a_circle_let_nobody_in() -> None:
    """Nobody knows who lends to whom."""
    circle = (cohort("x", {}, parent="y"), cohort("y", {}, parent="x"))
    found = find_queue(snapshot_of(*circle, cohortName="x").queues, asking())
    assert found is not None
    assert found.closed == "cohort x is its own ancestor"
