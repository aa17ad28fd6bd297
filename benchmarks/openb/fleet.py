"""What is free on every node, as arrays; the referee of all policies.

A policy only reads it and proposes; `take` refuses whatever breaks a rule: CPU, memory,
the model of GPU, a part of one GPU, or whole GPUs that nobody uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.openb.trace import MILLI, Trace, TracePod

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
MOST_GPUS = 8


class Placement(NamedTuple):
    """A node by its place in the order of names, and GPUs by index."""

    node: int
    gpus: tuple[int, ...] = ()


class Fleet:
    """The free resources of a trace's nodes."""

    def __init__(self, trace: Trace) -> None:
        self.nodes = trace.nodes
        count = len(trace.nodes)
        self.cpu: Integers = np.array([node.cpu_milli for node in trace.nodes])
        self.memory: Integers = np.array([node.memory_mib for node in trace.nodes])
        self.gpus: Integers = np.zeros((count, MOST_GPUS), dtype=np.int64)
        """Free thousandths [node][GPU]; 0 where a node has fewer GPUs."""
        for index, node in enumerate(trace.nodes):
            self.gpus[index, : node.gpus] = MILLI
        self.models = tuple(sorted({node.model for node in trace.nodes}))
        codes = [self.models.index(node.model) for node in trace.nodes]
        self.model: Integers = np.array(codes)
        """For each node, as an index of `models`."""
        self.taken: list[int] = []
        """Nodes in the order in which pods came to them."""

    def accepts(self, models: tuple[str, ...]) -> Booleans:
        """Return which models of the fleet are among these; none: any is."""
        return np.array([not models or model in models for model in self.models])

    def fitting(self, pod: TracePod) -> Integers:
        """List the nodes that have room for a pod, by name."""
        fits = (self.cpu >= pod.cpu_milli) & (self.memory >= pod.memory_mib)
        if pod.models:
            fits &= self.accepts(pod.models)[self.model]
        if pod.gpus:
            enough = self.gpus >= pod.gpu_milli
            fits &= enough.sum(axis=1) >= pod.gpus
        return np.flatnonzero(fits)

    def idle(self, node: int, count: int) -> tuple[int, ...]:
        """Choose the first whole GPUs of a node."""
        indices = np.flatnonzero(self.gpus[node] == MILLI)[:count]
        return tuple(int(index) for index in indices)

    def take(self, pod: TracePod, placement: Placement) -> None:
        """Place a pod.

        Raises:
            ValueError: it does not fit there.
        """
        node, gpus = placement
        self.cpu[node] -= pod.cpu_milli
        self.memory[node] -= pod.memory_mib
        for index in gpus:
            self.gpus[node, index] -= pod.gpu_milli
        allowed = not pod.models or self.nodes[node].model in pod.models
        least_left = min(self.cpu[node], self.memory[node], self.gpus[node].min())
        if len(set(gpus)) != pod.gpus or not allowed or least_left < 0:
            raise ValueError(f"{pod} does not fit on {self.nodes[node]}: {gpus}")
        self.taken.append(node)

    def give_back(self, pod: TracePod, placement: Placement) -> None:
        """End a pod that was placed."""
        node, gpus = placement
        self.cpu[node] += pod.cpu_milli
        self.memory[node] += pod.memory_mib
        for index in gpus:
            self.gpus[node, index] += pod.gpu_milli
        self.taken.append(node)
