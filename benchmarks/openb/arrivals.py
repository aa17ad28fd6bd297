"""The pods in the order in which they arrive, by the protocol of the published runs.

All pods of the trace, then pods drawn from it with replacement until the next one
would ask for more than `load` times the fleet's GPUs; shuffled. Its random stream
(Go's) cannot be matched, so seeds are ours, and peers run beside us on the same list.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

from benchmarks.openb.trace import Trace, TracePod

LOAD = 1.3


def arrivals(trace: Trace, seed: int, load: float = LOAD) -> list[TracePod]:
    """Draw a list of arrivals.

    Source: hkust-adsl/kubernetes-scheduler-simulator, simulator.go `tuneUpPods`, where
    the next pod counts with the share of one GPU, whatever number it asks for.
    """
    draw = random.Random(seed)
    pods = [pod for pod in trace.pods for _ in range(pod.pods)]
    choices = tuple(pods)
    asked = sum(pod.asked_milli for pod in pods)
    while True:
        pod = draw.choice(choices)
        if asked + pod.gpu_milli > load * trace.capacity_milli:
            break
        asked += pod.asked_milli
        pods.append(pod)
    draw.shuffle(pods)
    return pods


def arrived(pods: Sequence[TracePod], asked_milli: float) -> int:
    """Count the pods until they have asked for so much; all, where they never do."""
    for index, asked in enumerate(accumulate(pod.asked_milli for pod in pods)):
        if asked >= asked_milli:
            return index + 1
    return len(pods)
