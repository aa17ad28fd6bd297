"""The openb trace as the published experiments use it: GPU nodes and distinct pods.

The tables in `data/` hold the node list as runs of equal nodes in the order of their
names, and the pod list as how often each distinct pod occurs. Most experiments shuffle
the arrivals; `order.txt` has the order of the list, for those that draw from it.
Source: Alibaba GPU-sharing trace of 2023; see NOTICE.
"""

from __future__ import annotations

import csv
from functools import cached_property
from pathlib import Path

from msgspec import Struct, structs

DATA = Path(__file__).parent / "data"
MILLI = 1000
"""Of a whole GPU."""


class TraceNode(Struct, frozen=True, kw_only=True):
    """A node with GPUs of one model."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class TracePod(Struct, frozen=True, kw_only=True, dict=True):
    """One distinct pod of the trace."""

    pods: int
    """How often it occurs."""
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """For each of, its GPUs; below 1,000 it shares the one that it has."""
    gpu_spec: str = ""
    """The models that will do, as `A|B`; empty: any."""

    @cached_property
    def asked_milli(self) -> int:
        """GPUs asked for in all, in thousandths."""
        return self.gpus * self.gpu_milli

    @property
    def shares(self) -> bool:
        """True if it takes a part of a GPU."""
        return self.gpus == 1 and self.gpu_milli < MILLI

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The models that will do; empty: any."""
        return models_of(self.gpu_spec)


class Trace(Struct, frozen=True):
    """A fleet and the pods that come to it."""

    nodes: tuple[TraceNode, ...]
    """In the order of their names."""
    pods: tuple[TracePod, ...]

    @property
    def capacity_milli(self) -> int:
        """GPUs of the fleet, in thousandths."""
        return MILLI * sum(node.gpus for node in self.nodes)

    def part(self, step: int) -> Trace:
        """Take every so many-th node and that part of each distinct pod."""
        pods = (structs.replace(p, pods=round(p.pods / step)) for p in self.pods)
        return Trace(self.nodes[::step], tuple(pod for pod in pods if pod.pods))

    def devices_only(self) -> Trace:
        """Leave out CPU and memory, and the pods that ask for nothing else."""
        nothing = {"cpu_milli": 0, "memory_mib": 0}
        return Trace(
            tuple(structs.replace(node, **nothing) for node in self.nodes),
            tuple(structs.replace(pod, **nothing) for pod in self.pods if pod.gpus),
        )


def models_of(gpu_spec: str) -> tuple[str, ...]:
    """Read the models of a `gpu_spec`."""
    return tuple(filter(None, gpu_spec.split("|")))


def read_trace(folder: Path = DATA) -> Trace:
    """Read both tables."""
    return Trace(tuple(_nodes(folder)), tuple(_pods(folder)))


def read_order(trace: Trace, folder: Path = DATA) -> tuple[TracePod, ...]:
    """List the pods with GPUs one by one, in the order of the published list."""
    numbers = (folder / "order.txt").read_text(encoding="utf-8").split()
    return tuple(trace.pods[int(number)] for number in numbers)


def _nodes(folder: Path) -> list[TraceNode]:
    nodes: list[TraceNode] = []
    for row in _rows(folder / "nodes.csv"):
        for _ in range(int(row["nodes"])):
            node = TraceNode(
                name=f"openb-node-{len(nodes):04}",
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
                gpus=int(row["gpu"]),
                model=row["model"],
            )
            nodes.append(node)
    return nodes


def _pods(folder: Path) -> list[TracePod]:
    return [
        TracePod(
            pods=int(row["pods"]),
            cpu_milli=int(row["cpu_milli"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["num_gpu"]),
            gpu_milli=int(row["gpu_milli"]),
            gpu_spec=row["gpu_spec"],
        )
        for row in _rows(folder / "pods.csv")
    ]


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))
