"""The objects of a drawn cluster say what its messages say."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from benchmarks.worlds import mixed_nodes, mixed_pods
from benchmarks.worlds.manifests import gang_object, objects_of, pod_objects, write_list
from moorings.cli.documents import read_objects
from moorings.plan.work import prepare_work
from solver.snapshot.parts import UsePart
from solver.snapshot.snapshot import Snapshot

NODES = 20


def taken(snapshot: Snapshot) -> set[str]:
    values = snapshot.inventory.pages.values()
    uses = [value for value in values if isinstance(value, UsePart)]
    return {f"{use.pool}/{name}" for use in uses for name in use.taken}


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_plan_reads_the_cluster_and_its_gangs(tmp_path: Path, suffix: str) -> None:
    snapshot, free = mixed_nodes.cluster(NODES, 1)
    gangs = list(mixed_pods.full_demand(free, 1))
    path = tmp_path / f"cluster.{suffix}"
    cluster = [
        value
        for message, _ in mixed_nodes.observe(NODES, 1)
        for value in objects_of(message)
    ]
    write_list(path, chain(cluster, map(gang_object, gangs)))
    found = read_objects([str(path)])
    work = prepare_work(found.objects)
    assert not found.failed
    assert taken(work.snapshot) == taken(snapshot)
    assert [message.uid for message in work.gangs] == [gang.uid for gang in gangs]
    # The same gangs as pods: each asks for itself.
    write_list(path, chain(cluster, *map(pod_objects, gangs)))
    pods = sum(member.count for m in gangs for member in m.gang.spec.members)
    assert len(prepare_work(read_objects([str(path)]).objects).gangs) == pods
