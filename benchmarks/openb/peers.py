"""The policies to compare with, one pod at a time: random fit and best fit.

Ties of scores go to the first node by name, as in the simulator of the published
figures (its kube-scheduler was changed to do so), or to a random one, as the stock
kube-scheduler does.
"""

from __future__ import annotations

import random
from typing import Protocol

import numpy as np

from benchmarks.openb.fleet import Fleet, Integers, Placement
from benchmarks.openb.trace import MILLI, TracePod

MOST_CPU = 128 * MILLI
MOST_GPU = 8 * MILLI
HIGHEST = 100
"""Scores of kube-scheduler are integers from 0 to this."""


class Peer(Protocol):
    """A policy that places one pod."""

    def place(self, fleet: Fleet, pod: TracePod) -> Placement | None:
        """Choose a place; None: the pod fits nowhere."""


class RandomFit:
    """Any node and GPU that has room."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def place(self, fleet: Fleet, pod: TracePod) -> Placement | None:
        """Choose a place; None: the pod fits nowhere."""
        nodes = fleet.fitting(pod)
        if not len(nodes):
            return None
        node = int(self._draw.choice(nodes))
        if not pod.shares:
            return Placement(node, fleet.idle(node, pod.gpus))
        gpus = np.flatnonzero(fleet.gpus[node] >= pod.gpu_milli)
        return Placement(node, (int(self._draw.choice(gpus)),))


class BestFit:
    """The node with least CPU and GPU left over, and its fullest GPU.

    Source: hkust-adsl/kubernetes-scheduler-simulator, best_fit_score.go; scores are
    stretched over 0 to 100 as its `NormalizeScore` does, so more of them tie.
    """

    def __init__(self, ties: random.Random | None = None) -> None:
        self._ties = ties

    def place(self, fleet: Fleet, pod: TracePod) -> Placement | None:
        """Choose a place; None: the pod fits nowhere."""
        nodes = fleet.fitting(pod)
        if not len(nodes):
            return None
        cpu = (fleet.cpu[nodes] - pod.cpu_milli) / MOST_CPU
        gpu = (fleet.gpus[nodes].sum(axis=1) - pod.asked_milli) / MOST_GPU
        scores = ((1 - (cpu * 0.5 + gpu * 0.5)) * HIGHEST).astype(np.int64)
        spread = max(1, scores.max() - scores.min())
        node = chosen(nodes, (scores - scores.min()) * HIGHEST // spread, self._ties)
        if not pod.shares:
            return Placement(node, fleet.idle(node, pod.gpus))
        free = fleet.gpus[node]
        room = np.where(free >= pod.gpu_milli, free, MILLI + 1)
        return Placement(node, (int(room.argmin()),))


class FirstFit:
    """The first node by name that has room, and its first GPUs; of whole ones alone."""

    def place(self, fleet: Fleet, pod: TracePod) -> Placement | None:
        """Choose a place; None: the pod fits nowhere."""
        nodes = fleet.fitting(pod)
        if not len(nodes):
            return None
        return Placement(int(nodes[0]), fleet.idle(int(nodes[0]), pod.gpus))


class LeastAllocated:
    """kube-scheduler's default scores, for pods of whole GPUs.

    Its scores do not see devices of claims: NodeResourcesFit prefers nodes with most
    CPU and memory left, in per cent; NodeResourcesBalancedAllocation those where both
    are used alike, which is every node here. Ties go to the first node by name.
    """

    def place(self, fleet: Fleet, pod: TracePod) -> Placement | None:
        """Choose a place; None: the pod fits nowhere."""
        nodes = fleet.fitting(pod)
        if not len(nodes):
            return None
        most_cpu = np.array([fleet.nodes[node].cpu_milli for node in nodes])
        most_memory = np.array([fleet.nodes[node].memory_mib for node in nodes])
        cpu = (fleet.cpu[nodes] - pod.cpu_milli) * HIGHEST // most_cpu
        memory = (fleet.memory[nodes] - pod.memory_mib) * HIGHEST // most_memory
        node = chosen(nodes, (cpu + memory) // 2, None)
        return Placement(node, fleet.idle(node, pod.gpus))


def chosen(nodes: Integers, scores: Integers, ties: random.Random | None) -> int:
    """Choose a node of the highest score: the first, or any."""
    if ties is None:
        return int(nodes[scores.argmax()])
    return int(ties.choice(nodes[scores == scores.max()]))
