"""The examples of docs/gangs.md, and what each of them must get.

Each check looks at nodes and devices alone, of a plan or of a cluster. It would fail
without the rule that it is about, because names alone lead elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from tests.lab.controlplane.client import Json

FOLDER = Path(__file__).parents[2] / "docs" / "gangs"
CLUSTER = FOLDER / "cluster.yaml"
DeviceKey = tuple[str, str, str]
"""Driver, pool and name."""


class ExamplePod(Struct, frozen=True, order=True):
    """Where a pod of an example is, and which devices it got."""

    member: str
    index: int
    node: str
    devices: tuple[DeviceKey, ...] = ()


class ExampleSite:
    """The cluster of the examples, everything in it named apart."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.objects = list(self.read(CLUSTER.stem))
        self._labels: dict[str, dict[str, str]] = {}
        self._attributes: dict[DeviceKey, dict[str, Any]] = {}
        for item in self.objects:
            if item["kind"] == "Node":
                meta = item["metadata"]
                self._labels[meta["name"]] = meta["labels"]
            elif item["kind"] == "ResourceSlice":
                spec = item["spec"]
                for device in spec["devices"]:
                    key = (spec["driver"], spec["pool"]["name"], device["name"])
                    self._attributes[key] = {
                        name: next(iter(value.values()))
                        for name, value in device.get("attributes", {}).items()
                    }

    def read(self, name: str, namespace: str = "team-a") -> Iterator[Json]:
        """Read an example; nodes, drivers and labels of the cluster are this one's."""
        text = (FOLDER / f"{name}.yaml").read_text().replace("team-a", namespace)
        if self.prefix:
            text = text.replace(".example.com", f".{self.prefix}.example.com")
            text = text.replace("node-", f"{self.prefix}-node-")
        yield from yaml.safe_load_all(text)

    def labels(self, key: str, pods: Sequence[ExamplePod]) -> list[str]:
        """List the label of each pod's node; `key` without its domain."""
        return [
            value
            for pod in sorted(pods)
            for name, value in self._labels[pod.node].items()
            if name.endswith(f"/{key}")
        ]

    def values(self, name: str, pods: Sequence[ExamplePod]) -> list[set[Any]]:
        """List the values of an attribute of each pod's devices, where they have it."""
        return [
            {
                self._attributes[device][name]
                for device in pod.devices
                if name in self._attributes[device]
            }
            for pod in sorted(pods)
        ]


def _check_pcie_root(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert [len(pod.devices) for pod in pods] == [2] * 4
    roots = site.values("resource.kubernetes.io/pcieRoot", pods)
    assert [len(of_pod) for of_pod in roots] == [1] * 4


def _check_rail(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    rails = site.values("rail", pods)
    assert [len(of_pod) for of_pod in rails] == [1] * 4
    assert len(set.union(*rails)) == 1


def _check_power(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert len(set.union(*site.values("powerFeed", pods))) == len(pods) == 3


def _check_rack(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert len(pods) == 2
    assert len(set(site.labels("rack", pods))) == 1


def _check_scaled(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert {len(pod.devices) for pod in pods} == {2}
    assert len(set(site.labels("rack", pods))) == 1


def _check_groups(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    racks = site.labels("rack", pods)
    assert len(racks) == 16
    assert len(set(racks[:8])) == len(set(racks[8:])) == 1


def _check_even(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert sorted(Counter(site.labels("rack", pods)).values()) == [6, 6]


def _check_spread(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert sorted(Counter(site.labels("rack", pods)).values()) == [1, 1, 1]


def _check_levels(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert len(pods) == 13
    assert len(set(site.labels("block", pods))) == 1
    racks = site.labels("rack", [pod for pod in pods if pod.member == "worker"])
    assert len(set(racks[:6])) == len(set(racks[6:])) == 1


def _check_preferred(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert len(pods) == 10
    assert len(set(site.labels("rack", pods))) == 2


def _check_clique(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert [len(pod.devices) for pod in pods] == [4, 4]
    assert len(set.union(*site.values("cliqueID", pods))) == 1


def check_pairs(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    """Each pair of pods, by index, is in one rack, as far as both run."""
    racks: dict[int, set[str]] = {}
    for pod, rack in zip(sorted(pods), site.labels("rack", pods), strict=True):
        racks.setdefault(pod.index // 2, set()).add(rack)
    assert [len(of_pair) for of_pair in racks.values()] == [1] * len(racks)
    assert len({pod.node for pod in pods}) == len(pods)


def _check_elastic(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert sorted(pod.index for pod in pods) == list(range(8))
    check_pairs(site, pods)


def _check_channel(site: ExampleSite, pods: Sequence[ExamplePod]) -> None:
    assert len({pod.node for pod in pods}) == len(pods) == 2
    assert len(set(site.labels("rack", pods))) == 1


CHECKS: dict[str, Callable[[ExampleSite, Sequence[ExamplePod]], None]] = {
    "pcie-root": _check_pcie_root,
    "rail": _check_rail,
    "power": _check_power,
    "rack": _check_rack,
    "groups": _check_groups,
    "even": _check_even,
    "scaled": _check_scaled,
    "spread": _check_spread,
    "levels": _check_levels,
    "preferred": _check_preferred,
    "clique": _check_clique,
    "elastic": _check_elastic,
    "channel": _check_channel,
}
"""By example, what holds of its answer."""
