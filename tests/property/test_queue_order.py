"""Who gets quota, in which order and of which flavor: as Kueue's documents say."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.draw.quota_trees import FLAVORS, draw_gangs, draw_nodes, run, world
from tests.lab.soak import sized
from tests.oracles.brute_queues import BruteQueues

COHORTS = sized(120, 2_000)
AT_ONCE = COHORTS // 4
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, COHORTS, AT_ONCE))
def test_the_order_of_quota_is_that_of_kueue_s_documents(first: int) -> None:
    """One gang after the other: who is next, and the flavor that it gets."""
    for seed in range(first, first + AT_ONCE):
        random = Random(seed)
        nodes = draw_nodes(random)
        gangs = draw_gangs(random, nodes)
        meant = BruteQueues(nodes, FLAVORS).order(gangs)
        found, _ = run(world(nodes, gangs), 1)
        assert found == meant, seed
        SEEN["refused"] += sum(not flavor for _, flavor in meant)
        SEEN["let in"] += sum(bool(flavor) for _, flavor in meant)
        SEEN["nested"] += any(node.is_cohort and node.parent for node in nodes)
