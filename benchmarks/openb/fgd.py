"""Fragmentation gradient descent (FGD): keep the GPUs usable that are left over.

A node's fragmentation is the free part of its GPUs that a pod drawn from the typical
workload could not use. A pod goes where it adds least. Scores are remembered for each
distinct pod and computed again only for nodes that changed.

Source: Weng et al., USENIX ATC 2023; hkust-adsl/kubernetes-scheduler-simulator,
fgd_score.go and frag.go: typical are the most frequent pods (95 % of all, those without
GPUs included) by CPU, GPUs and model, without memory.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from benchmarks.openb.fleet import (
    MOST_GPUS,
    Booleans,
    Fleet,
    Floats,
    Integers,
    Placement,
)
from benchmarks.openb.peers import HIGHEST, chosen
from benchmarks.openb.trace import MILLI, Trace, TracePod, models_of

POPULARITY = 0.95
"""How much of the workload is typical."""


class Typical:
    """The typical workload, as arrays over its distinct pods."""

    def __init__(self, trace: Trace, fleet: Fleet) -> None:
        count: Counter[tuple[int, int, int, str]] = Counter()
        for pod in trace.pods:
            key = (pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.gpu_spec)
            count[key] += pod.pods
        ordered = sorted(count, key=lambda key: (count[key], key), reverse=True)
        reached = np.cumsum([count[key] for key in ordered])
        enough = int((reached < POPULARITY * reached[-1]).sum()) + 1
        with_gpus = [key for key in ordered[:enough] if key[2]]
        weights = np.array([count[key] for key in with_gpus])
        self.weights: Floats = weights / reached[enough - 1]
        self.cpu: Integers = np.array([key[0] for key in with_gpus])
        milli = np.array([key[1] for key in with_gpus])
        self.sizes: Integers
        self.size: Integers
        self.sizes, self.size = np.unique(milli, return_inverse=True)
        self.gpus: Integers = np.array([key[2] for key in with_gpus])
        self.accepts: Booleans = np.array(
            [fleet.accepts(models_of(key[3])) for key in with_gpus]
        )

    def fragmentation(self, gpus: Integers, cpu: Integers, model: Integers) -> Floats:
        """Compute the fragmentation of states of nodes, in thousandths of a GPU.

        `gpus` is [state][GPU]. What a pod without GPUs sees is a fragment always.
        """
        serves = gpus[:, None, :] >= self.sizes[None, :, None]
        usable = (gpus[:, None, :] * serves).sum(axis=2)[:, self.size]
        enough = serves.sum(axis=2)[:, self.size] >= self.gpus
        enough &= cpu[:, None] >= self.cpu
        enough &= self.accepts.T[model]
        fragments: Floats = gpus.sum(axis=1) - (usable * enough) @ self.weights
        return fragments


class Scores:
    """Scores of one distinct pod on every node, and the GPU that each is for."""

    def __init__(self, nodes: int) -> None:
        self.known = 0
        """How many changes of the fleet they follow."""
        self.score: Integers = np.zeros(nodes, dtype=np.int64)
        self.gpu: Integers = np.zeros(nodes, dtype=np.int64)


class FragmentationGradient:
    """FGD on one fleet."""

    def __init__(
        self, trace: Trace, fleet: Fleet, ties: random.Random | None = None
    ) -> None:
        self._typical = Typical(trace, fleet)
        self._ties = ties
        self._scores: dict[TracePod, Scores] = {}

    def place(self, fleet: Fleet, pod: TracePod) -> Placement | None:
        """Choose a place; None: the pod fits nowhere."""
        nodes = fleet.fitting(pod)
        if not len(nodes):
            return None
        scores = self._scores.get(pod)
        if scores is None:
            scores = self._scores[pod] = Scores(len(fleet.nodes))
            changed = np.arange(len(fleet.nodes))
        else:
            changed = np.unique(np.array(fleet.taken[scores.known :], dtype=np.int64))
        scores.known = len(fleet.taken)
        if len(changed):
            self._renew(scores, fleet, pod, changed)
        node = chosen(nodes, scores.score[nodes], self._ties)
        if pod.shares:
            return Placement(node, (int(scores.gpu[node]),))
        return Placement(node, fleet.idle(node, pod.gpus))

    def _renew(
        self, scores: Scores, fleet: Fleet, pod: TracePod, nodes: Integers
    ) -> None:
        """Compute the scores of some nodes again."""
        gpus, cpu, model = fleet.gpus[nodes], fleet.cpu[nodes], fleet.model[nodes]
        before = self._typical.fragmentation(gpus, cpu, model)
        cpu = cpu - pod.cpu_milli
        if not pod.shares:
            whole = gpus == MILLI
            gpus[whole & (whole.cumsum(axis=1) <= pod.gpus)] = 0
            after = self._typical.fragmentation(gpus, cpu, model)
            scores.score[nodes] = _scores(before - after)
            return
        part = pod.gpu_milli * np.eye(MOST_GPUS, dtype=np.int64)
        after = self._typical.fragmentation(
            (gpus[:, None, :] - part).reshape(-1, MOST_GPUS),
            np.repeat(cpu, MOST_GPUS),
            np.repeat(model, MOST_GPUS),
        ).reshape(-1, MOST_GPUS)
        score_of_gpu = _scores(before[:, None] - after)
        score_of_gpu[gpus < pod.gpu_milli] = -1
        scores.gpu[nodes] = score_of_gpu.argmax(axis=1)
        scores.score[nodes] = score_of_gpu.max(axis=1)


def _scores(relief: Floats) -> Integers:
    """Squeeze less fragmentation (in thousandths) into a score, as FGD does."""
    squeezed: Integers = (HIGHEST / (1 + np.exp(-relief / MILLI))).astype(np.int64)
    return squeezed
