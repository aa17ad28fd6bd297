"""On which terms queues have reservations."""

from __future__ import annotations

import pytest

from solver.snapshot.snapshot import Snapshot
from solver.timeline.keeper import Outlook, list_candidates
from solver.timeline.patience import NEVER, read_patience, read_terms
from tests.builders.queues import cluster_queue, local_queue, with_queues
from tests.builders.timeline import World


def queue_with(**annotations: str) -> Snapshot:
    made = cluster_queue("q", {})
    said = {f"moorings.dev/{name}": value for name, value in annotations.items()}
    made["metadata"]["annotations"] = said
    return with_queues(Snapshot(), made)


@pytest.mark.parametrize(
    ("said", "patience_s", "reservations"),
    [
        ({}, 60, 1),
        ({"patience": "5m"}, 300, 1),
        ({"patience": "0s", "reservations": "4"}, 0, 4),
        ({"patience": "never"}, NEVER, 1),
        ({"patience": "soon", "reservations": "many"}, 60, 1),
        ({"reservations": "99"}, 60, 16),
    ],
)
def test_a_queue_s_annotations_count_before_the_solver_s_setting(
    said: dict[str, str], patience_s: int, reservations: int
) -> None:
    """What cannot be read says nothing."""
    terms = read_terms(queue_with(**said), "q", 60)
    assert (terms.patience_s, terms.reservations) == (patience_s, reservations)


def test_what_a_queue_does_not_say_whoever_asks_does() -> None:
    assert read_terms(queue_with(), "q", 60, 4).reservations == 4
    assert read_terms(queue_with(reservations="2"), "q", 60, 4).reservations == 2
    assert read_terms(queue_with(), "q", 60, 99).reservations == 16


def test_a_patience_is_a_duration_or_never() -> None:
    """As the setting has it."""
    assert (read_patience("never"), read_patience("0s"), read_patience("2h")) == (
        NEVER,
        0,
        7200,
    )
    with pytest.raises(ValueError, match="must be a duration"):
        read_patience("soon")


def test_a_queue_has_as_many_reservations_as_it_says() -> None:
    """Over all of its namespaces; without a queue each namespace has one."""
    world = World(nodes=1)
    world.start("runs", at_s=0, duration="1h")
    for name, namespace in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "z")):
        world.wait_for(name, at_s=0, namespace=namespace)
    made = cluster_queue("q", {})
    made["metadata"]["annotations"] = {"moorings.dev/reservations": "2"}
    queues = (made, local_queue("x", "q"), local_queue("y", "q"))
    look = Outlook(
        snapshot=with_queues(world.snapshot, *queues),
        now_s=100,
        asker_of=world.asker,
        patience_s=50,
    )
    assert [record.name for record in list_candidates(look, [])] == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("said", "delay_s"),
    [("5m", 300), ("0s", 0), ("never", NEVER), ("soon", NEVER), (None, NEVER)],
)
def test_others_go_only_after_a_delay_that_can_be_read(
    said: str | None, delay_s: int
) -> None:
    made = cluster_queue("q", {})
    annotations = {} if said is None else {"moorings.dev/preemption-delay": said}
    made["metadata"]["annotations"] = annotations
    snapshot = with_queues(World(nodes=1).snapshot, made)
    assert read_terms(snapshot, "q", 0).preemption_delay_s == delay_s
